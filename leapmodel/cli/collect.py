"""``leapmodel collect``: the target alone over the training tasks, for a draft to learn from."""

from __future__ import annotations

from contextlib import AsyncExitStack

import click

from leapmodel.cli.engine import (
    Address,
    benchmark_options,
    chosen_tasks,
    open_benchmark,
    run_to_end,
    target_options,
)
from leapmodel.cli.run import Shown, report
from leapmodel.execution.journal import Journal
from leapmodel.execution.loop import Models
from leapmodel.execution.protocol import Plan
from leapmodel.execution.recording import ROUNDS_NAME, TRACE_NAME, record


@click.command("collect", short_help="Run the target alone; record what a draft learns from.")
@target_options
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
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FOLDER",
    help=f"For {ROUNDS_NAME} and {TRACE_NAME}.",
)
def command(
    target_url: str,
    target_model: str | None,
    target_extra: str | None,
    stalled_s: float,
    benchmark_name: str,
    benchmark_seed: int,
    tasks_file: str | None,
    target_tokens: int | None,
    limit: int | None,
    split: str,
    concurrency: int,
    no_reset: bool,
    resume: bool,
    output: str,
) -> None:
    """Run the sequential arm over tasks: a trace, with every request's hash and raw output."""
    benchmark = open_benchmark(benchmark_name, benchmark_seed, tasks_file, target_tokens)
    tasks = chosen_tasks(benchmark, split, limit)  # type: ignore[arg-type]

    async def work() -> Journal:
        async with AsyncExitStack() as stack:
            target = await Address(
                "target", target_url, target_model, target_extra, stalled_s
            ).open(stack)
            plan = Plan(
                benchmark,
                tasks,
                Models(target),
                0,
                ("sequential",),
                reset_caches=not no_reset,
                concurrency=concurrency,
            )
            with Shown(plan) as shown:
                return await record(
                    plan, output, resume=resume, observe=shown.round, opened=shown.opened
                )

    report(run_to_end(work()), output)
