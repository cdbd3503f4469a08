"""One measured configuration beside the latency model, and what closes the gap between them.

Predicted terms are replaced by measured ones, one after another; how far each step moves the
speedup is that term's part of the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from leapmodel import measurement as m
from leapmodel.bootstrap import percentile_interval
from leapmodel.equations import speedup as speedup_of
from leapmodel.measurement import Measurement, Sums
from leapmodel.prediction import Prediction
from leapmodel.segments import Floats

NEAR, FAR = 0.05, 0.10
"""Errors of the speedup that count as good and as passable (Sec. 4.4)."""
WORTH_NAMING = 0.005
"""A part of an error below this goes without saying."""
PARTS = {
    "commits": "c",
    "wait_inflation": "β",
    "ms_per_token": "ms per token",
    "draft_term": "D",
    "target_tools": "tools",
    "idle": "idle",
    "residual": "residual",
    "steps_per_task": "steps per task",
}
"""What an error is made of, in the order in which measured values replace predicted ones."""


@dataclass(frozen=True, eq=False, repr=False)
class ValidationRow:
    """One measured configuration beside what the model says of it.

    Attributes
    ----------
    name : str
        The draft, and the file where two would have one name.
    measured : Measurement
        What was measured.
    replayed, iid : pandas.DataFrame
        ``rounds`` and ``wait_s`` of each task, replayed over the sequential trace with the run's
        own acceptances a_j, and with q_1 at every position as the paper's i.i.d. column.
    drawn : dict of str to ndarray, shape (resamples,), or None
        The bootstrap of all sums; None with fewer than 10 tasks.
    identical : float
        Share of the task runs whose arms committed identical decisions; NaN if unknown.
    ex_ante : Prediction or None
        What could be predicted before the run.
    """

    name: str
    measured: Measurement
    replayed: pd.DataFrame
    iid: pd.DataFrame
    drawn: Sums | None
    identical: float
    ex_ante: Prediction | None

    @property
    def depth(self) -> int:
        """Proposals per round at most, k."""
        return self.measured.depth

    @property
    def speedup(self) -> float:
        """The measured speedup."""
        return float(m.speedup(self.measured.sums))

    @property
    def speedup_ci95(self) -> tuple[float, float] | None:
        """Its percentile interval over resampled tasks."""
        if self.drawn is None:
            return None
        low, high = percentile_interval(m.speedup(self.drawn))
        return float(low), float(high)

    @property
    def speedup_eq4(self) -> float:
        """Eq. 4 with measured hit rates and proposing time, and the replayed wait."""
        return float(_eq4(self._sums))

    @property
    def speedup_iid(self) -> float:
        """The same with the commits and the wait of a replay at q_1, every hit independent."""
        sums = {**self._sums, **_totals(self.iid)}
        return float(_eq4(sums, commits=sums["steps"] / sums["replayed_rounds"]))

    @property
    def error(self) -> float:
        """Eq. 4 less the measured speedup."""
        return self.speedup_eq4 - self.speedup

    @property
    def error_se(self) -> float | None:
        """Standard deviation of the error over resampled tasks, the replay's acceptances held."""
        if self.drawn is None:
            return None
        return float((_eq4(self.drawn) - m.speedup(self.drawn)).std(ddof=1))

    @property
    def ex_ante_error(self) -> float | None:
        """The prediction from before the run, less the measured speedup."""
        return None if self.ex_ante is None else float(self.ex_ante.speedup[0]) - self.speedup

    @property
    def parts(self) -> dict[str, float]:
        """What closes the gap from Eq. 4 to the measured speedup; they sum to minus the error."""
        sums = self._sums
        tau, f, g = m.tool_terms(sums)
        return self._closing(
            float(m.commits(sums)),
            float(_replayed_wait(sums)),
            float(m.per_round(sums, *_PROPOSING)),
            float(g * tau),
            work=1 + float(f * tau),
        )

    @property
    def ex_ante_parts(self) -> dict[str, float] | None:
        """The same for the prediction from before the run."""
        if (p := self.ex_ante) is None:
            return None
        terms = (p.commits, p.wait_inflation, p.draft_term, p.target_tool_term)
        return self._closing(
            *(float(term[0]) for term in terms),
            work=1 + p.tool_step_share * p.tool_cost,
            slowed=p.slowdown is not None,
        )

    @property
    def why(self) -> str:
        """The parts of Eq. 4's error worth naming, largest first, as a sentence."""
        return self._sentence("Eq. 4", self.error, self.parts)

    @property
    def ex_ante_why(self) -> str | None:
        """The same for the prediction from before the run."""
        if self.ex_ante_error is None or self.ex_ante_parts is None:
            return None
        return self._sentence("ex ante", self.ex_ante_error, self.ex_ante_parts)

    @cached_property
    def _sums(self) -> Sums:
        return {**self.measured.sums, **_totals(self.replayed)}

    def _closing(
        self,
        c: float,
        beta: float,
        draft: float,
        tools: float,
        *,
        work: float,
        slowed: bool = False,
    ) -> dict[str, float]:
        """Replace one predicted term after another by the measured one, and note the steps.

        Sequential ``work`` a step is 1 + f tau to begin with, and in the end what the arm took.
        Where beta holds what verification at once costs (``slowed``), that is no part of its own.
        """
        sums = self.measured.sums
        t_gen = m.mean_gen_s(sums)
        rest, steps, slower = 0.0, 1.0, 1.0
        if len(rates := self.measured.ms_per_token) == 2 and not slowed:
            slower = rates["speculative"] / rates["sequential"]
        wait = float(m.per_round(sums, "wait_s"))
        idle, residual = (float(m.per_round(sums, name)) for name in ("idle_s", "residual_s"))

        def value() -> float:
            return c * work * steps / (beta + draft + tools + rest)

        at = [value()]
        c = float(m.commits(sums))
        at.append(value())
        beta = wait / slower
        at.append(value())
        beta = wait
        at.append(value())
        draft = float(m.per_round(sums, *_PROPOSING))
        at.append(value())
        tools = float(m.per_round(sums, "target_tool_s"))
        at.append(value())
        rest = idle
        at.append(value())
        rest = idle + residual
        work = float(sums["paired_wall_s"] / (sums["paired_steps"] * t_gen))
        at.append(value())
        steps = float(sums["paired_steps"] / sums["committed"])
        at.append(value())
        return dict(zip(PARTS, np.diff(at).tolist(), strict=True))

    def _sentence(self, what: str, error: float, parts: Mapping[str, float]) -> str:
        sums, rates = self.measured.sums, self.measured.ms_per_token
        beta, source = float(_replayed_wait(self._sums)), "replayed"
        if what == "ex ante" and self.ex_ante is not None:
            beta, source = float(self.ex_ante.wait_inflation[0]), "predicted"
        waited = float(m.per_round(sums, "wait_s"))
        said = {
            "wait_inflation": f" ({source} {beta:.2f}, measured {waited:.2f})",
            "steps_per_task": f" ({sums['committed'] / sums['paired_steps'] - 1:+.1%})",
        }
        if len(rates) == 2:
            ours, theirs = rates["sequential"], rates["speculative"]
            said["ms_per_token"] = f" ({ours:.1f} sequential, {theirs:.1f} speculative)"
        if what == "ex ante" and self.ex_ante is not None:
            p = self.ex_ante
            said["commits"] = (
                f" (predicted {p.commits[0]:.2f}, measured {float(m.commits(sums)):.2f})"
            )
            ours, theirs = float(p.draft_term[0]), float(m.per_round(sums, *_PROPOSING))
            said["draft_term"] = f" (predicted {ours:.2f}, measured {theirs:.2f})"
        named = sorted(parts.items(), key=lambda item: -abs(item[1]))
        listed = [
            f"{PARTS[name]} {_cost(part)}{said.get(name, '')}"
            for name, part in named
            if abs(part) >= WORTH_NAMING
        ]
        same = ""
        if np.isfinite(self.identical):
            same = f"; decisions identical in {self.identical:.0%} of the task runs"
        return (
            f"{self.name}, k = {self.depth}: {what} is {abs(error):.2f}"
            f" {'above' if error > 0 else 'below'} the measured speedup"
            + (f": {', '.join(listed)}" if listed else "")
            + same
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what is unavailable is None."""
        sums, p = self.measured.sums, self.ex_ante
        tau, f, g = m.tool_terms(sums)
        ci = self.speedup_ci95
        row: dict[str, Any] = {
            "draft": self.name,
            "depth": self.depth,
            "tasks": self.measured.trace.n_tasks,
            "rounds": int(sums["rounds"]),
            "hit_rates": self.measured.hit_rates.tolist(),
            "acceptance": [_number(value) for value in self.measured.acceptance],
            "bonus_loss": float(sums["bonus_lost"] / sums["rounds"]),
            "commits": float(m.commits(sums)),
            "wait_inflation_replayed": float(_replayed_wait(self._sums)),
            "wait_inflation_measured": float(m.per_round(sums, "wait_s")),
            "draft_term": float(m.per_round(sums, *_PROPOSING)),
            "tool_cost": float(tau),
            "tool_step_share": float(f),
            "target_tool_steps": float(g),
            "gen_s_mean": float(m.mean_gen_s(sums)),
            "speedup_iid": self.speedup_iid,
            "speedup_eq4": self.speedup_eq4,
            "speedup_measured": self.speedup,
            "speedup_measured_ci95": None if ci is None else list(ci),
            "speedup_no_idle": float(m.speedup(sums, without_idle=True)),
            "error": self.error,
            "error_se": self.error_se,
            "within_0.05": abs(self.error) <= NEAR,
            "within_0.10": abs(self.error) <= FAR,
            "parts": self.parts,
            "ms_per_token": dict(self.measured.ms_per_token),
            "identical": _number(self.identical),
            "steps_ratio": float(sums["committed"] / sums["paired_steps"]),
            "ex_ante": None,
        }
        if p is not None:
            interval = p.speedup_ci95
            row["ex_ante"] = {
                "hit_rates": p.replay.hit_rates[0].tolist(),
                "commits": float(p.commits[0]),
                "wait_inflation": float(p.wait_inflation[0]),
                "draft_term": float(p.draft_term[0]),
                "speedup": float(p.speedup[0]),
                "speedup_ci95": None if interval is None else interval[0].tolist(),
                "error": self.ex_ante_error,
                "within_0.05": abs(self.ex_ante_error or 0.0) <= NEAR,
                "within_0.10": abs(self.ex_ante_error or 0.0) <= FAR,
                "parts": self.ex_ante_parts,
                "conditional_on": list(p.conditional_on),
            }
        return row


def _cost(part: float) -> str:
    """Return in words what a measured term does to the speedup, in the predicted one's place."""
    return f"{'costs' if part < 0 else 'adds'} {abs(part):.2f} of speedup"


_PROPOSING = ("draft_model_s", "proposal_tool_s")


def _eq4(sums: Sums, commits: Floats | None = None) -> Floats:
    tau, f, g = m.tool_terms(sums)
    return speedup_of(
        m.commits(sums) if commits is None else commits,
        _replayed_wait(sums),
        m.per_round(sums, *_PROPOSING),
        tool_cost=tau,
        tool_step_share=f,
        target_tool_steps=g,
    )


def _replayed_wait(sums: Sums) -> Floats:
    return sums["replayed_wait_s"] / (sums["replayed_rounds"] * m.mean_gen_s(sums))


def _totals(replayed: pd.DataFrame) -> Sums:
    return {f"replayed_{name}": np.sum(replayed[name].to_numpy()) for name in ("rounds", "wait_s")}


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
