"""Gather what the report shows, and fill in its page."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from leapmodel.atomic import atomic_path
from leapmodel.choice import Choice, DraftChoice
from leapmodel.description import Description, describe
from leapmodel.plots import (
    new_axes,
    plot_rates_by_position,
    plot_segment_lengths,
    plot_speedup,
    plot_step_times,
)
from leapmodel.report.pictures import HEIGHT, WIDTH, inline_svg
from leapmodel.sensitivity import sensitivity
from leapmodel.trace import Trace

N_LISTED = 6
PACKAGES = ("leapmodel", "numpy", "scipy", "pandas", "pyarrow", "matplotlib")


@dataclass(frozen=True)
class Picture:
    """A picture with the sentence under it."""

    svg: str
    caption: str


def write_report(
    trace: Trace,
    choice: Choice,
    path: str | Path,
    *,
    name: str = "trace",
    command: str | None = None,
) -> None:
    """Write the report of a choice, all or nothing.

    Parameters
    ----------
    trace : Trace
        The workload.
    choice : Choice
        What :func:`leapmodel.choice.choose` found on it.
    path : str or Path
        Where to write the HTML.
    name : str
        What the workload is called on the page.
    command : str, optional
        The command that makes the report again.

    Raises
    ------
    UsageError
        If it can't be written there.
    """
    page = render_report(trace, choice, name=name, command=command)
    with atomic_path(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render_report(
    trace: Trace, choice: Choice, *, name: str = "trace", command: str | None = None
) -> str:
    """Return the report as HTML; see :func:`write_report`."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("leapmodel.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = _figure
    environment.filters["percent"] = _percent
    about = describe(trace)
    best = next(d for d in choice.drafts if d.prediction.draft.name == choice.verdict.draft)
    return environment.get_template("page.html.jinja").render(
        name=name,
        verdict=choice.verdict,
        tone=_TONES[choice.verdict.decision],
        advice=choice.advice,
        choice=choice,
        rows=choice.to_frame().to_dict(orient="records"),
        best=best,
        about=about,
        pictures=_pictures(trace, choice, best, about),
        sensitivity=sensitivity(trace, best.prediction).to_dict(orient="records"),
        tools=about.tools.head(12).to_dict(orient="records"),
        longest=about.longest.to_dict(orient="records"),
        warnings=list(dict.fromkeys([*about.suspicious, *choice.warnings])),
        dropped=[f"{d.task}: {d.reason}" for d in trace.dropped],
        inputs=_inputs(trace, choice, command),
    )


_TONES = {"deploy": "good", "pilot first": "fair", "don't": "bad", "cannot tell": "unclear"}


def _pictures(
    trace: Trace, choice: Choice, best: DraftChoice, about: Description
) -> dict[str, Picture]:
    prediction = best.prediction
    at = int(np.flatnonzero(prediction.depths == choice.verdict.depth)[0])
    k = int(prediction.depths[at])
    replay = prediction.replay
    ax = new_axes(WIDTH, HEIGHT + 0.6)
    curves = [d.prediction.curve for d in choice.drafts]
    plot_speedup(
        curves, ax=ax, ceiling=choice.ceiling, origin=prediction.trace_origin, legend_below=True
    )
    rates = {
        "hit rate q_j": replay.hit_rates[at][:k],
        "proposed, share of rounds": replay.proposal_rates[at][:k],
        "acceptance if proposed": replay.acceptance[at][:k],
    }
    return {
        "speedup": Picture(
            inline_svg(ax, "speedup", _in_words(choice)),
            "Predicted speedup by depth; bands are 95% intervals over tasks, each depth's own.",
        ),
        "round": Picture(
            inline_svg(
                prediction.plot_round_cost(new_axes(WIDTH, HEIGHT)),
                "round",
                f"Time per committed step by depth for {prediction.draft.name}",
            ),
            "Where the time of a committed step goes, against a sequential step.",
        ),
        "times": Picture(
            inline_svg(
                plot_step_times(about.times, ax=new_axes(WIDTH, HEIGHT)),
                "times",
                f"Step times: mean {about.gen_s['mean']:.3g} s, median {about.gen_s['p50']:.3g} s",
            ),
            f"Their coefficient of variation is {about.gen_s['cv']:.2f}: the longer the tail, the"
            " longer a round waits for its slowest verification.",
        ),
        "lengths": Picture(
            inline_svg(
                plot_segment_lengths(trace.segment_lengths, ax=new_axes(WIDTH, HEIGHT)),
                "lengths",
                f"Segment lengths: mean {about.steps_per_segment['mean']:.3g} steps",
            ),
            "No round crosses the end of a segment. At the recommended depth the accepted prefix"
            f" ends the segment, and the bonus step is lost, in {prediction.bonus_loss[at]:.0%} of"
            " the rounds (e).",
        ),
        "rates": Picture(
            inline_svg(
                plot_rates_by_position(
                    rates,
                    title=f"{prediction.draft.name} at k = {k}",
                    ax=new_axes(WIDTH, HEIGHT),
                ),
                "rates",
                "Hit rates by position: " + ", ".join(f"{x:.2f}" for x in rates["hit rate q_j"]),
            ),
            "A hit at position j needs all earlier ones to match and the segment to go on that far;"
            " the acceptance is that of the proposals that were made after matching ones.",
        ),
    }


def _in_words(choice: Choice) -> str:
    parts = [
        f"{d.prediction.draft.name}: "
        + ", ".join(
            f"{s:.2f} at k = {k}"
            for k, s in zip(d.prediction.depths, d.prediction.speedup, strict=True)
        )
        for d in choice.drafts
    ]
    return "Predicted speedup. " + "; ".join(parts)


def _inputs(trace: Trace, choice: Choice, command: str | None) -> list[tuple[str, str]]:
    first = choice.drafts[0].prediction
    rows: list[tuple[str, Any]] = [
        ("made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("command", command),
        *((f"trace: {key}", _listed(value)) for key, value in first.about_trace.items()),
        *((f"draft {d.prediction.draft.name}", d.prediction.draft.source) for d in choice.drafts),
        ("terminal rule", first.terminal),
        ("bootstrap", f"{choice.n_resamples:,} resamples of whole tasks, seed {choice.seed}"),
        ("Python", platform.python_version()),
        *((package, version(package)) for package in PACKAGES),
    ]
    return [(label, str(value)) for label, value in rows if value not in (None, "", [])]


def _listed(value: object) -> object:
    if not isinstance(value, (list, tuple)):
        return value
    more = f" and {len(value) - N_LISTED} more" if len(value) > N_LISTED else ""
    return ", ".join(map(str, value[:N_LISTED])) + more


def _figure(value: float, digits: int = 2) -> str:
    return "–" if value is None or not np.isfinite(value) else f"{value:,.{digits}f}"


def _percent(value: float, *, signed: bool = False) -> str:
    if value is None or not np.isfinite(value):
        return "–"
    return f"{100 * value:+.0f}%" if signed else f"{100 * value:.0f}%"
