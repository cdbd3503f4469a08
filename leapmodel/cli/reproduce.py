"""``leapmodel reproduce``: the paper's tables and figures, each number with its origin."""

from __future__ import annotations

from pathlib import Path

import click

from leapmodel.errors import UsageError


@click.command("reproduce", short_help="Make the paper's tables and figures again.")
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    help="Write them there (CSV, Markdown; figures as PDF and PNG) instead of printing numbers.",
)
def command(names: tuple[str, ...], output: str | None) -> None:
    """Make tables and figures of the LEAP paper again: table10, fig4, …, or all.

    Every number is published (the paper's own entry), recomputed (from published numbers by an
    equation) or reconstructed (replayed on a made-up trace that fits what the paper states), and
    says which. Without NAME, list what there is.
    """
    from leapmodel.paper.reproduce import ARTEFACTS, find, write_all

    if not names:
        width = max(map(len, ARTEFACTS))
        for artefact in ARTEFACTS.values():
            click.echo(f"{artefact.name:<{width}}  {artefact.what}")
        return
    artefacts = find(names)
    if output is None:
        for artefact in artefacts:
            for table in artefact.parts().values():
                click.echo(table.summary() + "\n")
            if artefact.left_out:
                click.echo(f"left out: {artefact.left_out}\n")
        return
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{output}: expected a folder")
    folder.mkdir(parents=True, exist_ok=True)
    if len(artefacts) == len(ARTEFACTS):
        written = write_all(folder)
    else:
        written = [path for artefact in artefacts for path in artefact.write(folder)]
    for path in written:
        click.echo(f"wrote {path}")
