"""``leapmodel collect``: the target alone over the training tasks, for a draft to learn from."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import click

from leapmodel.benchmarks import Split
from leapmodel.cli.chosen_benchmark import ChosenBenchmark, benchmark_options
from leapmodel.cli.engine import ServedModel, run_to_end, stalled_option, target_options
from leapmodel.cli.options import folder_option
from leapmodel.cli.run import Shown, report
from leapmodel.execution.loop import Models
from leapmodel.execution.protocol import Plan
from leapmodel.execution.records.journal import Journal
from leapmodel.execution.records.recording import (
    PAIRS_NAME,
    ROUNDS_NAME,
    TRACE_NAME,
    record,
    refuse_others,
)
from leapmodel.execution.training.pairs import write_pairs
from leapmodel.execution.training.supervision import pairs_from_rounds


@click.command("collect", short_help="Run the target alone; record what a draft learns from.")
@target_options
@stalled_option
@benchmark_options
@click.option(
    "--tasks",
    "split",
    type=click.Choice(["train", "test"]),
    default="train",
    show_default=True,
    help="Which tasks.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Tasks at a time. More is faster, but then the times say nothing.",
)
@click.option("--no-reset", is_flag=True, help="Leave the server's prefix cache as it is.")
@click.option("--resume", is_flag=True, help="Go on with what the folder holds.")
@folder_option(f"For {ROUNDS_NAME}, {TRACE_NAME} and {PAIRS_NAME}.")
def command(
    target: ServedModel,
    stalled_s: float,
    chosen: ChosenBenchmark,
    split: Split,
    concurrency: int,
    no_reset: bool,
    resume: bool,
    output: str,
) -> None:
    """Run the sequential arm over tasks: a trace, with every request's hash and raw output.

    What a draft learns from it, pairs of a context and the target's action, is written beside it.
    """
    benchmark = chosen.open()
    tasks = chosen.tasks(benchmark, split)

    async def work() -> Journal:
        async with AsyncExitStack() as stack:
            target_endpoint = await target.open(stack, stalled_s)
            plan = Plan(
                benchmark,
                tasks,
                Models(target_endpoint),
                0,
                ("sequential",),
                reset_caches=not no_reset,
                concurrency=concurrency,
                split=split,
            )
            with Shown(plan) as shown:
                return await record(
                    plan, output, resume=resume, observe=shown.round, opened=shown.opened
                )

    refuse_others(Path(output), [PAIRS_NAME])
    journal = run_to_end(work())
    report(journal, output)
    if not journal.rows:
        return
    rounds = journal.rounds()
    if rounds.committed["action"].notna().any():
        pairs = pairs_from_rounds(rounds, benchmark, arm="sequential")
        # By this a later call knows them for its own.
        about = {**pairs.metadata, "begun": journal.metadata.get("begun")}
        write_pairs(replace(pairs, metadata=about), Path(output) / PAIRS_NAME)
        click.echo(f"{len(pairs)} pairs of context and action in {Path(output) / PAIRS_NAME}")
