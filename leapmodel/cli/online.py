"""``leapmodel online``: the draft learns between batches, from what the target commits."""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import click

from leapmodel.benchmarks import Benchmark
from leapmodel.benchmarks.interface import about_benchmark
from leapmodel.cli.chosen_benchmark import ChosenBenchmark, benchmark_options
from leapmodel.cli.engine import (
    ServedModel,
    draft_options,
    require_utf_8,
    run_to_end,
    stalled_option,
    target_options,
)
from leapmodel.cli.options import depth_option, folder_option
from leapmodel.cli.run import Shown
from leapmodel.cli.screen import console
from leapmodel.errors import EngineError, UsageError
from leapmodel.execution.contexts import Context, contexts_of
from leapmodel.execution.loop import Models
from leapmodel.execution.online import (
    Method,
    Stream,
    require_batches,
    require_held_out,
    run_online,
)
from leapmodel.execution.protocol import ARMS, Plan
from leapmodel.execution.records.record import Arm
from leapmodel.execution.records.recording import ROUNDS_NAME, TRACE_NAME
from leapmodel.execution.swapping import Swap
from leapmodel.execution.training.pairs import Pairs, write_pairs
from leapmodel.online_curve import online_curve
from leapmodel.recorded_settings import refuse_other_benchmark
from leapmodel.rounds import read_rounds
from leapmodel.trace import read_trace
from leapmodel.versions import VERSIONS_NAME, Version


@click.command("online", short_help="Train the draft between batches, from the target's commits.")
@target_options
@stalled_option
@draft_options
@benchmark_options
@click.option(
    "--base",
    required=True,
    metavar="MODEL",
    help="The model that the draft's server serves, to train adapters of.",
)
@click.option(
    "--swap",
    type=click.Choice(["adapter", "merged"]),
    default="adapter",
    show_default=True,
    help="Load each adapter beside the base, or put the weights with it merged in their place:"
    " faster where an engine is slow with adapters, as on a CPU.",
)
@depth_option("Proposals a round, at most.")
@click.option("--batches", type=click.IntRange(min=1), default=10, show_default=True)
@click.option(
    "--method",
    type=click.Choice(["retrain", "continual"]),
    default="retrain",
    show_default=True,
    help="Train anew on all commits, or go on from the adapter before, on the new batch and as"
    " many earlier pairs.",
)
@click.option(
    "--heldout", type=click.Path(), metavar="TRACE", help="Score each version on its contexts."
)
@click.option(
    "--arm",
    type=click.Choice(["both", "speculative"]),
    default="both",
    show_default=True,
    help="Whether each batch also runs without speculation, for its speedup.",
)
@click.option(
    "--train-options", default="", metavar="OPTIONS", help="More options of leapmodel train."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--resume", is_flag=True, help="Go on with what the folder holds.")
@folder_option(f"For {ROUNDS_NAME}, {TRACE_NAME}, {VERSIONS_NAME} and the adapters.")
def command(
    target: ServedModel,
    stalled_s: float,
    draft: ServedModel,
    chosen: ChosenBenchmark,
    base: str,
    swap: Swap,
    depth: int,
    batches: int,
    method: Method,
    heldout: str | None,
    arm: str,
    train_options: str,
    seed: int,
    resume: bool,
    output: str,
) -> None:
    """Run the training tasks in batches; after each, train an adapter and load it (Sec. 4.5).

    The draft's server must serve the base and allow adapters to be loaded at run time, or weights
    to be replaced, as leapmodel serve does. Merged weights are taken out again at the end.
    """
    require_utf_8("--base", base)
    require_utf_8("--train-options", train_options)
    benchmark = chosen.open()
    tasks = chosen.tasks(benchmark, "train")
    arms: tuple[Arm, ...] = ARMS if arm == "both" else ("speculative",)
    require_batches(batches, tasks)
    contexts = [] if heldout is None else _heldout_contexts(benchmark, heldout)
    require_held_out(contexts, tasks)
    try:
        more = shlex.split(train_options)
    except ValueError as error:
        raise UsageError(f"--train-options: {error}") from None

    async def train(pairs: Pairs, folder: Path, previous: Path | None) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            listed = Path(scratch) / "pairs.jsonl"
            write_pairs(pairs, listed)
            onward = [] if previous is None else ["--continue", str(previous)]
            merged = ["--merge"] if swap == "merged" else []
            words = ["train", str(listed), "--base", base, "-o", str(folder), *merged]
            words += [*onward, *more]
            running = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "leapmodel", *words, stdout=asyncio.subprocess.DEVNULL
            )
            try:
                status = await running.wait()
            except asyncio.CancelledError:
                running.terminate()
                await running.wait()
                raise
        if status:
            raise EngineError(f"training {folder.name} ended with exit status {status}")

    async def work() -> list[Version]:
        async with AsyncExitStack() as stack:
            target_endpoint = await target.open(stack, stalled_s)
            draft_endpoint = await draft.open(stack, stalled_s, beside=target)
            models = Models(target_endpoint, draft_endpoint, draft.name)
            plan = Plan(benchmark, tasks, models, depth, arms, split="train")
            stream = Stream(
                plan, batches, method, train, base, swap, contexts, seed, {"train_options": more}
            )
            with Shown(plan) as shown:
                return await run_online(
                    stream, output, resume=resume, observe=shown.round, updated=_said
                )

    versions = run_to_end(work())
    if arm == "both":
        rounds = read_rounds(Path(output) / ROUNDS_NAME)
        console().print(online_curve(rounds, versions).summary(), soft_wrap=True)
    place = Path(output)
    click.echo(f"recorded in {place / ROUNDS_NAME} and {place / VERSIONS_NAME}")


def _heldout_contexts(benchmark: Benchmark, path: str) -> list[Context]:
    """Return the contexts of a trace that was recorded on this very benchmark."""
    trace = read_trace(path)
    refuse_other_benchmark(about_benchmark(benchmark), trace.metadata, f"--heldout {path}")
    return list(contexts_of(benchmark, trace, source=path))


def _said(version: Version) -> None:
    """Say what a version knows, as soon as it serves."""
    said = f"version {version.number}: {version.pairs} pairs"
    if version.number:
        said += f", loaded {version.update_s:.0f} s after the batch"
    if version.agreement is not None:
        said += f", agreement {version.agreement:.1%}"
    if version.agreement_se is not None:
        said += f" ± {version.agreement_se:.1%}"
    click.echo(said)
