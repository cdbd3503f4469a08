"""``leapmodel identity``: how often runs of the same tasks commit the same decisions."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from typing import Any

import click

from leapmodel.cli.options import json_option, names_of_files
from leapmodel.cli.screen import Row, clean, console, figure, print_json, show_table
from leapmodel.errors import UsageError
from leapmodel.identity import TrajectoryIdentity, trajectory_identity
from leapmodel.rounds import read_rounds

MOST_SHOWN = 10


@click.command("identity", short_help="Tell how often runs take the same decisions.")
@click.argument("files", metavar="ROUNDS…", nargs=-1, required=True, type=click.Path())
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--require",
    is_flag=True,
    help="End with status 1 unless all runs of the target alone are identical.",
)
@json_option
def command(files: tuple[str, ...], seed: int, require: bool, as_json: bool) -> None:
    """Compare the decisions that the runs in ROUNDS committed on the same tasks.

    Each run of each arm is compared with the others; the free text of replies is not.
    """
    for path in files:
        if files.count(path) > 1:
            raise UsageError(f"expected each record once, found {path} {files.count(path)} times")
    rounds = {
        name: read_rounds(path) for name, path in zip(names_of_files(files), files, strict=True)
    }
    answer = trajectory_identity(rounds, seed=seed)
    if as_json:
        print_json(answer.to_dict())
    else:
        _show(answer)
    if require and not answer.target_repeats_itself:
        sys.exit(1)


def _show(answer: TrajectoryIdentity) -> None:
    out = console()
    rows = [
        Row(
            [
                row["comparison"],
                row["configuration"],
                f"{row['tasks']}",
                f"{row['pairs']}",
                f"{row['identical']:.1%}",
                "-" if row["se"] != row["se"] else f"{100 * row['se']:.1f}",
                figure(row["first_difference"], 0),
            ]
        )
        for row in answer.table.to_dict(orient="records")
    ]
    show_table(
        out,
        "runs that commit identical decisions",
        ["", "configuration", "tasks", "pairs", "identical", "SE (points)", "first differs"],
        rows,
        keys=1,
        split_after=[2],
        caption="identical: share of the pairs of runs of one task; first differs: the median step"
        " of the first difference, from 0.",
    )
    for row in answer.differences.head(MOST_SHOWN).to_dict(orient="records"):
        ours, theirs = (_said(row, side) for side in ("first", "second"))
        out.print(
            f"  {clean(row['task'])}, step {row['step']}: {ours} ({row['first']}),"
            f" {theirs} ({row['second']})",
            soft_wrap=True,
        )
    if (more := len(answer.differences) - MOST_SHOWN) > 0:
        out.print(f"  … and {more} more (--json lists them)")


def _said(row: Mapping[Hashable, Any], side: str) -> str:
    """Say what one of two runs did where they differ."""
    if row["step"] >= row[f"{side}_steps"]:
        return "nothing, its record ends before"
    action = row[f"{side}_action"]
    return clean(action) if isinstance(action, str) else "no valid action"
