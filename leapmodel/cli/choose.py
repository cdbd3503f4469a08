"""``leapmodel choose``: every draft and depth side by side, and one recommendation."""

from __future__ import annotations

from math import isnan

import click

from leapmodel.choice import Choice
from leapmodel.cli.ask import ask_choice, choice_options
from leapmodel.cli.options import check_plot_path, json_option, plot_option, trace_argument
from leapmodel.cli.screen import (
    Row,
    console,
    figure,
    interval,
    percent,
    print_json,
    seconds,
    show_notes,
    show_table,
    show_verdict,
)
from leapmodel.trace import Trace


@click.command("choose", short_help="Compare drafts and depths, recommend one.")
@trace_argument
@choice_options
@json_option
@plot_option
def command(trace: str, as_json: bool, plot: str | None, **asked: object) -> None:
    """Compare drafts and depths on the workload in TRACE and recommend one.

    Without any --draft, those that need no GPU are learned from the trace itself.
    """
    check_plot_path(plot)
    workload, answer = ask_choice(trace, **asked)  # type: ignore[arg-type]
    if plot is not None:
        from leapmodel.plots import save

        save(answer.plot(), plot)
    if as_json:
        print_json(answer.to_dict())
        return
    _show(answer, workload, trace)
    if plot is not None:
        click.echo(f"picture: {plot}")


def _show(answer: Choice, workload: Trace, name: str) -> None:
    out = console()
    first = answer.drafts[0].prediction
    counted = f"{workload.n_tasks:,} tasks, {workload.n_steps:,} steps"
    out.print(f"{name}: {counted}, t_gen {first.gen_s_mean:.3g} s", soft_wrap=True)
    records = answer.to_frame().to_dict(orient="records")
    best = (answer.verdict.draft, answer.verdict.depth)
    has_money = answer.drafts[0].money is not None
    speeds, rules = [], []
    last = None
    for row in records:
        is_best = (row["draft"], row["k"]) == best
        new_group = last not in (None, row["draft"])
        label = row["draft"] if row["draft"] != last else ""
        last = row["draft"]
        key = [label, f"{row['k']}{' *' if is_best else ''}"]
        speeds.append(
            Row(
                [
                    *key,
                    figure(row["speedup"]),
                    interval(row["speedup_low"], row["speedup_high"]),
                    percent(row["extra_requests"]),
                    f"{percent(row['extra_tokens'])} ({percent(row['extra_tokens_bound'])})",
                    seconds(row["task_saved_p50_s"]),
                    seconds(row["task_saved_p95_s"]),
                    *([f"{row['money_speculative']:.3g}"] if has_money else []),
                ],
                is_best,
                new_group,
            )
        )
        needed = row["tasks_needed"]
        rules.append(
            Row(
                [
                    *key,
                    figure(row["gain"], 3),
                    figure(row["threshold"], 3),
                    "pays" if row["pays"] else "stop",
                    figure(row["q_k"], 3),
                    figure(row["threshold_simplified"], 3),
                    "pays" if row["q_k"] > row["threshold_simplified"] else "stop",
                    "none" if isnan(row["break_even"]) else figure(row["break_even"]),
                    figure(row["perfect_at_cost"]),
                    figure(row["ceiling"]),
                    "-" if isnan(needed) else f"{needed:,.0f}",
                ],
                is_best,
                new_group,
            )
        )
    money_note = (
        f" money: the target's tokens, in the currency of the prices; sequential"
        f" {records[0]['money_sequential']:.3g} a task; the draft's own tokens are not in it."
    )
    show_table(
        out,
        "predicted speedup and what it costs"
        + (f" ({first.trace_origin} trace)" if first.trace_origin else ""),
        ["draft", "k", "speedup", "95% interval", "extra requests", "extra tokens"]
        + ["saved p50", "saved p95"]
        + (["money a task"] if has_money else []),
        speeds,
        keys=2,
        split_after=[4],
        caption="extra: beyond one request and one completion a step; tokens until cancelled (if"
        " never cancelled). saved: seconds a task, of the median task and of the task that 95% save"
        " less than." + (money_note if has_money else ""),
    )
    show_table(
        out,
        "does the k-th proposal pay?",
        [
            *["draft", "k", "Δc", "needs", "Eq. 6", "q_k", "needs", "Eq. 7", "break-even"],
            *["perfect", "and free", f"tasks ±{answer.half_width:g}"],
        ],
        rules,
        keys=2,
        split_after=[8],
        caption="Eq. 6: the gain in commits must exceed S(k-1) × the growth of the round's cost;"
        " Eq. 7 (simplified): the hit rate must exceed S(k-1)(π d + Δβ); the verdict takes the"
        " largest speedup. break-even: acceptance at which S = 1; perfect: S if always right at"
        " this draft's cost, and free of cost; tasks: how many a 95% interval of S ±"
        f" {answer.half_width:g} needs.",
    )
    show_notes(out, "conditional on (no interval covers it)", answer.conditional_on)
    show_notes(out, "warnings", answer.warnings)
    show_verdict(out, answer.verdict, answer.advice)
