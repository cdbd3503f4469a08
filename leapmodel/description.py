"""What a sequential trace holds, and what in it looks suspicious."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from leapmodel.actions import tool_names
from leapmodel.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
N_LONGEST = 5
INSTANT_S = 0.001
"""No model answers in a millisecond: a time below it is not a generation time."""
REPEATED_SHARE = 0.05
"""One exact value in more than this share of the steps looks like a placeholder."""
LONG_TIMES_MEDIAN = 20
FASTEST_TOKENS_PER_S = 2_000
"""No engine generates faster for one request: the time must be something else."""


@dataclass(frozen=True, eq=False, repr=False)
class Description:
    """Figures of a trace.

    Attributes
    ----------
    tasks, runs, segments, steps : int
        Counts; several runs of a task are one task.
    steps_per_segment : dict of str to float
        Mean, and quantiles as ``p50`` and so on, of the segment length L.
    gen_s : dict of str to float
        Mean (t_gen), ``cv`` (population), ``max`` and quantiles of the generation seconds.
    tool_step_share : float
        f, share of steps that run a tool (``tool_s`` > 0).
    tool_cost : float
        tau, mean tool time of those steps over t_gen; 0 if there are none.
    tool_time_share : float
        Tool seconds over all seconds.
    segment_ends : dict of str to int
        Segments by what their last step is: reply, end of task, tool call (a step cap, or a
        boundary tool) or an output that did not parse.
    boundary_steps : int
        Steps that call a boundary tool.
    tools : pandas.DataFrame
        ``tool``, ``steps`` that call it, ``share`` of all steps, ``tool_s`` mean tool seconds of
        those steps, ``boundary`` whether it is a boundary tool; the most frequent first.
    tokens : dict of str to float
        Means of the token columns, where they exist.
    longest : pandas.DataFrame
        The longest steps: ``task``, ``run``, ``step``, ``gen_s``, and ``share`` of all generation
        seconds.
    suspicious : tuple of str
        Sentences about times that can't be what they seem.
    notes : tuple of str
        What the importer could not know.
    """

    tasks: int
    runs: int
    segments: int
    steps: int
    steps_per_segment: dict[str, float]
    gen_s: dict[str, float]
    tool_step_share: float
    tool_cost: float
    tool_time_share: float
    segment_ends: dict[str, int]
    boundary_steps: int
    tools: pd.DataFrame
    tokens: dict[str, float]
    longest: pd.DataFrame
    suspicious: tuple[str, ...]
    notes: tuple[str, ...]
    metadata: dict[str, Any]
    dropped: int
    times: np.ndarray

    def __repr__(self) -> str:
        return f"<Description of {self.tasks} tasks, {self.steps} steps>"

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "schema_version": 1,
            "tasks": self.tasks,
            "runs": self.runs,
            "segments": self.segments,
            "steps": self.steps,
            "steps_per_task": self.steps / self.tasks,
            "steps_per_segment": self.steps_per_segment,
            "gen_s_mean": self.gen_s["mean"],
            "gen_s_cv": self.gen_s["cv"],
            "gen_s": self.gen_s,
            "tool_step_share": self.tool_step_share,
            "tool_cost": self.tool_cost,
            "tool_time_share": self.tool_time_share,
            "segment_ends": self.segment_ends,
            "boundary_steps": self.boundary_steps,
            "boundary_tools": self.metadata.get("boundary_tools", []),
            "tools": self.tools.to_dict(orient="records"),
            "tokens": self.tokens,
            "longest_steps": self.longest.to_dict(orient="records"),
            "suspicious": list(self.suspicious),
            "warnings": list(self.notes),
            "dropped_tasks": self.dropped,
            "metadata": self.metadata,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return the figures as one column ``value``, by name."""
        rows: dict[str, float] = {
            "tasks": self.tasks,
            "runs": self.runs,
            "segments": self.segments,
            "steps": self.steps,
            "boundary steps": self.boundary_steps,
            "tool step share f": self.tool_step_share,
            "tool cost tau": self.tool_cost,
        }
        rows |= {f"steps per segment, {name}": v for name, v in self.steps_per_segment.items()}
        rows |= {f"gen_s, {name}": value for name, value in self.gen_s.items()}
        rows |= {f"segments ending on {name}": n for name, n in self.segment_ends.items()}
        rows |= {f"{name}, mean": value for name, value in self.tokens.items()}
        return pd.DataFrame({"value": rows})

    def summary(self) -> str:
        """Return the figures as plain text."""
        return "\n".join(
            [
                self.to_frame().to_string(header=False, float_format="{:.4g}".format),
                *self.suspicious,
                *self.notes,
            ]
        )

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(float_format="{:.4g}".format)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the step times; see :func:`leapmodel.plots.plot_step_times`."""
        from leapmodel.plots import plot_step_times

        return plot_step_times(self.times, ax=ax)


def describe(trace: Trace) -> Description:
    """Describe a trace.

    Parameters
    ----------
    trace : Trace
        Any checked trace.

    Examples
    --------
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": ["a", "a"], "segment": 0, "step": [0, 1], "gen_s": [1.0, 3.0],
    ...     "tool_s": [0.5, 0.0], "action": ["ls({})", "<respond/>"]}))
    >>> about = describe(trace)
    >>> about.gen_s["mean"], about.gen_s["cv"], about.tool_cost, about.segment_ends
    (2.0, 0.5, 0.25, {'reply': 1})
    """
    gen_s, tool_s = trace.gen_s, trace.tool_s
    mean = float(gen_s.mean())
    runs_tool = tool_s > 0
    tokens = {
        name: float(trace.frame[name].mean())
        for name in ("prompt_tokens", "cached_tokens", "completion_tokens")
        if name in trace.frame and trace.frame[name].notna().any()
    }
    longest = np.argsort(gen_s)[::-1][:N_LONGEST]
    return Description(
        tasks=trace.n_tasks,
        runs=trace.n_runs,
        segments=trace.n_segments,
        steps=trace.n_steps,
        steps_per_segment=_moments(trace.segment_lengths),
        gen_s={**_moments(gen_s), "cv": float(gen_s.std() / mean)},
        tool_step_share=float(runs_tool.mean()),
        tool_cost=float(tool_s[runs_tool].mean() / mean) if runs_tool.any() else 0.0,
        tool_time_share=float(tool_s.sum() / (tool_s.sum() + gen_s.sum())),
        segment_ends=_segment_ends(trace),
        boundary_steps=int(trace.is_boundary.sum()),
        tools=_tools(trace),
        tokens=tokens,
        longest=trace.frame.loc[longest, ["task", "run", "step", "gen_s"]]
        .assign(share=gen_s[longest] / gen_s.sum())
        .reset_index(drop=True),
        suspicious=tuple(_suspicious(trace)),
        notes=tuple(trace.metadata.get("warnings", ())),
        metadata={k: v for k, v in trace.metadata.items() if k != "warnings"},
        dropped=len(trace.dropped),
        times=gen_s,
    )


def _tools(trace: Trace) -> pd.DataFrame:
    """Return one row a tool; a step of parallel calls counts for each of its tools."""
    by_action = trace.frame.assign(action=trace.actions).groupby("action", sort=False)["tool_s"]
    seconds: dict[str, float] = {}
    for action, total in by_action.sum().items():
        for name in set(tool_names(str(action))):
            seconds[name] = seconds.get(name, 0.0) + float(total)
    patterns = [str(pattern) for pattern in trace.metadata.get("boundary_tools", [])]
    return pd.DataFrame(
        [
            {
                "tool": name,
                "steps": steps,
                "share": steps / trace.n_steps,
                "tool_s": seconds[name] / steps,
                "boundary": any(fnmatchcase(name, pattern) for pattern in patterns),
            }
            for name, steps in trace.tool_steps.items()
        ],
        columns=["tool", "steps", "share", "tool_s", "boundary"],
    )


def _moments(values: np.ndarray) -> dict[str, float]:
    quantiles = np.quantile(values, QUANTILES)
    return {
        "mean": float(values.mean()),
        **{f"p{round(100 * q):02d}": float(v) for q, v in zip(QUANTILES, quantiles, strict=True)},
        "max": float(values.max()),
    }


def _segment_ends(trace: Trace) -> dict[str, int]:
    last = trace.segment_starts + trace.segment_lengths - 1
    kinds = trace.frame["kind"].to_numpy(dtype=object)[last]
    boundary = trace.is_boundary[last]
    names = {
        "respond": "reply",
        "terminate": "end of task",
        "tool": "tool call (step cap, or the log ends)",
    }
    found: dict[str, int] = {}
    for kind, is_boundary in zip(kinds, boundary, strict=True):
        name = "boundary tool" if is_boundary else names.get(kind, "output that did not parse")
        found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _steps(mask: np.ndarray) -> str:
    n = int(mask.sum())
    return f"{n} step{'s' * (n > 1)}"


def _suspicious(trace: Trace) -> list[str]:
    gen_s = trace.gen_s
    said = []
    if (gen_s < INSTANT_S).any():
        short = _steps(gen_s < INSTANT_S)
        said.append(f"{short} took less than {INSTANT_S * 1000:g} ms: not generation times?")
    values, counts = np.unique(gen_s, return_counts=True)
    top = int(np.argmax(counts))
    if len(values) == 1 and len(gen_s) > 1:
        said.append(f"all steps took exactly {values[0]:g} s: a placeholder? beta would be 1")
    elif counts[top] > max(REPEATED_SHARE * len(gen_s), 5):
        share = counts[top] / len(gen_s)
        said.append(f"{share:.0%} of the steps took exactly {values[top]:g} s: a placeholder?")
    median = float(np.median(gen_s))
    long = gen_s > LONG_TIMES_MEDIAN * median
    if long.any():
        said.append(
            f"{_steps(long)} took over {LONG_TIMES_MEDIAN} times the median"
            f" ({median:.3g} s), with {gen_s[long].sum() / gen_s.sum():.0%} of the generation"
            " time: queues or retries?"
        )
    if "completion_tokens" in trace.frame:
        rate = trace.frame["completion_tokens"].to_numpy(float) / gen_s
        fast = rate > FASTEST_TOKENS_PER_S
        if fast.any():
            said.append(
                f"{_steps(fast)} generated over {FASTEST_TOKENS_PER_S:,} tokens a second: their"
                " times can't be whole generations"
            )
    if not (trace.tool_s > 0).any():
        said.append("no step has tool time: tools are taken to be instantaneous")
    return said
