"""The result of a prediction: what a draft would do for a trace, by depth."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from leapmodel.bootstrap import percentile_interval
from leapmodel.draft import Draft
from leapmodel.equations import speedup as speedup_of
from leapmodel.replay import ReplaySums, Terminal
from leapmodel.resampling import Resamples
from leapmodel.segments import Floats, Ints
from leapmodel.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leapmodel.plots import SpeedupCurve

SCHEMA_VERSION = 1
NEARLY_AS_GOOD = 0.02
"""A shallower depth that loses less speedup than this is mentioned beside the best."""


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """What a draft would do for a trace, by depth.

    Attributes
    ----------
    draft : Draft
        The evidence it stands on.
    replay : ReplaySums
        Expected sums by task and depth.
    depths : ndarray of int, shape (depths,)
        The depths k.
    speedup, commits, wait_inflation, draft_term, bonus_loss : ndarray, shape (depths,)
        S, c, beta, D and e.
    resamples : Resamples or None
        Bootstrap over tasks; None with fewer than 10 tasks.
    bounds : ndarray, shape (2, depths), or None
        Speedups if every unknown step were a miss, or a hit; None if nothing is unknown.
    verdict : Verdict
        On the best depth.
    conditional_on, warnings : tuple of str
        What no interval covers; what limits the data.
    about_trace : dict
        Counts and origin of the trace, for JSON.
    runs_of_task : ndarray, shape (tasks,)
        How often each task was run.
    seed, n_resamples : int
        Of the bootstrap.
    slowdown : tuple of float or None
        The target's time per token with 1, 2, … requests at once over that of one alone, where it
        is known; beta holds it then.
    """

    draft: Draft
    replay: ReplaySums
    terminal: Terminal
    gen_s_mean: float
    gen_s_cv: float
    tool_cost: float
    tool_step_share: float
    call_s: float
    resamples: Resamples | None
    bounds: Floats | None
    verdict: Verdict
    conditional_on: tuple[str, ...]
    warnings: tuple[str, ...]
    about_trace: dict[str, Any]
    runs_of_task: Floats
    seed: int
    n_resamples: int
    slowdown: tuple[float, ...] | None = None

    def __repr__(self) -> str:
        v = self.verdict
        return (
            f"<Prediction for {self.draft.name}: {v.speedup:.2f}x at k = {v.depth}, {v.decision}>"
        )

    def __str__(self) -> str:
        return self.summary()

    @property
    def trace_origin(self) -> str | None:
        """What kind of numbers the trace holds, if it says so (such as ``"reconstructed"``)."""
        origin = self.about_trace["origin"]
        return None if origin is None else str(origin)

    @property
    def advice(self) -> tuple[str, ...]:
        """Sentences beside the verdict."""
        return (*nearly_as_good(self, self.verdict), *still_rising(self, self.verdict))

    @property
    def depths(self) -> Ints:
        """The depths k, shape (depths,)."""
        return self.replay.depths

    @property
    def commits(self) -> Floats:
        """Committed steps per round, c (Eq. 3), shape (depths,)."""
        return self.replay.commits

    @property
    def wait_inflation(self) -> Floats:
        """Beta, shape (depths,)."""
        return self.replay.wait_inflation

    @property
    def draft_cost(self) -> float:
        """One draft call over t_gen, d."""
        return self.call_s / self.gen_s_mean

    @property
    def draft_term(self) -> Floats:
        """Proposing time per round over t_gen, D, proposals' tools included, shape (depths,)."""
        return self.draft_cost * self.replay.calls_per_round + self.replay.proposal_tools_per_round

    @property
    def bonus_loss(self) -> Floats:
        """Bonus steps lost per round, e, shape (depths,)."""
        return self.replay.bonus_loss

    @property
    def target_tool_term(self) -> Floats:
        """Tool time of the target's own steps per round over t_gen, g tau, shape (depths,)."""
        return self.replay.target_tools_per_round

    @property
    def speedup(self) -> Floats:
        """Sequential over speculative wall-clock, S (Eq. 1), shape (depths,)."""
        return speedup_of(
            self.commits,
            self.wait_inflation,
            self.draft_term,
            tool_cost=self.tool_cost,
            tool_step_share=self.tool_step_share,
            target_tool_steps=self.target_tool_term / self.tool_cost if self.tool_cost else 1.0,
        )

    @property
    def round_cost(self) -> Floats:
        """Cost of a round over a sequential step, B, tools included: S = c / B (Eq. 6)."""
        return self.commits / self.speedup

    @property
    def speedup_ci95(self) -> Floats | None:
        """Percentile interval of each depth by itself, shape (depths, 2)."""
        if self.resamples is None:
            return None
        return np.column_stack(percentile_interval(self.resamples.speedup))

    @property
    def speedup_se(self) -> Floats | None:
        """Standard deviation of the bootstrap, shape (depths,)."""
        return None if self.resamples is None else self.resamples.speedup.std(axis=0, ddof=1)

    @property
    def task_saved_s(self) -> Floats:
        """Expected seconds saved per run of each task, shape (tasks, depths)."""
        spent = (
            self.replay.wait_s
            + self.call_s * self.replay.calls
            + self.replay.proposal_tool_s
            + self.replay.target_tool_s
        )
        saved = (self.replay.gen_s + self.replay.tool_s)[:, None] - spent
        return saved / self.runs_of_task[:, None]

    def to_frame(self) -> pd.DataFrame:
        """Return one row a depth: S with its interval, and the terms it is made of.

        Columns: ``k``; ``speedup``, ``speedup_low``, ``speedup_high`` (95%), ``speedup_se``;
        ``commits`` c; ``wait_inflation`` beta; ``draft_term`` D; ``target_tool_term`` g tau;
        ``bonus_loss`` e; ``requests_per_step``; ``q1`` … the hit rates; ``if_all_miss``,
        ``if_all_hit`` the bounds of S over the unknown steps. NaN where unavailable.
        """
        ci = self.speedup_ci95
        nothing = np.full(len(self.depths), np.nan)
        se = self.speedup_se
        columns: dict[str, Any] = {
            "k": self.depths,
            "speedup": self.speedup,
            "speedup_low": nothing if ci is None else ci[:, 0],
            "speedup_high": nothing if ci is None else ci[:, 1],
            "speedup_se": nothing if se is None else se,
            "commits": self.commits,
            "wait_inflation": self.wait_inflation,
            "draft_term": self.draft_term,
            "target_tool_term": self.target_tool_term,
            "bonus_loss": self.bonus_loss,
            "requests_per_step": self.replay.requests_per_step,
        }
        for j in range(self.replay.hits.shape[1]):
            columns[f"q{j + 1}"] = self.replay.hit_rates[:, j]
        columns["if_all_miss"] = nothing if self.bounds is None else self.bounds[0]
        columns["if_all_hit"] = nothing if self.bounds is None else self.bounds[1]
        return pd.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what is unavailable is None."""
        r = self.resamples

        def listed(values: Floats | None) -> list[Any] | None:
            return None if values is None else plain_values(values)

        def error(values: Floats | None) -> list[Any] | None:
            return None if values is None else plain_values(values.std(axis=0, ddof=1))

        def by_position(rates: Floats) -> list[list[float]]:
            return [plain_values(row[:k]) for row, k in zip(rates, self.depths, strict=True)]

        return {
            "schema_version": SCHEMA_VERSION,
            "made_with": made_with(self.seed, self.n_resamples),
            "trace": self.about_trace,
            "draft": self.draft.name,
            "source": self.draft.source,
            "terminal": self.terminal,
            "depths": self.depths.tolist(),
            "commits": listed(self.commits),
            "wait_inflation": listed(self.wait_inflation),
            "draft_term": listed(self.draft_term),
            "target_tool_term": listed(self.target_tool_term),
            "bonus_loss": listed(self.bonus_loss),
            "speedup": listed(self.speedup),
            "speedup_ci95": listed(self.speedup_ci95),
            "speedup_se": listed(self.speedup_se),
            "commits_se": error(None if r is None else r.commits),
            "wait_inflation_se": error(None if r is None else r.wait_inflation),
            "draft_term_se": error(None if r is None else r.draft_term),
            "speedup_if_unknown_miss": listed(None if self.bounds is None else self.bounds[0]),
            "speedup_if_unknown_hit": listed(None if self.bounds is None else self.bounds[1]),
            "hit_rates": by_position(self.replay.hit_rates),
            "proposal_rates": by_position(self.replay.proposal_rates),
            "acceptance": by_position(self.replay.acceptance),
            "requests_per_step": listed(self.replay.requests_per_step),
            "draft_call_s": self.call_s,
            "draft_cost": self.draft_cost,
            "gen_s_mean": self.gen_s_mean,
            "gen_s_cv": self.gen_s_cv,
            "tool_cost": self.tool_cost,
            "tool_step_share": self.tool_step_share,
            "coverage": self.draft.coverage,
            "evidence": dict(self.draft.facts),
            "conditional_on": list(self.conditional_on),
            "warnings": list(self.warnings),
            "advice": list(self.advice),
            "verdict": self.verdict.to_dict(),
        }

    def summary(self) -> str:
        """Return the prediction as plain text: a table by depth, then the verdict."""
        shown = self.to_frame()[
            ["k", "speedup", "speedup_low", "speedup_high", "commits", "wait_inflation"]
        ].assign(D=self.draft_term, e=self.bonus_loss)
        table = shown.to_string(index=False, float_format=lambda x: f"{x:.2f}", na_rep="-")
        said = "\n".join([self.verdict.sentence, *self.advice])
        return f"{self.draft.name}: {self.draft.source}\n{table}\n{said}"

    def _repr_html_(self) -> str:
        from html import escape

        table = self.to_frame().to_html(index=False, float_format="{:.3f}".format, na_rep="–")
        return f"<p><b>{escape(self.draft.name)}</b>: {escape(self.verdict.sentence)}</p>{table}"

    @property
    def curve(self) -> SpeedupCurve:
        """The speedup by depth, as the plots take it."""
        from leapmodel.plots import SpeedupCurve

        return SpeedupCurve(self.draft.name, self.depths, self.speedup, self.speedup_ci95)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the speedup by depth with its band; see :func:`leapmodel.plots.plot_speedup`."""
        from leapmodel.plots import plot_speedup

        return plot_speedup([self.curve], ax=ax, origin=self.trace_origin)

    def plot_round_cost(self, ax: Axes | None = None) -> Axes:
        """Draw where the time goes; see :func:`leapmodel.plots.plot_round_cost`."""
        from leapmodel.plots import plot_round_cost

        parts = {
            "wait for verification": self.wait_inflation,
            "draft calls": self.draft_cost * self.replay.calls_per_round,
            "proposals' tools": self.replay.proposal_tools_per_round,
            "target's tools": self.target_tool_term,
        }
        return plot_round_cost(
            self.depths,
            {label: per_round / self.commits for label, per_round in parts.items()},
            sequential=1 + self.tool_cost * self.tool_step_share,
            title=f"Where the time goes: {self.draft.name}",
            ax=ax,
        )


def nearly_as_good(prediction: Prediction, verdict: Verdict) -> list[str]:
    """Mention a shallower depth that loses next to nothing, if there is one."""
    p = prediction
    close = (p.speedup >= verdict.speedup - NEARLY_AS_GOOD) & (p.depths < verdict.depth)
    if verdict.speedup <= 1 or not close.any():
        return []
    at, best = int(np.argmax(close)), int(np.flatnonzero(p.depths == verdict.depth)[0])
    asked = p.replay.requests_per_step
    return [
        f"Nearly as good: k = {p.depths[at]} ({p.speedup[at]:.2f}x) with {asked[at]:.2f} instead of"
        f" {asked[best]:.2f} verification requests per committed step."
    ]


def still_rising(prediction: Prediction, verdict: Verdict) -> list[str]:
    """Say that deeper ones were not tried, if the deepest that was is clearly the best."""
    p = prediction
    if len(p.depths) < 2 or verdict.depth != p.depths[-1] or verdict.speedup <= 1:
        return []
    if p.speedup[-1] - p.speedup[-2] < NEARLY_AS_GOOD:
        return []
    return [f"k = {verdict.depth} is the largest depth tried, and the speedup still rises there."]


def made_with(seed: int, n_resamples: int) -> dict[str, Any]:
    """Return what it takes to make a result again, for JSON."""
    return {"leapmodel": version("leapmodel"), "seed": seed, "resamples": n_resamples}


def plain_values(values: Floats) -> list[Any]:
    """Return nested lists for JSON, with None for what is not a number."""
    return [plain_values(v) if np.ndim(v) else _number(v) for v in values]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
