"""Whether the latency model accounts for what a run measured (Sec. 4.4, Tables 10 and 11).

Two comparisons. *Eq. 4* takes hit rates, commits and proposing time from the speculative run, and
the wait for verification from a replay of the sequential step times: it asks if the equation adds
up. *Ex ante* takes nothing from the speculative run: it asks if one could have known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from leapmodel.bootstrap import MIN_TASKS, N_RESAMPLES, resampled_sums
from leapmodel.compared_draft import draft_from_predictions
from leapmodel.errors import DataError, UsageError
from leapmodel.identity import identical_share
from leapmodel.measured_draft import draft_from_rounds
from leapmodel.measurement import Measurement, measure
from leapmodel.prediction import Prediction, made_with
from leapmodel.predictions import DEFAULT_DRAFT, Predictions
from leapmodel.predictor import predict
from leapmodel.recorded_settings import refuse_mixed_benchmarks
from leapmodel.replay import Terminal, exact_replay
from leapmodel.rounds import Rounds, named_rounds
from leapmodel.segments import Floats
from leapmodel.trace import Trace
from leapmodel.validation_row import FAR, NEAR, ValidationRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLOCKS_AGREE = 0.01
"""How far the sum of the rounds may be off the tasks' own clock before it is said."""
SAME_RUN = 0.10
"""By so much at most a step's time in the trace and in the sequential arm differ without a word."""
SAME_MACHINE = 1.2
"""The ratio of a lone request's time per token between the arms that is borne without a word. The
speculative arm's lone requests read a prompt that is in the cache less often."""


@dataclass(frozen=True, eq=False, repr=False)
class Validation:
    """Measured speedups beside the model's, one row a draft and depth.

    Attributes
    ----------
    rows : tuple of ValidationRow
        In the order of the files.
    warnings : tuple of str
        What limits them.
    seed, n_resamples : int
        Of the bootstrap.
    """

    rows: tuple[ValidationRow, ...]
    warnings: tuple[str, ...] = ()
    seed: int = 0
    n_resamples: int = field(default=N_RESAMPLES)

    def __repr__(self) -> str:
        return f"<Validation: {self.sentence}>"

    def __str__(self) -> str:
        return self.summary()

    @property
    def sentence(self) -> str:
        """How many rows are close, of both comparisons."""
        said = [_counted("Eq. 4", [row.error for row in self.rows])]
        before = [row.ex_ante_error for row in self.rows if row.ex_ante_error is not None]
        if before:
            said.append(_counted("ex ante", before))
        return "; ".join(said)

    @property
    def explanations(self) -> tuple[str, ...]:
        """Why, for every row that is outside 0.05."""
        said = []
        for row in self.rows:
            if abs(row.error) > NEAR:
                said.append(row.why)
            if row.ex_ante_why is not None and abs(row.ex_ante_error or 0.0) > NEAR:
                said.append(row.ex_ante_why)
        return tuple(said)

    def to_frame(self) -> pd.DataFrame:
        """Return one row a configuration, with Table 10's columns (and Table 11's).

        Columns: ``draft``, ``k``, ``tasks``, ``rounds``; ``q1`` …; ``bonus_loss`` e; ``commits`` c;
        ``wait_inflation_replayed``, ``wait_inflation_measured`` beta; ``draft_term`` D;
        ``tool_cost`` tau, ``tool_step_share`` f, ``target_tool_steps`` g; ``speedup_iid``,
        ``speedup_eq4``, ``speedup_measured`` with ``speedup_low``, ``speedup_high`` (95%),
        ``speedup_no_idle``; ``error`` (Eq. 4 less measured) with ``error_se``; ``within_0.05``,
        ``within_0.10``; ``identical``; ``ex_ante_…`` the same from before the run. NaN where
        unavailable.
        """
        rows = []
        for row in self.rows:
            values = row.to_dict()
            low, high = values["speedup_measured_ci95"] or (np.nan, np.nan)
            q = {f"q{j}": rate for j, rate in enumerate(values.pop("hit_rates"), start=1)}
            before = values.pop("ex_ante") or {}
            kept = {k: v for k, v in values.items() if not isinstance(v, (dict, list))}
            kept["k"] = kept.pop("depth")
            kept |= {"speedup_low": low, "speedup_high": high, **q}
            kept |= {
                f"ex_ante_{k}": v for k, v in before.items() if not isinstance(v, (dict, list))
            }
            rows.append(kept)
        deepest = max(row.depth for row in self.rows)
        rates = [f"q{j}" for j in range(1, deepest + 1)]
        order = ["draft", "k", "tasks", "rounds", *rates]
        others = dict.fromkeys(name for row in rows for name in row if name not in order)
        others.pop("speedup_measured_ci95", None)
        frame = pd.DataFrame(rows, columns=[*order, *others])
        empty = [name for name in others if frame[name].isna().all()]
        return frame.assign(**dict.fromkeys(empty, np.nan))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what is unavailable is None."""
        return {
            "schema_version": 1,
            "made_with": made_with(self.seed, self.n_resamples),
            "rows": [row.to_dict() for row in self.rows],
            "sentence": self.sentence,
            "explanations": list(self.explanations),
            "warnings": list(self.warnings),
        }

    def summary(self) -> str:
        """Return the comparison as plain text."""
        frame = self.to_frame()
        shown = ["draft", "k", "commits", "wait_inflation_replayed", "wait_inflation_measured"]
        shown += ["draft_term", "speedup_iid", "speedup_eq4", "speedup_measured", "error"]
        if "ex_ante_speedup" in frame:
            shown += ["ex_ante_speedup", "ex_ante_error"]
        table = frame[shown].to_string(index=False, float_format="{:.2f}".format, na_rep="-")
        return "\n".join([table, self.sentence, *self.explanations])

    def _repr_html_(self) -> str:
        from html import escape

        table = self.to_frame().to_html(index=False, float_format="{:.3f}".format, na_rep="–")
        return f"<p><b>{escape(self.sentence)}</b></p>{table}"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw measured against predicted; see :func:`leapmodel.plots.plot_validation`."""
        from leapmodel.plots import PredictedAgainstMeasured, plot_validation

        points = [
            PredictedAgainstMeasured(
                f"{row.name}, k = {row.depth}",
                row.speedup,
                row.speedup_ci95,
                row.speedup_eq4,
                None if row.ex_ante is None else float(row.ex_ante.speedup[0]),
            )
            for row in self.rows
        ]
        return plot_validation(points, near=NEAR, far=FAR, ax=ax)


def validate(
    rounds: Rounds | Sequence[Rounds] | Mapping[str, Rounds],
    trace: Trace | None = None,
    *,
    predictions: Predictions | None = None,
    draft_latency_s: float | Mapping[str, float] | None = None,
    slowdown: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
    probed_in: str = "the probes",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Validation:
    """Compare what runs measured with what the latency model says (Tables 10 and 11).

    Parameters
    ----------
    rounds : Rounds, or several, by name if they have one
        Measured runs. Each draft and depth in each is one row. A sequential arm in any of them
        serves those without one.
    trace : Trace, optional
        The sequential trace; default the sequential arm of the rounds. Where they have one of their
        own, Eq. 4 stands on that, and only what is said beforehand on the trace.
    predictions : Predictions, optional
        Teacher-forced predictions on that trace, for a comparison that takes nothing from the
        speculative run. A draft of the rounds is found in them by its name; if they name none, they
        are of the only one.
    draft_latency_s : float or mapping of draft to float, optional
        Seconds of a draft call from a probe, for the same; default the predictions' own.
    slowdown : sequence of float, or mapping of draft to it, optional
        The target's time per token with 1, 2, … requests at once over that of one alone, from a
        probe, for the same; see :func:`~leapmodel.predictor.predict`.
    probed_in : str, default "the probes"
        What error messages call the source of these two, such as a file.
    n_resamples, seed : int
        The bootstrap over tasks.

    Returns
    -------
    Validation

    Raises
    ------
    DataError
        If an arm is missing or no task is in both.
    UsageError
        If a latency is given without predictions, predictions or latencies are of other drafts, or
        two of the files state different benchmarks.
    """
    named = named_rounds(rounds)
    stated = {name: one.metadata for name, one in named.items()}
    if trace is not None:
        stated["the trace"] = trace.metadata
    if predictions is not None:
        stated["the predictions"] = predictions.metadata
    refuse_mixed_benchmarks(stated)
    if draft_latency_s is not None and predictions is None:
        raise UsageError("a draft's latency predicts nothing without its predictions")
    shared = next((one for one in named.values() if one.sequential.n_rounds), None)
    if shared is None and trace is None:
        raise DataError("the rounds", expected="a sequential arm, or a trace", found="neither")
    found: list[tuple[str, Measurement, Terminal]] = []
    for label, one in named.items():
        if not one.speculative.n_rounds and len(named) > 1:
            continue  # a sequential arm that was recorded apart
        terminal: Terminal = "probe" if one.metadata.get("terminal") == "probe" else "accepted"
        found += [(label, row, terminal) for row in measure(one, trace, sequential=shared)]
    if not found:
        raise DataError("the rounds", expected="a speculative arm", found="none")
    names = _names(found)
    only = len({row.configuration.draft for _, row, _ in found}) == 1
    rows, said = [], []
    for name, (_, row, terminal) in zip(names, found, strict=True):
        before = None
        if predictions is not None and row.depth:
            call_s = _of_draft(draft_latency_s, row, probed_in)
            slower = _of_draft(slowdown, row, probed_in)
            before = _before(row, terminal, predictions, call_s, slower, only, n_resamples, seed)
        rows.append(_row(name, row, terminal, before, n_resamples, seed))
        said += _limits(name, row)
        if before is not None:
            said += before.warnings
        elif predictions is not None and row.depth:
            said.append(f"{name}, k = {row.depth}: no predictions on its tasks")
    speculative = [row for row in rows if row.depth]
    if predictions is not None and speculative and all(r.ex_ante is None for r in speculative):
        raise DataError(
            "the predictions",
            column="task",
            expected=f"tasks of the rounds, such as {found[0][1].trace.task_names[0]!r}",
            found=f"others, such as {predictions.frame['task'].iloc[0]!r}",
        )
    given = [w for one in named.values() for w in one.metadata.get("warnings", ())]
    return Validation(tuple(rows), tuple(dict.fromkeys([*given, *said])), seed, n_resamples)


def _row(
    name: str,
    row: Measurement,
    terminal: Terminal,
    before: Prediction | None,
    n_resamples: int,
    seed: int,
) -> ValidationRow:
    if row.depth and row.rounds.proposals.shape[0]:
        pilot = draft_from_rounds(row.trace, row.rounds)
        own = pilot.acceptance.replay(row.trace.segments, [row.depth], terminal)
        replayed = _by_task(own.rounds[:, 0], own.wait_s[:, 0])
        q1 = float(row.hit_rates[0])
        same = exact_replay(row.trace.segments, q1, [row.depth], terminal=terminal)
        iid = _by_task(same.rounds[:, 0], same.wait_s[:, 0])
    else:  # nothing is proposed: every step is a round
        replayed = iid = _by_task(*(row.per_task[name].to_numpy() for name in ("steps", "gen_s")))
    drawn: dict[str, Floats] | None = None
    if row.trace.n_tasks >= MIN_TASKS:
        table = row.per_task.assign(
            replayed_rounds=replayed["rounds"].to_numpy(),
            replayed_wait_s=replayed["wait_s"].to_numpy(),
        )
        sums = resampled_sums(table.to_numpy(), n_resamples, rng=np.random.default_rng(seed))
        drawn = dict(zip(map(str, table.columns), sums.T, strict=True))
    done = row.rounds.committed_actions("speculative")
    identical = identical_share(row.trace.actions_by_run, done)
    return ValidationRow(name, row, replayed, iid, drawn, identical, before)


def _before(
    row: Measurement,
    terminal: Terminal,
    predictions: Predictions,
    draft_latency_s: float | None,
    slowdown: Sequence[float] | None,
    only: bool,
    n_resamples: int,
    seed: int,
) -> Prediction | None:
    """Predict a configuration from the sequential trace and what is known of the draft alone."""
    in_trace = predictions.frame["task"].isin(row.given.task_names)
    if not in_trace.any():
        return None
    unnamed = only and predictions.draft_names == [DEFAULT_DRAFT]
    chosen = DEFAULT_DRAFT if unnamed else row.configuration.draft
    kept = replace(predictions, frame=predictions.frame[in_trace])
    evidence = draft_from_predictions(row.given, kept, draft=chosen, latency_s=draft_latency_s)
    return predict(
        row.given,
        evidence,
        [row.depth],
        terminal=terminal,
        slowdown=slowdown,
        n_resamples=n_resamples,
        seed=seed,
    )


def _of_draft(probed: Any, row: Measurement, probed_in: str) -> Any:
    """Return what was probed of a row's draft: the one value, or its own of several."""
    if not isinstance(probed, Mapping):
        return probed
    if (draft := row.configuration.draft) not in probed:
        raise UsageError(
            f"{probed_in}: no latency for the draft {draft!r}, only for {', '.join(probed)}"
        )
    return probed[draft]


def _names(found: Sequence[tuple[str, Measurement, Terminal]]) -> list[str]:
    """Return the drafts' names, with the file's where two rows would be called the same."""
    told = [row.configuration for _, row, _ in found]
    return [
        row.configuration.draft
        if told.count(row.configuration) == 1
        else f"{row.configuration.draft} ({label})"
        for label, row, _ in found
    ]


def _limits(name: str, row: Measurement) -> list[str]:
    said = []
    if row.left_out:
        n = len(row.left_out)
        everywhere = "both arms" if row.given is row.trace else "both arms and the trace"
        said.append(
            f"{name}, k = {row.depth}: {n} task{'s' * (n > 1)} not whole in {everywhere}, left out"
            f" (such as {row.left_out[0]})"
        )
    if row.trace.n_tasks < MIN_TASKS:
        said.append(
            f"{name}, k = {row.depth}: {row.trace.n_tasks} tasks are too few for an interval"
            f" ({MIN_TASKS} are needed)"
        )
    if not row.own_sequential:
        said.append(
            f"{name}, k = {row.depth}: the sequential time is the trace's generation and tools,"
            " without what the loop itself took"
        )
    else:
        sums = row.sums
        alone_s = sums["paired_wall_s"] / sums["paired_steps"]
        in_trace_s = (row.given.gen_s.sum() + row.given.tool_s.sum()) / row.given.n_steps
        if abs(ratio := float(in_trace_s / alone_s) - 1) > SAME_RUN:
            said.append(
                f"{name}, k = {row.depth}: a step of the trace takes {ratio:+.0%} against one of"
                " the sequential arm, as if it were of another run; what is predicted stands on the"
                " trace, the measured speedup on the arm"
            )
    rates = row.alone_ms_per_token
    if {"sequential", "speculative"} <= rates.keys():
        ratio = rates["speculative"] / rates["sequential"]
        if not 1 / SAME_MACHINE < ratio < SAME_MACHINE:
            said.append(
                f"{name}, k = {row.depth}: a request alone takes {rates['sequential']:.1f} ms a"
                f" token in the sequential arm and {rates['speculative']:.1f} in the speculative"
                " one: the machine was not equally fast in both, and the measured speedup is of"
                " that too"
            )
    off = row.rounds.decomposition()["wall_over_clock"] - 1
    if (off.abs() > CLOCKS_AGREE).any():
        said.append(
            f"{name}, k = {row.depth}: the rounds' times are {off.iloc[0]:+.1%} off the tasks' own"
            " clock"
        )
    return said


def _counted(what: str, errors: Sequence[float]) -> str:
    sizes = np.abs(errors)
    near, far = (int((sizes <= limit).sum()) for limit in (NEAR, FAR))
    return f"{what}: {near} of {len(errors)} within {NEAR:.2f} and {far} within {FAR:.2f}"


def _by_task(rounds: Floats, wait_s: Floats) -> pd.DataFrame:
    return pd.DataFrame({"rounds": rounds, "wait_s": wait_s})
