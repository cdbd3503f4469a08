"""``leapmodel predict``: one draft at several depths."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.console import Console

from leapmodel.break_even import break_even
from leapmodel.cli.drafts import note_another_draft
from leapmodel.cli.options import (
    check_plot_path,
    json_option,
    open_trace,
    parse_depths,
    parse_numbers,
    plot_option,
    question_options,
    report_dropped,
    trace_argument,
)
from leapmodel.cli.screen import (
    Row,
    console,
    figure,
    interval,
    print_json,
    show_notes,
    show_table,
    show_verdict,
)
from leapmodel.cli.sketch import interval_line
from leapmodel.compared_draft import Pool, draft_from_predictions, draft_from_run
from leapmodel.draft import Draft, probed, stated_draft
from leapmodel.errors import UsageError
from leapmodel.measured_draft import draft_from_rounds
from leapmodel.prediction import Prediction
from leapmodel.predictions import read_predictions
from leapmodel.predictor import predict
from leapmodel.probes import read_probe
from leapmodel.replay import Terminal
from leapmodel.rounds import read_rounds
from leapmodel.trace import Trace, read_trace


@click.command("predict", short_help="Predict the speedup of one draft.")
@trace_argument
@question_options
@click.option("--acceptance", metavar="P[,P…]", help="Stated acceptance: one, or one per position.")
@click.option(
    "--draft-latency", type=float, metavar="SECONDS", help="Stated seconds of a draft call."
)
@click.option("--draft-cost", type=float, metavar="D", help="The same in target steps.")
@click.option(
    "--probe",
    type=click.Path(),
    help="Take the draft's latency, and the target's slowdown with requests at once, from a file of"
    " leapmodel probe.",
)
@click.option("--draft-run", type=click.Path(), help="Trace of an independent run of the draft.")
@click.option("--predictions", type=click.Path(), help="The draft's predictions on the contexts.")
@click.option("--rounds", type=click.Path(), help="Rounds measured with the draft, as in a pilot.")
@click.option("--draft-name", help="Which draft of a file with several.")
@click.option(
    "--pool",
    type=click.Choice(["auto", "all", "position", "task"]),
    default="auto",
    show_default=True,
    help="With --draft-run: one acceptance for all, one per round position, one per task (drawn"
    " towards the usual), or per task if they differ (auto).",
)
@click.option(
    "--evidence-trace",
    type=click.Path(),
    help="The target's trace that --draft-run or --predictions belong to, if not TRACE.",
)
@json_option
@plot_option
def command(
    trace: str,
    lenient: bool,
    boundary_tools: str | None,
    winsorize: float | None,
    depths: str,
    terminal: Terminal,
    resamples: int,
    seed: int,
    acceptance: str | None,
    draft_latency: float | None,
    probe: str | None,
    draft_cost: float | None,
    draft_run: str | None,
    predictions: str | None,
    rounds: str | None,
    draft_name: str | None,
    pool: Pool,
    evidence_trace: str | None,
    as_json: bool,
    plot: str | None,
) -> None:
    """Predict the speedup of one draft on the workload in TRACE.

    Say what the draft is in one of four ways: --acceptance with --draft-latency (or
    --draft-cost), --draft-run, --predictions, or --rounds.
    """
    check_plot_path(plot)
    ks = parse_depths(depths)
    ways = {
        "--acceptance": acceptance,
        "--draft-run": draft_run,
        "--predictions": predictions,
        "--rounds": rounds,
    }
    given = [option for option, value in ways.items() if value is not None]
    if len(given) != 1:
        found = " and ".join(given) if given else "none"
        raise UsageError(
            f"expected one of --acceptance, --draft-run, --predictions or --rounds, found {found}"
        )
    costs = {"--draft-latency": draft_latency, "--draft-cost": draft_cost, "--probe": probe}
    stated = [option for option, value in costs.items() if value is not None]
    if len(stated) > 1:
        raise UsageError(f"expected one of {', '.join(costs)}; found {' and '.join(stated)}")
    timed = None if probe is None else read_probe(probe)
    if timed is not None:
        draft_latency = timed.draft_latency_s
    numbers = None if acceptance is None else parse_numbers(acceptance, "--acceptance")
    if numbers is not None and draft_latency is None and draft_cost is None:
        raise UsageError("--acceptance needs --draft-latency SECONDS (or --draft-cost D)")
    for option, value, goes_with in (
        ("--pool", None if pool == "auto" else pool, draft_run),
        ("--draft-name", draft_name, predictions or rounds),
        ("--evidence-trace", evidence_trace, draft_run or predictions),
    ):
        if value is not None and goes_with is None:
            raise UsageError(f"{option} says nothing about {given[0]}")
    workload = open_trace(trace, lenient, boundary_tools, winsorize)
    of = None if evidence_trace is None else open_trace(evidence_trace, lenient, boundary_tools)
    draft: Draft
    if numbers is not None:
        draft = stated_draft(numbers, latency_s=draft_latency, cost=draft_cost)
    elif predictions is not None:
        answers = read_predictions(predictions, lenient=lenient)
        report_dropped(answers)
        note_another_draft(timed, answers.select(draft_name).draft_names)
        draft = draft_from_predictions(
            workload,
            answers,
            draft=draft_name,
            latency_s=draft_latency,
            cost=draft_cost,
            evidence_trace=of,
        )
    elif rounds is not None:
        measured = read_rounds(rounds, lenient=lenient)
        report_dropped(measured)
        draft = draft_from_rounds(
            workload, measured, draft=draft_name, latency_s=draft_latency, cost=draft_cost
        )
    else:
        assert draft_run is not None
        run = read_trace(draft_run, lenient=lenient)
        report_dropped(run)
        draft = draft_from_run(
            workload,
            run,
            pool=pool,
            depth=int(ks[-1]),
            latency_s=draft_latency,
            cost=draft_cost,
            evidence_trace=of,
            name=Path(draft_run).stem,
        )
    if timed is not None:
        draft = probed(draft, timed.slowdown)
    with Console(stderr=True).status("replaying and resampling"):  # nothing when piped
        answer = predict(
            workload,
            draft,
            ks,
            terminal=terminal,
            n_resamples=resamples,
            seed=seed,
        )
    if plot is not None:
        from leapmodel.plots import save, side_by_side

        left, right = side_by_side(2)
        answer.plot_round_cost(right)
        save(answer.plot(left), plot)
    if as_json:
        print_json(answer.to_dict())
        return
    _show(answer, workload, trace)
    if plot is not None:
        click.echo(f"picture: {plot}")


def _show(answer: Prediction, workload: Trace, name: str) -> None:
    out = console()
    tools = f", tools f = {answer.tool_step_share:.2f}, τ = {answer.tool_cost:.3f}"
    out.print(
        f"{name}: {workload.n_tasks:,} tasks, {workload.n_steps:,} steps, t_gen"
        f" {answer.gen_s_mean:.3g} s, CV {answer.gen_s_cv:.2f}{tools if answer.tool_cost else ''}",
        soft_wrap=True,
    )
    out.print(f"draft: {answer.draft.source}; {_evidence(answer)}", soft_wrap=True)
    columns = ["k", "speedup", "95% interval", "picture", "c", "β", "D", "gτ", "e"]
    columns += ["SE", "unknown miss…hit", "hit rates q₁ q₂ …"]
    frame = answer.to_frame()
    has_bounds = answer.bounds is not None
    hidden = {
        *([] if has_bounds else ["unknown miss…hit"]),
        *([] if answer.tool_cost else ["gτ"]),
    }
    seen = frame[["speedup", "speedup_low", "speedup_high"]].to_numpy()
    axis = (min(1.0, float(np.nanmin(seen))) - 0.05, max(1.0, float(np.nanmax(seen))) + 0.05)
    heading = f"{axis[0]:.2f} (│ is 1) {axis[1]:.2f}"
    rows = []
    for i, row in enumerate(frame.to_dict(orient="records")):
        q = answer.replay.hit_rates[i]
        q = q[np.isfinite(q)]
        cells = {
            "k": f"{int(row['k'])}",
            "speedup": figure(row["speedup"]),
            "95% interval": interval(row["speedup_low"], row["speedup_high"]),
            "picture": interval_line(
                row["speedup_low"], row["speedup"], row["speedup_high"], axis=axis
            ),
            "c": figure(row["commits"]),
            "β": figure(row["wait_inflation"]),
            "D": figure(row["draft_term"]),
            "gτ": figure(row["target_tool_term"]),
            "e": figure(row["bonus_loss"]),
            "SE": figure(row["speedup_se"]),
            "unknown miss…hit": f"{row['if_all_miss']:.2f}…{row['if_all_hit']:.2f}",
            "hit rates q₁ q₂ …": " ".join(f"{x:.2f}" for x in q[:4]) + (" …" if len(q) > 4 else ""),
        }
        best = row["k"] == answer.verdict.depth
        rows.append(Row([cells[name] for name in columns if name not in hidden], best=best))
    shown = [name for name in columns if name not in hidden]
    headings = [heading if name == "picture" else name for name in shown]
    bounds_note = (
        " unknown miss…hit: S with the known outcomes at their own steps and all others missed …"
        " hit (S itself spreads the pooled acceptance evenly, so it may lie outside)."
    )
    show_table(
        out,
        "predicted speedup by depth"
        + (f" ({answer.trace_origin} trace)" if answer.trace_origin else ""),
        headings,
        rows,
        keys=1,
        split_after=[shown.index("picture") + 1, shown.index("e") + 1],
        caption="S = c(1+fτ)/(β+D+gτ), Eq. 1. c: committed steps a round; β: wait for the slowest"
        " verification, D: proposing (draft calls and proposals' tools), gτ: the target's own"
        " tools, each in target steps a round; e: bonus steps lost at segment ends; each interval"
        " is that depth's own." + (bounds_note if has_bounds else ""),
    )
    breaks_even = break_even(workload, answer)[answer.depths == answer.verdict.depth][0]
    if np.isfinite(breaks_even):
        k = answer.verdict.depth
        out.print(f"At this cost k = {k} breaks even at an acceptance of {breaks_even:.2f}.")
    else:
        out.print("At this cost no acceptance would reach 1x.")
    show_notes(out, "conditional on (no interval covers it)", answer.conditional_on)
    show_notes(out, "warnings", answer.warnings)
    show_verdict(out, answer.verdict, answer.advice)


def _evidence(answer: Prediction) -> str:
    facts, draft = answer.draft.facts, answer.draft
    said = []
    if "known" in facts:
        said.append(
            f"{facts['hits']:,.0f} hits on {facts['known']:,.0f} known steps"
            f" ({facts['hits'] / facts['known']:.3f})"
        )
    if "acceptance_before_last" in facts and "acceptance_at_last" in facts:
        said.append(
            f"{facts['acceptance_before_last']:.3f} where a hit saves a round,"
            f" {facts['acceptance_at_last']:.3f} at the last steps of segments, where none does"
        )
    if draft.coverage is not None:
        said.append(f"{draft.coverage:.0%} of the steps known")
    if "paired_tasks" in facts:
        said.append(f"{facts['paired_tasks']:.0f} tasks paired")
    said.append(f"a call takes {answer.call_s:.3g} s, d = {answer.draft_cost:.3f} of a target step")
    if "unmatched_cost" in facts and draft.cost.measured:
        said.append(f"(over all steps of both runs it would be {facts['unmatched_cost']:.3f})")
    return "; ".join(said).replace("; (", " (")
