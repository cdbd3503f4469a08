"""``leapmodel choose``: every draft and depth side by side, and one recommendation."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from leapmodel.choice import Choice, choose
from leapmodel.cli.drafts import parse_draft
from leapmodel.cli.options import (
    check_plot_path,
    json_option,
    open_trace,
    parse_depths,
    parse_numbers,
    plot_option,
    question_options,
    trace_argument,
)
from leapmodel.cli.screen import (
    console,
    figure,
    interval,
    new_table,
    percent,
    print_json,
    seconds,
    show_notes,
    show_verdict,
)
from leapmodel.draft import Pool
from leapmodel.errors import UsageError
from leapmodel.money import Prices
from leapmodel.replay import Terminal
from leapmodel.trace import Trace


@click.command("choose")
@trace_argument
@click.option(
    "--draft",
    "specs",
    multiple=True,
    required=True,
    metavar="[NAME=]WHAT",
    help="A candidate; repeat it. WHAT is a trace of the draft's own run, a predictions file, or"
    " ACCEPTANCE@COST such as 0.8@0.2 (seconds a call) or 0.8@0.07x (target steps).",
)
@question_options
@click.option(
    "--pool",
    type=click.Choice(["all", "position", "task"]),
    default="all",
    show_default=True,
    help="For drafts known by a run: how to pool their hits.",
)
@click.option(
    "--evidence-trace",
    type=click.Path(),
    help="The target's trace that the drafts' files belong to, if not TRACE.",
)
@click.option(
    "--prices",
    metavar="PROMPT,CACHED,COMPLETION",
    help="Prices of the target's tokens per million, such as 0.15,0.075,0.6.",
)
@click.option(
    "--half-width",
    type=click.FloatRange(0.001, 1),
    default=0.05,
    show_default=True,
    help="How many tasks does a 95% interval of this half-width need?",
)
@json_option
@plot_option
def command(
    trace: str,
    lenient: bool,
    boundary_tools: str | None,
    specs: tuple[str, ...],
    depths: str,
    terminal: Terminal,
    resamples: int,
    seed: int,
    pool: Pool,
    evidence_trace: str | None,
    prices: str | None,
    half_width: float,
    as_json: bool,
    plot: str | None,
) -> None:
    """Compare drafts and depths on the workload in TRACE and recommend one."""
    check_plot_path(plot)
    ks = parse_depths(depths)
    price_list = None if prices is None else _parse_prices(prices)
    workload = open_trace(trace, lenient, boundary_tools)
    of = None if evidence_trace is None else open_trace(evidence_trace, lenient, boundary_tools)
    drafts = [
        draft
        for spec in specs
        for draft in parse_draft(
            spec,
            workload,
            pool=pool,
            depth=int(ks[-1]),
            lenient=lenient,
            evidence_trace=of,
        )
    ]
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(f"replaying {len(drafts)} drafts", total=len(drafts))
        answer = choose(
            workload,
            drafts,
            ks,
            terminal=terminal,
            prices=price_list,
            half_width=half_width,
            n_resamples=resamples,
            seed=seed,
            progress=lambda name: bar.update(task, advance=1, description=f"replayed {name}"),
        )
    if plot is not None:
        from leapmodel.plots import save

        save(answer.plot(), plot)
    if as_json:
        print_json(answer.to_dict())
        return
    _show(answer, workload, trace)
    if plot is not None:
        click.echo(f"picture: {plot}")


def _parse_prices(text: str) -> Prices:
    numbers = parse_numbers(text, "--prices")
    if len(numbers) != 3:
        raise UsageError(f"--prices: expected PROMPT,CACHED,COMPLETION, found {text!r}")
    return Prices(*numbers)


def _show(answer: Choice, workload: Trace, name: str) -> None:
    out = console()
    t_gen = answer.drafts[0].prediction.gen_s_mean
    out.print(
        f"{name}: {workload.n_tasks:,} tasks, {workload.n_steps:,} steps, t_gen {t_gen:.3g} s"
    )
    rows = answer.to_frame().to_dict(orient="records")
    best = (answer.verdict.draft, answer.verdict.depth)
    origin = answer.drafts[0].prediction.trace_origin
    money = rows[0]["money_sequential"] == rows[0]["money_sequential"]
    main = new_table(
        "predicted speedup and what it costs" + (f" ({origin} trace)" if origin else ""),
        "draft",
        "k",
        "speedup",
        "95% interval",
        "extra requests",
        "extra tokens",
        "saved a task p50",
        "p95",
        *(["money a task"] if money else []),
        caption="extra: beyond one request, one completion a step; tokens until cancelled"
        " (if never cancelled)"
        + (f"; sequential money a task: {rows[0]['money_sequential']:.3g}" if money else ""),
    )
    rule = new_table(
        "does the k-th proposal pay?",
        "draft",
        "k",
        "Δc",
        "needs",
        "Eq. 6",
        "q_k",
        "needs",
        "Eq. 7",
        "break-even",
        "perfect",
        "and free",
        f"tasks ±{answer.half_width:g}",
        caption="Eq. 6: the gain in commits must exceed S(k-1) × the growth of the round's cost;"
        " Eq. 7: the hit rate must exceed S(k-1)(π d + Δβ). break-even: acceptance at which S = 1;"
        " perfect: S if always right at this draft's cost, and free of cost; tasks: how many a 95%"
        f" interval of S ± {answer.half_width:g} needs",
    )
    last = None
    for row in rows:
        style = "bold" if (row["draft"], row["k"]) == best else None
        if last not in (None, row["draft"]):
            main.add_section()
            rule.add_section()
        label = row["draft"] if row["draft"] != last else ""
        last = row["draft"]
        main.add_row(
            label,
            f"{row['k']}{' *' if style else ''}",
            figure(row["speedup"]),
            interval(row["speedup_low"], row["speedup_high"]),
            percent(row["extra_requests"]),
            f"{percent(row['extra_tokens'])} ({percent(row['extra_tokens_bound'])})",
            seconds(row["task_saved_p50_s"]),
            seconds(row["task_saved_p95_s"]),
            *([f"{row['money_speculative']:.3g}"] if money else []),
            style=style,
        )
        needed = row["tasks_needed"]
        rule.add_row(
            label,
            f"{row['k']}{' *' if style else ''}",
            figure(row["gain"], 3),
            figure(row["threshold"], 3),
            "pays" if row["pays"] else "stop",
            figure(row["q_k"], 3),
            figure(row["threshold_simplified"], 3),
            "pays" if row["q_k"] > row["threshold_simplified"] else "stop",
            "none" if row["break_even"] != row["break_even"] else figure(row["break_even"]),
            figure(row["perfect_at_cost"]),
            figure(row["ceiling"]),
            "-" if needed != needed else f"{needed:,.0f}",
            style=style,
        )
    out.print(main)
    out.print(rule)
    show_notes(out, "conditional on (no interval covers it)", answer.conditional_on)
    show_notes(out, "warnings", answer.warnings)
    show_verdict(out, answer.verdict, answer.advice)
