"""``leapmodel validate``: what the model says beside what a run measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from leapmodel.cli.options import (
    check_plot_path,
    json_option,
    names_of_files,
    plot_option,
    report_dropped,
)
from leapmodel.cli.screen import (
    Row,
    console,
    figure,
    interval,
    print_json,
    show_notes,
    show_table,
)
from leapmodel.errors import UsageError
from leapmodel.files import kind_of
from leapmodel.predictions import Predictions, join_predictions, read_predictions
from leapmodel.probes import read_probe, what_was_probed
from leapmodel.rounds import Rounds, read_rounds
from leapmodel.set_validation import validate_set
from leapmodel.trace import Trace, read_trace
from leapmodel.validation import Validation, validate
from leapmodel.validation_row import FAR, NEAR


@click.command("validate", short_help="Compare measured speedups with the model's.")
@click.argument("files", metavar="[TRACE] ROUNDS…", nargs=-1, required=True, type=click.Path())
@click.option(
    "--predictions",
    multiple=True,
    type=click.Path(),
    help="The drafts' predictions on the sequential trace: adds what could be said before the run;"
    " may be repeated.",
)
@click.option(
    "--draft-latency",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="With --predictions: seconds of a draft call from a probe.",
)
@click.option(
    "--probe",
    "probes",
    multiple=True,
    type=click.Path(),
    help="The same from a file of leapmodel probe; may be repeated, one for each draft.",
)
@click.option("--lenient", is_flag=True, help="Leave out tasks with bad rows and report each.")
@click.option(
    "--resamples",
    default=10_000,
    show_default=True,
    type=click.IntRange(100, 1_000_000),
    help="Bootstrap resamples of whole tasks.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@json_option
@plot_option
def command(
    files: tuple[str, ...],
    predictions: tuple[str, ...],
    draft_latency: float | None,
    probes: tuple[str, ...],
    lenient: bool,
    resamples: int,
    seed: int,
    as_json: bool,
    plot: str | None,
) -> None:
    """Compare the speedups measured in ROUNDS with those of the latency model.

    TRACE is the sequential trace; without it, the sequential arm in ROUNDS is taken. Every draft
    and depth in the files is one row. Instead of files, a folder that `make measure` wrote, or one
    of the folders in it.
    """
    check_plot_path(plot)
    if draft_latency is not None and probes:
        raise UsageError("expected --draft-latency or --probe, found both")
    if any(Path(path).is_dir() for path in files):
        if len(files) > 1 or predictions or probes or draft_latency is not None or lenient:
            raise UsageError(
                "a folder of make measure's holds all that is needed: expected it alone, without"
                " --predictions, --probe, --draft-latency and --lenient"
            )
        answer = validate_set(files[0], n_resamples=resamples, seed=seed)
    else:
        if not predictions and (draft_latency is not None or probes):
            raise UsageError("a draft's latency says nothing without --predictions")
        trace, rounds = _read(files, lenient)
        answer = validate(
            rounds,
            trace,
            predictions=_answers(predictions, lenient) if predictions else None,
            **({"draft_latency_s": draft_latency} | what_was_probed([*map(read_probe, probes)])),
            n_resamples=resamples,
            seed=seed,
        )
    if plot is not None:
        from leapmodel.plots import save

        save(answer.plot(), plot)
    if as_json:
        print_json(answer.to_dict())
        return
    _show(answer)
    if plot is not None:
        click.echo(f"picture: {plot}")


def _read(files: Sequence[str], lenient: bool) -> tuple[Trace | None, dict[str, Rounds]]:
    """Tell the trace from the rounds by what the files say they are."""
    kinds = [kind_of(path) for path in files]
    traces = [path for path, kind in zip(files, kinds, strict=True) if kind != "rounds"]
    if len(traces) > 1:
        raise UsageError(f"expected one trace and rounds, found {' and '.join(traces)}")
    if len(traces) == len(files):
        raise UsageError(f"expected a file of rounds, found {traces[0]}")
    trace = read_trace(traces[0], lenient=lenient) if traces else None
    if trace is not None:
        report_dropped(trace)
    rounds: dict[str, Rounds] = {}
    of_rounds = [path for path, kind in zip(files, kinds, strict=True) if kind == "rounds"]
    for name, path in zip(names_of_files(of_rounds), of_rounds, strict=True):
        rounds[name] = read_rounds(path, lenient=lenient)
        report_dropped(rounds[name])
    return trace, rounds


def _answers(paths: Sequence[str], lenient: bool) -> Predictions:
    """Return the predictions of several files as one."""
    read = [read_predictions(path, lenient=lenient) for path in paths]
    for one in read:
        report_dropped(one)
    return join_predictions(read, " and ".join(paths))


def _show(answer: Validation) -> None:
    out = console()
    rows, before, last = [], [], None
    dicts = [row.to_dict() for row in answer.rows]
    has_tools = any(row["tool_cost"] for row in dicts)
    for row in dicts:
        new_group = last not in (None, row["draft"])
        key = [row["draft"] if row["draft"] != last else "", f"{row['depth']}"]
        last = row["draft"]
        rows.append(
            Row(
                [
                    *key,
                    _rates(row["hit_rates"]),
                    figure(row["bonus_loss"]),
                    figure(row["commits"]),
                    figure(row["wait_inflation_replayed"]),
                    figure(row["wait_inflation_measured"]),
                    figure(row["draft_term"]),
                    *([_tools(row)] if has_tools else []),
                    figure(row["speedup_iid"]),
                    figure(row["speedup_eq4"]),
                    figure(row["speedup_measured"]),
                    interval(*(row["speedup_measured_ci95"] or (None, None))),
                    figure(row["speedup_no_idle"]),
                    _error(row["error"], row["error_se"]),
                    _within(row["error"]),
                ],
                new_group=new_group,
            )
        )
        if (early := row["ex_ante"]) is not None:
            before.append(
                Row(
                    [
                        *key,
                        _rates(early["hit_rates"]),
                        _rates(row["hit_rates"]),
                        *(
                            _beside(early[name], row[measured])
                            for name, measured in (
                                ("commits", "commits"),
                                ("wait_inflation", "wait_inflation_measured"),
                                ("draft_term", "draft_term"),
                            )
                        ),
                        figure(early["speedup"]),
                        figure(row["speedup_measured"]),
                        _error(early["error"], None),
                        _within(early["error"]),
                    ],
                    new_group=new_group,
                )
            )
    headings = ["draft", "k", "q₁ q₂ …", "e", "c", "β repl.", "β meas.", "D"]
    headings += ["f τ g"] if has_tools else []
    headings += ["i.i.d.", "Eq. 4", "measured", "95% interval", "no idle", "error", "within"]
    show_table(
        out,
        "Eq. 4 against the measured speedup",
        headings,
        rows,
        keys=2,
        split_after=[5, 8 + has_tools, 11 + has_tools, 13 + has_tools],
        caption="q, e, c, D: of the speculative run; β repl.: a replay of the sequential step times"
        " at the run's acceptances, β meas.: the run's own; i.i.d.: Eq. 4 with a replay at q₁;"
        " measured: sequential over speculative time, 95% over tasks; no idle: without waiting for"
        " verifications already discarded; error: Eq. 4 - measured ± SE.",
    )
    if before:
        show_table(
            out,
            "before the run (ex ante) against the measured speedup",
            [
                *["draft", "k", "q predicted", "q measured", "c", "β", "D"],
                *["ex ante", "measured", "error", "within"],
            ],
            before,
            keys=2,
            split_after=[4, 7],
            caption="predicted → measured. Predicted from the sequential trace, the draft's"
            " predictions on it and its latency; nothing from the speculative run.",
        )
    out.print(answer.sentence)
    show_notes(out, f"outside {NEAR:.2f}", answer.explanations)
    show_notes(out, "warnings", answer.warnings)


def _rates(values: Sequence[float]) -> str:
    return " ".join(f"{value:.2f}" for value in values[:5]) + (" …" if len(values) > 5 else "")


def _beside(predicted: float, measured: float) -> str:
    return f"{predicted:.2f} → {measured:.2f}"


def _tools(row: dict[str, Any]) -> str:
    terms = (row["tool_step_share"], row["tool_cost"], row["target_tool_steps"])
    return " ".join(f"{value:.2f}" for value in terms)


def _error(error: float, standard_error: float | None) -> str:
    spread = "" if standard_error is None else f" ± {standard_error:.2f}"
    return f"{error:+.2f}{spread}"


def _within(error: float) -> str:
    limit = next((limit for limit in (NEAR, FAR) if abs(error) <= limit), None)
    return "OUTSIDE" if limit is None else f"{limit:.2f}"
