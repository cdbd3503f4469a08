"""``leapmodel compare``: two traces side by side."""

from __future__ import annotations

import click

from leapmodel.cli.options import json_option, open_trace, parse_depths, parse_numbers
from leapmodel.cli.screen import Row, console, figure, print_json, show_table
from leapmodel.comparison import (
    ASSUMED_ACCEPTANCE,
    ASSUMED_COST,
    TraceComparison,
    compare_traces,
)
from leapmodel.draft import stated_draft


@click.command("compare", short_help="Tell whether two traces differ enough to matter.")
@click.argument("first", metavar="TRACE", type=click.Path())
@click.argument("second", metavar="TRACE", type=click.Path())
@click.option(
    "--acceptance", default=f"{ASSUMED_ACCEPTANCE:g}", show_default=True, metavar="P[,P…]"
)
@click.option(
    "--draft-cost",
    type=float,
    metavar="D",
    help=f"Target steps a draft call costs.  [default: {ASSUMED_COST:g}]",
)
@click.option("--draft-latency", type=float, metavar="SECONDS", help="The same in seconds.")
@click.option("--k", "depths", default="1:6", show_default=True, metavar="K")
@click.option("--boundary-tools", metavar="PATTERNS", help="As for describe.")
@click.option("--lenient", is_flag=True, help="Leave out tasks with bad rows and report each.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@json_option
def command(
    first: str,
    second: str,
    acceptance: str,
    draft_cost: float | None,
    draft_latency: float | None,
    depths: str,
    boundary_tools: str | None,
    lenient: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Compare two TRACEs: step times, lengths, tools, actions, and what that means for a draft."""
    if draft_cost is None and draft_latency is None:
        draft_cost = ASSUMED_COST
    draft = stated_draft(
        parse_numbers(acceptance, "--acceptance"), latency_s=draft_latency, cost=draft_cost
    )
    ks = parse_depths(depths)
    traces = [open_trace(path, lenient, boundary_tools) for path in (first, second)]
    answer = compare_traces(*traces, draft=draft, depths=ks, seed=seed)
    if as_json:
        print_json(answer.to_dict())
    else:
        _show(answer, first, second)


def _show(answer: TraceComparison, first: str, second: str) -> None:
    out = console()
    rows = [
        Row(
            [
                str(row["quantity"]),
                figure(row["first"], 3),
                figure(row["second"], 3),
                f"{row['difference']:+.3f}",
                f"{row['low']:+.3f} to {row['high']:+.3f}" if row["low"] == row["low"] else "-",
                "differs" if row["differs"] else "",
            ],
            best=bool(row["differs"]),
        )
        for row in answer.table.to_dict(orient="records")
    ]
    show_table(
        out,
        f"{first} and {second}",
        ["", "first", "second", "difference", "interval", ""],
        rows,
        keys=1,
        split_after=[3],
        caption="The intervals hold together, so that two like traces seldom differ in any. "
        + ("Tasks of the same name are resampled together. " if answer.paired else "")
        + f"Action mix: distance {answer.mix_distance:.2f} of 1, p = {answer.mix_p_value:.3f} by"
        " random splits of the tasks.",
    )
    out.print(answer.sentence)
