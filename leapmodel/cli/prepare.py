"""``leapmodel prepare``: the weights of the CPU preset."""

from __future__ import annotations

import click

from leapmodel.cli.progress import progress_bar
from leapmodel.execution.training.weights import NAMES, cpu_weights


@click.command("prepare", short_help="Make the small models that a machine without a GPU runs.")
@click.option("--preset", type=click.Choice(["cpu"]), default="cpu", show_default=True)
@click.option(
    "--only",
    metavar="NAMES",
    help=f"Some of {', '.join(NAMES)}; separated by commas. Default: the drafts, and the target"
    " that suits this processor.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Barely trained, in a few minutes, and tiny all of them: to see that everything works.",
)
def command(preset: str, only: str | None, quick: bool) -> None:
    """Make the models of a preset, once, and say where they are.

    The target is SmolLM2-135M, taught to think briefly before it acts, or a pruned one where the
    processor has no fast bfloat16; the drafts, which know nothing of it yet, are tiny or SmolLM2.
    They go to $LEAPMODEL_CACHE, by default the user's cache folder; what is there is not made
    again.
    """
    names = None if only is None else [name.strip() for name in only.split(",") if name.strip()]
    with progress_bar() as bar:
        bars = {}

        def step(name: str, done: int, total: int) -> None:
            if name not in bars:
                bars[name] = bar.add_task(name, total=total, said="steps")
            bar.update(bars[name], completed=done)

        weights = cpu_weights(
            names,
            quick=quick,
            say=lambda text: click.echo(f"leapmodel: {text}", err=True),
            progress=step,
        )
    for name in weights.names:
        click.echo(f"{name}: {weights.folder / name}")
