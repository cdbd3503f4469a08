"""``leapmodel probe``: a draft's latency and the target's concurrency, before speculating."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path

import click

from leapmodel.cli.engine import (
    Address,
    benchmark_options,
    draft_options,
    open_benchmark,
    progress_bar,
    run_to_end,
    target_options,
)
from leapmodel.cli.options import refuse_own_input
from leapmodel.errors import UsageError
from leapmodel.execution.about import about_machine
from leapmodel.execution.contexts import contexts_of
from leapmodel.execution.probe import probe
from leapmodel.files import atomic_path
from leapmodel.probes import Probe
from leapmodel.trace import read_trace


@click.command("probe", short_help="Time a draft's calls, and the target under concurrency.")
@click.argument("trace", metavar="TRACE", type=click.Path())
@target_options
@draft_options
@benchmark_options
@click.option(
    "--k",
    "depth",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Ask the target 1 to k + 1 things at once.",
)
@click.option(
    "--batches",
    type=click.IntRange(min=2),
    default=8,
    show_default=True,
    help="Batches at each level of concurrency.",
)
@click.option("-o", "--output", metavar="FILE", help="Write it (.json), for --probe FILE.")
def command(
    trace: str,
    target_url: str,
    target_model: str | None,
    target_extra: str | None,
    stalled_s: float,
    draft_url: str | None,
    draft_model: str | None,
    draft_name: str | None,
    draft_extra: str | None,
    benchmark_name: str,
    benchmark_seed: int,
    tasks_file: str | None,
    target_tokens: int | None,
    limit: int | None,
    depth: int,
    batches: int,
    output: str | None,
) -> None:
    """Ask the draft for every step of TRACE, one call at a time, and time the target's tokens.

    TRACE is a sequential trace of held-out tasks of the benchmark; --limit takes its first tasks.
    """
    refuse_own_input(output, [trace])
    if output is not None and Path(output).suffix != ".json":
        raise UsageError(f"{output}: expected a name ending in .json")
    benchmark = open_benchmark(benchmark_name, benchmark_seed, tasks_file, target_tokens)
    workload = read_trace(trace)
    contexts = list(contexts_of(benchmark, workload))
    if limit is not None:
        kept = set(workload.task_names[:limit])
        contexts = [context for context in contexts if context.task.name in kept]

    async def work() -> Probe:
        async with AsyncExitStack() as stack:
            target = await Address(
                "target", target_url, target_model, target_extra, stalled_s
            ).open(stack)
            draft = await Address(
                "draft", draft_url or target_url, draft_model, draft_extra, stalled_s
            ).open(stack)
            total = len(contexts) + batches * (depth + 1)
            with progress_bar() as bar:
                task = bar.add_task("probing", total=total, said="")
                return await probe(
                    contexts,
                    target,
                    draft,
                    depth,
                    draft_name=draft_name,
                    batches=batches,
                    tick=lambda: bar.advance(task),
                )

    found: Probe = run_to_end(work(), resumable=False)
    click.echo(found.summary())
    if output is not None:
        with atomic_path(output) as place:
            place.write_text(
                json.dumps({**found.to_dict(), "machine": about_machine()}, indent=2) + "\n"
            )
        click.echo(f"written to {output}")
