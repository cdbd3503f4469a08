"""What the target's tokens cost in both arms, at prices somebody states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leapmodel.errors import UsageError
from leapmodel.replay import VerificationWork
from leapmodel.segments import Floats
from leapmodel.trace import Trace

PER = 1e6
"""Prices are per million tokens."""


@dataclass(frozen=True)
class Prices:
    """Prices per million tokens, in any one currency.

    Attributes
    ----------
    prompt, cached, completion : float
        Of a prompt token, of one found in the cache, of a generated one; each >= 0.
    """

    prompt: float
    cached: float
    completion: float

    def __post_init__(self) -> None:
        for name in ("prompt", "cached", "completion"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise UsageError(f"price of {name} tokens: expected a number >= 0, found {value}")

    def request_cost(self, trace: Trace) -> Floats:
        """Return the cost of sending each step's prompt, shape (steps,).

        Raises
        ------
        UsageError
            If no step of the trace has prompt tokens.
        """
        prompt = _filled(trace, "prompt_tokens", np.ones(trace.n_steps))
        cached = np.zeros(trace.n_steps)
        if "cached_tokens" in trace.frame:
            cached = np.minimum(trace.frame["cached_tokens"].fillna(0).to_numpy(float), prompt)
        return ((prompt - cached) * self.prompt + cached * self.cached) / PER


def completion_tokens(trace: Trace) -> Floats:
    """Return the completion tokens of each step; where a log has none, at the trace's own rate.

    Raises
    ------
    UsageError
        If no step has any.
    """
    return _filled(trace, "completion_tokens", trace.gen_s)


def _filled(trace: Trace, column: str, in_proportion_to: Floats) -> Floats:
    values = trace.frame[column].to_numpy(float) if column in trace.frame else np.array([np.nan])
    known = np.isfinite(values)
    if not known.any():
        raise UsageError(f"money needs the column {column}, which this trace does not have")
    rate = values[known].sum() / in_proportion_to[known].sum()
    return np.where(known, values, rate * in_proportion_to)


@dataclass(frozen=True, eq=False)
class Money:
    """Cost of the target's tokens per run of a task; the draft's own are not in it.

    Attributes
    ----------
    sequential_per_run : float
        In the sequential arm.
    speculative_per_run : ndarray, shape (depths,)
        With the verifications that are thrown away. Their prompts are taken to be cached to the
        same share as the trace's, their completions to run until they are cancelled.
    """

    sequential_per_run: float
    speculative_per_run: Floats


def money_of(trace: Trace, work: VerificationWork, prices: Prices) -> Money:
    """Return the cost per run of a task in both arms.

    Parameters
    ----------
    trace : Trace
        With prompt and completion tokens.
    work : VerificationWork
        Made with ``request_cost=prices.request_cost(trace)``.
    prices : Prices
        Per million tokens.
    """
    completion = completion_tokens(trace)
    tokens_per_s = completion.sum() / trace.gen_s.sum()
    of_prompts = prices.request_cost(trace).sum()
    of_completions = completion.sum() * prices.completion / PER
    thrown_away = work.cancelled_s * tokens_per_s * prices.completion / PER
    return Money(
        sequential_per_run=float((of_prompts + of_completions) / trace.n_runs),
        speculative_per_run=(work.request_cost + of_completions + thrown_away) / trace.n_runs,
    )
