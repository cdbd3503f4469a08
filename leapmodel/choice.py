"""Choose a draft and a depth: every configuration side by side, and one recommendation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from leapmodel.bootstrap import N_RESAMPLES, interval_of_best, tasks_needed
from leapmodel.break_even import break_even
from leapmodel.concurrency import slowed
from leapmodel.draft import Draft
from leapmodel.equations import DepthRule, depth_rule, depth_rule_simplified
from leapmodel.errors import UsageError
from leapmodel.money import Money, Prices, completion_tokens, money_of
from leapmodel.prediction import (
    SCHEMA_VERSION,
    Prediction,
    made_with,
    nearly_as_good,
    plain_values,
    still_rising,
)
from leapmodel.predictor import (
    DEPTHS,
    OF_THE_WORKLOAD,
    deciding_tasks,
    predict,
    require_trace,
    speedups,
    unknown_of,
)
from leapmodel.replay import (
    ReplaySums,
    Terminal,
    VerificationWork,
    average_work,
    exact_replay,
    verification_work,
)
from leapmodel.replay.sums import check_depths
from leapmodel.segments import Floats, Ints
from leapmodel.trace import Trace
from leapmodel.verdict import Unknown, Verdict, give_verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class DraftChoice:
    """One draft at every depth.

    Attributes
    ----------
    prediction : Prediction
        Its prediction at the depths asked for.
    work : VerificationWork
        Requests and generation beyond the sequential arm.
    rule, simplified : DepthRule
        Eq. 6 and Eq. 7 at k = 1, 2, … up to the largest depth.
    break_even : ndarray, shape (depths,)
        Lowest acceptance at which S reaches 1 at this draft's cost; NaN if none does.
    perfect_at_cost : ndarray, shape (depths,)
        S of a draft with this cost that is always right.
    tasks_needed : ndarray of float, shape (depths,)
        Tasks for the half-width asked for; NaN without an interval.
    money : Money or None
        At the prices stated.
    """

    prediction: Prediction
    work: VerificationWork
    rule: DepthRule
    simplified: DepthRule
    break_even: Floats
    perfect_at_cost: Floats
    tasks_needed: Floats
    money: Money | None


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """Every draft x depth, and the recommendation.

    Attributes
    ----------
    drafts : tuple of DraftChoice
        In the order they were given.
    depths : ndarray of int, shape (depths,)
        The depths k.
    ceiling : ndarray, shape (depths,)
        S of a perfect draft that costs nothing, with a target that does not slow down under
        concurrency. A reference, not a strict bound: a miss can by
        luck begin the next round where step times fit better together.
    half_width : float
        The half-width that ``tasks_needed`` refers to.
    n_tasks : int
        Tasks in the trace.
    completion_tokens : float or None
        Completion tokens of the sequential arm, if the trace has them.
    verdict : Verdict
        On the best of all configurations.
    advice : tuple of str
        Sentences beside the verdict.
    """

    drafts: tuple[DraftChoice, ...]
    depths: Ints
    ceiling: Floats
    half_width: float
    n_tasks: int
    completion_tokens: float | None
    verdict: Verdict
    advice: tuple[str, ...]
    warnings: tuple[str, ...]
    conditional_on: tuple[str, ...]
    seed: int
    n_resamples: int

    def __repr__(self) -> str:
        v = self.verdict
        best = f"{v.draft} at k = {v.depth}, {v.speedup:.2f}x"
        return f"<Choice among {len(self.drafts)} drafts: {best}, {v.decision}>"

    def __str__(self) -> str:
        return self.summary()

    def to_frame(self) -> pd.DataFrame:
        """Return one row a draft and depth.

        Columns: ``draft``, ``k``; ``speedup`` with ``speedup_low``, ``speedup_high`` (95%, each
        configuration by itself) and ``speedup_se``; ``extra_requests`` and ``extra_tokens`` (share
        of the sequential arm's; ``extra_tokens_bound`` if nothing were cancelled); ``gain`` and
        ``threshold`` of Eq. 6, ``q_k`` and ``threshold_simplified`` of Eq. 7, ``pays`` for Eq. 6;
        ``break_even`` acceptance; ``perfect_at_cost``, ``ceiling``; ``task_saved_p50_s``,
        ``task_saved_p95_s`` (seconds saved per run of a task); ``tasks_needed``;
        ``money_sequential`` and ``money_speculative`` (per run of a task, if prices were given).
        """
        return pd.concat([self._rows(draft) for draft in self.drafts], ignore_index=True)

    def _rows(self, choice: DraftChoice) -> pd.DataFrame:
        p = choice.prediction
        at = p.depths - 1
        frame = p.to_frame()[["k", "speedup", "speedup_low", "speedup_high", "speedup_se"]]
        frame.insert(0, "draft", p.draft.name)
        seconds = p.replay.gen_s.sum()
        saved = np.percentile(p.task_saved_s, [50, 95], axis=0)
        money = choice.money
        return frame.assign(
            extra_requests=p.replay.requests_per_step - 1,
            extra_tokens=choice.work.cancelled_s / seconds,
            extra_tokens_bound=choice.work.uncancelled_s / seconds,
            gain=choice.rule.gain[at],
            threshold=choice.rule.threshold[at],
            pays=choice.rule.pays[at],
            q_k=choice.simplified.gain[at],
            threshold_simplified=choice.simplified.threshold[at],
            break_even=choice.break_even,
            perfect_at_cost=choice.perfect_at_cost,
            ceiling=self.ceiling,
            task_saved_p50_s=saved[0],
            task_saved_p95_s=saved[1],
            tasks_needed=choice.tasks_needed,
            money_sequential=np.nan if money is None else money.sequential_per_run,
            money_speculative=np.nan if money is None else money.speculative_per_run,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what is unavailable is None."""
        drafts = []
        for choice in self.drafts:
            rows = self._rows(choice).drop(columns=["draft", "k", "speedup", "speedup_se"])
            rows = rows.drop(columns=["speedup_low", "speedup_high", "pays"])
            table = {str(name): plain_values(rows[name].to_numpy(float)) for name in rows}
            rule = {
                "pays": choice.rule.pays[choice.prediction.depths - 1].tolist(),
                "depth_rule_stops_at": choice.rule.last_before_stop,
                "depth_rule_simplified_stops_at": choice.simplified.last_before_stop,
            }
            drafts.append({**choice.prediction.to_dict(), **table, **rule})
        return {
            "schema_version": SCHEMA_VERSION,
            "made_with": made_with(self.seed, self.n_resamples),
            "trace": self.drafts[0].prediction.about_trace,
            "depths": self.depths.tolist(),
            "half_width": self.half_width,
            "completion_tokens": self.completion_tokens,
            "ceiling": plain_values(self.ceiling),
            "drafts": drafts,
            "conditional_on": list(self.conditional_on),
            "warnings": list(self.warnings),
            "advice": list(self.advice),
            "verdict": self.verdict.to_dict(),
        }

    def summary(self) -> str:
        """Return the table and the recommendation as plain text."""
        shown = self.to_frame()[
            ["draft", "k", "speedup", "speedup_low", "speedup_high", "extra_requests"]
        ]
        table = shown.to_string(index=False, float_format=lambda x: f"{x:.2f}", na_rep="-")
        return "\n".join([table, self.verdict.sentence, *self.advice])

    def _repr_html_(self) -> str:
        from html import escape

        table = self.to_frame().to_html(index=False, float_format="{:.3f}".format, na_rep="–")
        return f"<p><b>{escape(self.verdict.sentence)}</b></p>{table}"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw all drafts by depth; see :func:`leapmodel.plots.plot_speedup`."""
        from leapmodel.plots import plot_speedup

        return plot_speedup(
            [choice.prediction.curve for choice in self.drafts],
            ax=ax,
            ceiling=self.ceiling,
            origin=self.drafts[0].prediction.trace_origin,
        )


def choose(
    trace: Trace,
    drafts: Draft | Sequence[Draft],
    depths: Sequence[int] | np.ndarray = DEPTHS,
    *,
    terminal: Terminal = "accepted",
    slowdown: Sequence[float] | None = None,
    prices: Prices | None = None,
    half_width: float = 0.05,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Choice:
    """Compare drafts and depths on one workload and recommend one (Eq. 4, 6 and 7).

    Parameters
    ----------
    trace : Trace
        The workload, run sequentially.
    drafts : Draft or sequence of Draft
        The evidence for each candidate, with different names.
    depths : array_like of int, default 1 to 6
        The depths k.
    terminal : {"accepted", "probe"}, default "accepted"
        As for :func:`~leapmodel.predictor.predict`.
    slowdown : sequence of float, optional
        Of the target with several requests at once, whatever the draft (default: that which was
        timed along with one of them, the first): as for
        :func:`~leapmodel.predictor.predict`.
    prices : Prices, optional
        What tokens cost, to add money.
    half_width : float, default 0.05
        Of a 95% interval of S: how many tasks would it take?
    n_resamples, seed : int
        The bootstrap; the same resamples serve all drafts, so that differences are paired.
    progress : callable, optional
        Called with each draft's name when it is done.

    Returns
    -------
    Choice

    Raises
    ------
    UsageError
        If there is no draft, or two have one name, or prices are given for a trace without tokens.

    Examples
    --------
    >>> from leapmodel.draft import stated_draft
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": [f"t{i // 4}" for i in range(80)], "step": [0, 1, 2, 3] * 20,
    ...     "gen_s": 1.0, "action": "ls({})"}))
    >>> choose(trace, [stated_draft(0.9, cost=0.3, name="big"),
    ...                stated_draft(0.7, cost=0.05, name="small")], [1, 2])
    <Choice among 2 drafts: small at k = 2, 1.64x, deploy>
    """
    require_trace(trace)
    if isinstance(drafts, Draft):
        drafts = [drafts]
    if not drafts:
        raise UsageError("expected at least one draft to choose from")
    names = [draft.name for draft in drafts]
    if len(set(names)) < len(names):
        raise UsageError(f"each draft needs a name of its own, found {', '.join(names)}")
    asked = check_depths(depths)
    # a draft that is always right replays alike whatever it costs, so once serves all
    perfect = exact_replay(trace.segments, 1.0, asked, terminal=terminal)
    # It is the target's own, and drafts are to be compared on one target: as far as it was timed.
    slowdown = slowdown or max((draft.slowdown for draft in drafts), key=len) or None
    choices = []
    for draft in drafts:
        prediction = predict(
            trace,
            draft,
            asked,
            terminal=terminal,
            slowdown=slowdown,
            n_resamples=n_resamples,
            seed=seed,
        )
        choices.append(_one_draft(trace, prediction, perfect, prices, half_width))
        if progress is not None:
            progress(draft.name)
    predictions = [choice.prediction for choice in choices]
    verdict = _best(trace, predictions)
    tokens = None
    if "completion_tokens" in trace.frame and trace.frame["completion_tokens"].notna().any():
        tokens = float(completion_tokens(trace).sum())
    return Choice(
        drafts=tuple(choices),
        depths=asked,
        ceiling=speedups(perfect, 0.0, proposal_tools=False),
        half_width=half_width,
        n_tasks=trace.n_tasks,
        completion_tokens=tokens,
        verdict=verdict,
        advice=tuple(_advice(choices, verdict, int(trace.segment_lengths.max()))),
        warnings=tuple(dict.fromkeys(w for p in predictions for w in p.warnings)),
        conditional_on=tuple(
            dict.fromkeys(
                condition if condition in OF_THE_WORKLOAD else f"{p.draft.name}: {condition}"
                for p in predictions
                for condition in p.conditional_on
            )
        ),
        seed=seed,
        n_resamples=n_resamples,
    )


def _one_draft(
    trace: Trace,
    prediction: Prediction,
    perfect: ReplaySums,
    prices: Prices | None,
    half_width: float,
) -> DraftChoice:
    deepest = int(prediction.depths[-1])
    segments, call_s = trace.segments, prediction.call_s
    # the depth rule needs every depth from 1 on, whichever were asked for
    every = np.arange(1, deepest + 1)
    replay = (
        prediction.replay
        if np.array_equal(prediction.depths, every)
        else slowed(
            prediction.draft.acceptance.replay(segments, every, prediction.terminal),
            prediction.slowdown,
        )
    )
    speedup = speedups(replay, call_s)
    at_depth = (every - 1, every - 1)
    laws = prediction.draft.acceptance.law(deepest)
    cost = None if prices is None else prices.request_cost(trace)
    work = average_work(
        [
            verification_work(segments, law, prediction.depths, request_cost=cost)
            for law in (laws if isinstance(laws, list) else [laws])
        ]
    )
    se = prediction.speedup_se
    return DraftChoice(
        prediction=prediction,
        work=work,
        rule=depth_rule(replay.commits, replay.commits / speedup),
        simplified=depth_rule_simplified(
            replay.hit_rates[at_depth],
            np.concatenate(([1.0], speedup[:-1])),
            prediction.draft_cost,
            proposal_rates=replay.proposal_rates[at_depth],
            wait_growth=np.diff(replay.wait_inflation, prepend=1.0),
        ),
        break_even=break_even(trace, prediction),
        perfect_at_cost=speedups(slowed(perfect, prediction.slowdown), call_s),
        tasks_needed=np.array(
            [np.nan] * len(prediction.depths)
            if se is None
            else [
                float(tasks_needed(float(x), deciding_tasks(trace, prediction.draft), half_width))
                for x in se
            ]
        ),
        money=None if prices is None else money_of(trace, work, prices),
    )


def _best(trace: Trace, predictions: Sequence[Prediction]) -> Verdict:
    estimates = np.concatenate([p.speedup for p in predictions])
    best = int(np.argmax(estimates))
    n_depths = len(predictions[0].depths)
    chosen = predictions[best // n_depths]
    ci95 = None
    if chosen.resamples is not None:
        # drafts that too few tasks speak for have no resamples, and can't widen the interval
        compared = [p for p in predictions if p.resamples is not None]
        drawn = np.hstack([p.resamples.speedup for p in compared if p.resamples is not None])
        at = n_depths * [p is chosen for p in compared].index(True) + best % n_depths
        ci95 = interval_of_best(np.concatenate([p.speedup for p in compared]), drawn, at)
    return give_verdict(
        draft=chosen.draft.name,
        depth=int(predictions[0].depths[best % n_depths]),
        speedup=float(estimates[best]),
        ci95=ci95,
        n_tasks=deciding_tasks(trace, chosen.draft),
        n_configurations=len(estimates),
        conditional_on=chosen.conditional_on,
        unknown=_unknown(predictions, best // n_depths, best % n_depths),
    )


def _unknown(predictions: Sequence[Prediction], draft: int, depth: int) -> Unknown | None:
    """Return what is unknown of the best draft; any draft's unknown hits could change a "don't"."""
    chosen = predictions[draft]
    unknown = unknown_of(chosen.draft, chosen.bounds, depth)
    if unknown is None:
        return None
    highest = max(float(p.bounds[1].max()) for p in predictions if p.bounds is not None)
    return unknown._replace(if_all_hit=highest)


def _advice(choices: Sequence[DraftChoice], verdict: Verdict, longest_segment: int) -> list[str]:
    """Answer what a person would ask next, such as for something nearly as good and cheaper."""
    chosen = next(c for c in choices if c.prediction.draft.name == verdict.draft)
    if longest_segment == 1:
        return ["There is nothing to gain from any draft: no segment has a second step."]
    advice = nearly_as_good(chosen.prediction, verdict)
    advice += still_rising(chosen.prediction, verdict)
    hopeless = [c.prediction.draft.name for c in choices if float(c.perfect_at_cost.max()) <= 1.0]
    if hopeless:
        advice.append(
            f"Too slow to help however often right: {', '.join(hopeless)} (no acceptance at that"
            " cost reaches 1x)."
        )
    if chosen.rule.last_before_stop < verdict.depth and verdict.speedup > 1:
        advice.append(
            f"Going up one depth at a time, Eq. 6 first says stop after k ="
            f" {chosen.rule.last_before_stop}; the largest speedup of all depths decides here."
        )
    return advice
