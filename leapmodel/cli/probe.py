"""``leapmodel probe``: a draft's latency and the target's concurrency, before speculating."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import click

from leapmodel.atomic import check_place, write_json
from leapmodel.benchmarks.recorded import recorded_tasks_file
from leapmodel.cli.answers_seen import AnswersSeen
from leapmodel.cli.asked_about import OwnContexts, of_benchmark, own_contexts_options
from leapmodel.cli.chosen_benchmark import ChosenBenchmark, recorded_benchmark_options
from leapmodel.cli.engine import (
    ServedModel,
    draft_options,
    run_to_end,
    stalled_option,
    target_options,
)
from leapmodel.cli.options import depth_option, note, refuse_own_input
from leapmodel.cli.progress import progress_bar
from leapmodel.errors import UsageError
from leapmodel.execution.about import about_machine
from leapmodel.execution.probe import probe
from leapmodel.probes import Probe
from leapmodel.trace import read_trace


@click.command("probe", short_help="Time a draft's calls, and the target under concurrency.")
@click.argument("trace", metavar="TRACE", type=click.Path())
@target_options
@stalled_option
@draft_options
@own_contexts_options
@recorded_benchmark_options
@depth_option("Ask the target 1 to k + 1 things at once.")
@click.option(
    "--batches",
    type=click.IntRange(min=2),
    default=8,
    show_default=True,
    help="Batches at each level of concurrency.",
)
@click.option("--no-reset", is_flag=True, help="Leave the servers' prefix caches as they are.")
@click.option("-o", "--output", metavar="FILE", help="Write it (.json), for --probe FILE.")
def command(
    trace: str,
    target: ServedModel,
    stalled_s: float,
    draft: ServedModel,
    own: OwnContexts,
    chosen: ChosenBenchmark,
    depth: int,
    batches: int,
    no_reset: bool,
    output: str | None,
) -> None:
    """Ask the draft for every step of TRACE, one call at a time, and time the target's tokens.

    TRACE is a sequential trace of held-out tasks of the benchmark, and says with which settings it
    was recorded; --limit takes its first tasks. With --contexts it is a log of your own agent.
    """
    inputs = [trace, own.file, target.extra_file, draft.extra_file, chosen.tasks_file]
    refuse_own_input(output, inputs)
    if output is not None:
        if Path(output).suffix != ".json":
            raise UsageError(f"{output}: expected a name ending in .json")
        check_place(output)
    workload = read_trace(trace)
    refuse_own_input(output, [recorded_tasks_file(workload.metadata)])
    asked = own.asked(
        workload,
        trace,
        chosen.limit,
        target_tokens=chosen.target_tokens,
        names_a_benchmark=chosen.name is not None,
    )
    if asked is None:
        benchmark = chosen.open_as(workload.metadata, trace)
        asked = of_benchmark(benchmark, workload, trace, chosen.limit)
    else:
        chosen.refuse_beside("--contexts")

    seen = {role: AnswersSeen(role) for role in ("target", "draft")}

    async def work() -> Probe:
        async with AsyncExitStack() as stack:
            target_endpoint = await target.open(stack, stalled_s)
            draft_endpoint = await draft.open(stack, stalled_s, beside=target)
            total = len(asked.contexts) + batches * (depth + 1)
            with progress_bar() as bar:
                task = bar.add_task("probing", total=total, said="")
                return await probe(
                    asked.contexts,
                    target_endpoint,
                    draft_endpoint,
                    depth,
                    bear=asked.bear,
                    draft_name=draft.name,
                    batches=batches,
                    reset_caches=not no_reset,
                    tick=lambda: bar.advance(task),
                    answered=lambda role, answer: seen[role](answer),
                )

    found: Probe = run_to_end(work(), left=lambda: "nothing was written")
    asked.note_amiss(*seen.values())
    if (timed := len(found.token_times)) <= depth:
        note(
            f"{timed} request{'s' * (timed > 1)} at once at most, where k = {depth} asks for up to"
            f" {depth + 1}: no task has so many steps that were answered"
        )
    click.echo(found.summary())
    if output is not None:
        write_json(output, {**found.to_dict(), "machine": about_machine()})
        click.echo(f"written to {output}")
