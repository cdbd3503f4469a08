"""``leapmodel agreement``: how often a draft says what the target did, on held-out contexts."""

from __future__ import annotations

from contextlib import AsyncExitStack

import click

from leapmodel.benchmarks import BENCHMARKS
from leapmodel.benchmarks.recorded import benchmark_of, recorded_tasks_file
from leapmodel.cli.answers_seen import AnswersSeen
from leapmodel.cli.asked_about import OwnContexts, of_benchmark, own_contexts_options
from leapmodel.cli.engine import ServedModel, draft_options, run_to_end, stalled_option
from leapmodel.cli.options import json_option, refuse_own_input
from leapmodel.cli.progress import progress_bar
from leapmodel.cli.screen import print_json
from leapmodel.drafts.held_out import held_out
from leapmodel.errors import EngineError, UsageError
from leapmodel.execution.agreement import Asking
from leapmodel.files import check_table_path
from leapmodel.predictions import Predictions, read_predictions, write_predictions
from leapmodel.trace import read_trace


@click.command("agreement", short_help="Ask a draft about a held-out trace, and score it.")
@click.argument("trace", metavar="TRACE", type=click.Path())
@draft_options
@stalled_option
@own_contexts_options
@click.option(
    "--benchmark",
    "benchmark_name",
    metavar="NAME",
    help=f"Default: the one TRACE names. Known: {', '.join(BENCHMARKS)}.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Answers to each context; they are averaged.",
)
@click.option(
    "--train-trace",
    metavar="TRACE",
    type=click.Path(),
    help="What the draft learned from: splits the tasks by whether their sequence of actions"
    " occurs there.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N tasks.")
@click.option("--no-reset", is_flag=True, help="Leave the draft's prefix cache as it is.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the task bootstrap.")
@click.option("--resume", is_flag=True, help="Go on with what -o holds.")
@click.option("-o", "--output", metavar="FILE", help="Write its predictions (.parquet, .jsonl).")
@json_option
def command(
    trace: str,
    draft: ServedModel,
    stalled_s: float,
    own: OwnContexts,
    benchmark_name: str | None,
    repeats: int,
    train_trace: str | None,
    limit: int | None,
    no_reset: bool,
    seed: int,
    resume: bool,
    output: str | None,
    as_json: bool,
) -> None:
    """Ask a draft for its action on every context of TRACE, one at a time (Table 7).

    What it answers can be written as predictions, with the seconds of each call, and then be given
    to predict and choose. With --contexts it needs no benchmark: what the draft decides are the
    tools it calls, as its server tells them, and a text is a reply.
    """
    if output is not None:
        check_table_path(output)
    refuse_own_input(output, [trace, train_trace, own.file, draft.extra_file])
    workload = read_trace(trace)
    refuse_own_input(output, [recorded_tasks_file(workload.metadata)])
    learned = None if train_trace is None else read_trace(train_trace)
    asked = own.asked(workload, trace, limit, names_a_benchmark=benchmark_name is not None)
    if asked is None:
        benchmark = benchmark_of(workload.metadata, trace, name=benchmark_name)
        asked = of_benchmark(benchmark, workload, trace, limit)
    elif benchmark_name is not None:
        raise UsageError("--benchmark: expected no --contexts beside it, which needs none")

    earlier = None
    if resume:
        if output is None:
            raise UsageError("--resume: expected -o FILE, which it goes on with")
        earlier = read_predictions(output)
    seen = AnswersSeen("draft")
    asking: Asking | None = None

    async def work() -> Predictions:
        nonlocal asking
        async with AsyncExitStack() as stack:
            endpoint = await draft.open(stack, stalled_s)
            asking = Asking(
                asked.contexts,
                endpoint,
                asked.decided,
                asked.about,
                bear=asked.bear,
                name=draft.name,
                repeats=repeats,
                reset_caches=not no_reset,
            )
            if earlier is not None:
                asking.go_on_with(earlier, str(output))
            with progress_bar() as bar:
                total, done = asking.total, len(asking.rows)
                task = bar.add_task("asking", total=total, completed=done, said="calls")
                return await asking.ask(tick=lambda: bar.advance(task), answered=seen)

    def left() -> str:
        """Keep what was answered, and say so."""
        if output is None or asking is None or not asking.rows:
            return "nothing was written"
        write_predictions(asking.so_far(), output)
        many = f"{len(asking.rows)} of {asking.total} answers are in {output}"
        return f"{many}; --resume asks for the rest"

    try:
        predictions: Predictions = run_to_end(work(), left)
    except EngineError as error:
        if output is None:
            raise
        raise EngineError(f"{error}; {left()}") from None
    if output is not None:
        write_predictions(predictions, output)
    asked.note_amiss(seen)
    found = held_out(workload, predictions, training=learned, seed=seed)
    if as_json:
        print_json(found.to_dict())
        return
    click.echo(found.summary())
    if output is not None:
        click.echo(f"predictions: {output}")
