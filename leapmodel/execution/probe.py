"""Measure of servers, without speculating, the two things that a prediction needs.

The draft's seconds a call, one at a time, on held-out contexts; and how the target's time per token
grows with the requests it serves at once (assumption (b) of Sec. 3.2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import numpy as np

from leapmodel.bootstrap import ratio_with_error
from leapmodel.errors import UsageError
from leapmodel.execution.contexts import Context
from leapmodel.execution.endpoint import Endpoint, Generation
from leapmodel.probes import Probe, TokenTime


async def probe(
    contexts: Sequence[Context],
    target: Endpoint,
    draft: Endpoint,
    depth: int,
    *,
    draft_name: str | None = None,
    batches: int = 8,
    tick: Callable[[], None] = lambda: None,
) -> Probe:
    """Measure both.

    Parameters
    ----------
    contexts : sequence of Context
        Held-out contexts, in the order of a trace; each is a draft call.
    target, draft : Endpoint
        Open.
    depth : int
        The target is asked 1 to depth + 1 things at once.
    draft_name : str, optional
        What the probe calls the draft; default its model's name.
    batches : int, default 8
        Batches at each level. Each batch asks a task's successive contexts, as a round does.
    tick : callable
        Called after each request or batch.

    Raises
    ------
    UsageError
        If there is no context.
    EngineError
        If a server fails.
    """
    if not contexts:
        raise UsageError("probe: expected at least one context, found none")
    await draft.generate(contexts[0].draft)  # the first call opens connections
    seconds: dict[tuple[str, int], list[float]] = {}
    for context in contexts:
        answer = await draft.generate(context.draft)
        seconds.setdefault((context.task.name, context.run), []).append(answer.seconds)
        tick()
    latency_s, error_s = ratio_with_error(
        [sum(one) for one in seconds.values()], [len(one) for one in seconds.values()]
    )
    times = []
    for requests in range(1, depth + 2):
        found = []
        for number in range(batches):
            at = (number * len(contexts)) // batches
            chosen = [contexts[(at + i) % len(contexts)] for i in range(requests)]
            answers = await asyncio.gather(*(target.generate(c.target) for c in chosen))
            found.append(_ms_per_token(answers))
            tick()
        times.append(TokenTime(requests, float(np.mean(found)), _standard_error(found), batches))
    return Probe(
        draft_name or draft.model,
        target.model,
        latency_s,
        error_s,
        len(contexts),
        tuple(times),
    )


def _ms_per_token(answers: Sequence[Generation]) -> float:
    """Return milliseconds over tokens, summed over the requests of a batch, each with its own."""
    return float(
        1000
        * sum(answer.seconds for answer in answers)
        / max(1, sum(answer.completion_tokens for answer in answers))
    )


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
