"""``leapmodel drafts``: how predictable is the agent, from its own log alone."""

from __future__ import annotations

import click

from leapmodel.cli.options import (
    check_plot_path,
    json_option,
    open_trace,
    plot_option,
    refuse_own_input,
)
from leapmodel.cli.screen import Row, console, figure, print_json, show_table
from leapmodel.drafts import (
    DRAFTS,
    Ablation,
    Agreement,
    SelfAgreement,
    agreement,
    memory_ablation,
    prequential,
    self_agreement,
)
from leapmodel.drafts.agreement import plot_learning_curves
from leapmodel.files import check_table_path
from leapmodel.predictions import Predictions, write_predictions


@click.command("drafts", short_help="Learn drafts that need no GPU; how predictable is the agent?")
@click.argument("trace", metavar="TRACE", type=click.Path())
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Meet the tasks in a shuffled order, not the trace's own.",
)
@click.option("-o", "--output", metavar="FILE", help="Write their predictions (.parquet, .jsonl).")
@click.option("--lenient", is_flag=True, help="Leave out tasks with bad rows and report each.")
@click.option("--boundary-tools", metavar="PATTERNS", help="As for describe.")
@json_option
@plot_option
def command(
    trace: str,
    seed: int | None,
    output: str | None,
    lenient: bool,
    boundary_tools: str | None,
    as_json: bool,
    plot: str | None,
) -> None:
    """Learn drafts from the tasks of TRACE, each task predicted from the earlier ones alone.

    Shows how often each agrees with the agent, action and arguments or the tool alone, how that
    grows, what a proposal costs, and how often the agent agrees with itself.
    """
    check_plot_path(plot)
    if output is not None:
        check_table_path(output)
    refuse_own_input(output, [trace])
    workload = open_trace(trace, lenient, boundary_tools)
    predicted = [prequential(workload, make(), seed=seed) for make in DRAFTS.values()]
    found = [agreement(workload, predictions) for predictions in predicted]
    ablation = memory_ablation(workload, seed=seed)
    itself = self_agreement(workload)
    if output is not None:
        import pandas as pd

        together = pd.concat([p.frame for p in predicted], ignore_index=True)
        about = {"made_by": "leapmodel drafts", "order": predicted[0].metadata["order"]}
        write_predictions(Predictions.from_frame(together, about), output)
    if plot is not None:
        from leapmodel.plots import save

        save(plot_learning_curves(found), plot)
    if as_json:
        print_json(
            {
                "schema_version": 1,
                "drafts": [one.to_dict() for one in found],
                "memory_ablation": ablation.to_dict(),
                "self_agreement": None if itself is None else itself.to_dict(),
            }
        )
        return
    _show(found, ablation, itself, trace)
    for what, path in (("predictions", output), ("picture", plot)):
        if path is not None:
            click.echo(f"{what}: {path}")


def _show(
    found: list[Agreement], ablation: Ablation, itself: SelfAgreement | None, name: str
) -> None:
    out = console()
    rows = []
    for one in found:
        first, last = one.learning_curve[0].exact.value, one.learning_curve[-1].exact.value
        cells = [
            one.draft,
            f"{one.exact}",
            f"{one.name_only}",
            f"{one.proposed.value:.0%}",
            f"{first:.0%} … {last:.0%}",
            "-" if one.mean_us is None else figure(one.mean_us, 0),
        ]
        rows.append(Row(cells))
    show_table(
        out,
        f"drafts learned from {name}, {found[0].order}",
        ["draft", "agreement ± SE", "tool alone", "proposes", "first … last tenth", "µs a call"],
        rows,
        keys=1,
        split_after=[3],
        caption="agreement: share of steps whose action, arguments included, it predicted; a step"
        " without a proposal is a miss. Each task is predicted from earlier tasks alone.",
    )
    out.print(ablation.summary(), soft_wrap=True)
    out.print()
    if itself is None:
        out.print("No task has two runs: how often the agent agrees with itself can't be seen.")
    else:
        out.print(itself.summary())
