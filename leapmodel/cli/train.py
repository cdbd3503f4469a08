"""``leapmodel train``: a draft learns what the target did."""

from __future__ import annotations

import click

from leapmodel.benchmarks.interface import all_tasks
from leapmodel.benchmarks.recorded import benchmark_of
from leapmodel.cli.options import folder_option
from leapmodel.cli.progress import progress_bar
from leapmodel.errors import DataError
from leapmodel.execution.training.pairs import Pairs, read_pairs
from leapmodel.execution.training.sft import (
    LONGEST,
    PAPER,
    Recipe,
    new_folder,
    recipe_for,
    train_draft,
)
from leapmodel.execution.training.supervision import (
    pairs_from_gold,
    pairs_from_rounds,
    pairs_from_trace,
)
from leapmodel.files import kind_of
from leapmodel.rounds import read_rounds
from leapmodel.trace import read_trace


@click.command("train", short_help="Fit a draft to the target's actions (LoRA).")
@click.argument("source", metavar="PAIRS_OR_TRACE", type=click.Path())
@folder_option("A new folder.")
@click.option("--base", required=True, metavar="MODEL", help="The draft: a directory or a name.")
@click.option(
    "--preset",
    type=click.Choice(["paper", "cpu"]),
    default="paper",
    show_default=True,
    help="Where learning rate, epochs and batch come from: the paper, or what suits a base of so"
    " few parameters as the CPU preset's.",
)
@click.option("--lora-rank", "rank", type=int, help=f"Default: {PAPER.rank}.")
@click.option("--alpha", type=int, help="Default: twice the rank.")
@click.option("--lr", "learning_rate", type=float, help=f"Default: {PAPER.learning_rate:g}.")
@click.option("--epochs", type=int, help=f"Default: {PAPER.epochs}.")
@click.option("--batch-size", type=int, help=f"Default: {PAPER.batch_size}.")
@click.option(
    "--select",
    type=click.Choice(["loss", "exact-match"]),
    help=f"How the epoch is chosen on the validation tasks. Default: {PAPER.select}.",
)
@click.option(
    "--fraction",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=1.0,
    show_default=True,
    help="Learn from this share of the tasks.",
)
@click.option(
    "--supervision",
    type=click.Choice(["target", "gold"]),
    default="target",
    show_default=True,
    help="What the target did, or the benchmark's own answers to the same tasks.",
)
@click.option("--full", is_flag=True, help="Train all weights, not an adapter.")
@click.option(
    "--continue", "adapter", type=click.Path(), metavar="ADAPTER", help="Go on with this adapter."
)
@click.option(
    "--merge",
    is_flag=True,
    help="Write whole weights with the adapter merged into them, which are faster where an engine"
    " is slow with adapters, as on a CPU; the adapter goes into a folder beside them.",
)
@click.option(
    "--longest",
    type=click.IntRange(min=1),
    default=LONGEST,
    show_default=True,
    metavar="TOKENS",
    help="Refuse a pair with more tokens.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of the fraction, the validation tasks and the training.",
)
def command(
    source: str,
    output: str,
    base: str,
    preset: str,
    rank: int | None,
    alpha: int | None,
    learning_rate: float | None,
    epochs: int | None,
    batch_size: int | None,
    select: str | None,
    fraction: float,
    supervision: str,
    full: bool,
    adapter: str | None,
    merge: bool,
    longest: int,
    seed: int,
) -> None:
    """Fine-tune a draft on canonical actions alone, without the target's reasoning (Sec. 3.3).

    PAIRS_OR_TRACE is a trace or rounds of the training tasks, whose contexts are rebuilt, or a file
    of pairs. A tenth of the tasks chooses the epoch. FOLDER gets the adapter (peft's format, which
    vLLM serves) and training.json.
    """
    new_folder(output)
    pairs = _pairs(source, supervision).fraction(fraction, seed=seed)
    given = {
        "rank": rank,
        "alpha": 2 * rank if alpha is None and rank is not None else alpha,
        "learning_rate": learning_rate,
        "epochs": epochs,
        "batch_size": batch_size,
        "select": select,
    }
    stated = {name: value for name, value in given.items() if value is not None}
    recipe = Recipe(**{**recipe_for(base, preset), **stated, "full": full, "seed": seed})
    click.echo(f"leapmodel: {pairs.summary()}", err=True)
    with progress_bar() as bar:
        task = bar.add_task("training", total=None, said="steps")
        done = train_draft(
            pairs,
            base,
            output,
            recipe,
            adapter=adapter,
            merge=merge,
            longest=longest,
            progress=lambda step, steps: bar.update(task, completed=step, total=steps),
        )
    click.echo(done.summary())


def _pairs(source: str, supervision: str) -> Pairs:
    """Return the pairs that a file holds, or that stand behind it."""
    kind = kind_of(source)
    if kind == "predictions":
        raise DataError(source, expected="pairs, a trace or rounds", found="predictions")
    if kind == "pairs":
        pairs = read_pairs(source)
    elif kind == "rounds":
        pairs = pairs_from_rounds(read_rounds(source), source=source)
    else:
        pairs = pairs_from_trace(read_trace(source), source=source)
    if supervision == "target" or pairs.metadata.get("supervision") == "gold":
        return pairs
    benchmark = benchmark_of(pairs.metadata, source)
    known = all_tasks(benchmark)
    return pairs_from_gold(benchmark, [known[name] for name in pairs.task_names if name in known])
