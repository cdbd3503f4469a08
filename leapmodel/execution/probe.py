"""Measure of servers, without speculating, the two things that a prediction needs.

The draft's seconds a call, one at a time, on held-out contexts; and how the target's time per token
grows with the requests it serves at once (assumption (b) of Sec. 3.2).
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby

import numpy as np

from leapmodel.bootstrap import ratio_with_error
from leapmodel.errors import EngineError, UsageError
from leapmodel.execution.contexts import Context
from leapmodel.execution.protocol import reset_cache
from leapmodel.execution.refusals import Refusals, Tell
from leapmodel.execution.talking.endpoint import Endpoint, Generation
from leapmodel.probes import Probe, TokenTime


async def probe(
    contexts: Sequence[Context],
    target: Endpoint,
    draft: Endpoint,
    depth: int,
    *,
    bear: Tell | None = None,
    draft_name: str | None = None,
    batches: int = 8,
    reset_caches: bool = True,
    tick: Callable[[], None] = lambda: None,
    answered: Callable[[str, Generation], None] = lambda role, answer: None,
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
    bear : callable, optional
        Told in a sentence which contexts a server refused, and that these were left out; without
        it the first of them is an error.
    draft_name : str, optional
        What the probe calls the draft; default its model's name.
    batches : int, default 8
        Batches at each level, each of another task.
    reset_caches : bool, default True
        Whether prefix caches are emptied before the draft is asked, and before each level.
    tick : callable
        Called after each request or batch.
    answered : callable
        Shown each answer that is timed, and whose it is, ``"target"`` or ``"draft"``.

    Raises
    ------
    UsageError
        If there is no context.
    EngineError
        If a server fails, refuses every context, or the target's counts no tokens.

    Notes
    -----
    A batch is a round in the middle of a task: the context before it is in the cache, its own are
    new. What is timed therefore holds reading the prompts, which takes more the more there are,
    and not only writing the answers.
    """
    if not contexts:
        raise UsageError("probe: expected at least one context, found none")
    seconds = await _draft_calls(
        contexts, draft, Refusals(bear), reset_caches, tick, functools.partial(answered, "draft")
    )
    latency_s, error_s = ratio_with_error(
        [sum(one) for one in seconds.values()], [len(one) for one in seconds.values()]
    )
    refusals = Refusals(bear)
    times = []
    for requests in range(1, depth + 2):
        rounds = _rounds(contexts, requests)
        first = next(rounds, None)
        if first is None:
            break  # no task has so many steps
        with refusals.taken(contexts[0]):  # opens connections
            await _at_once(target, [contexts[0]] * requests)
        if reset_caches:
            await reset_cache(target)
        found: list[float] = []
        for before, asked in chain([first], rounds):
            if len(found) == batches:
                break
            with refusals.taken(asked[-1]):
                if before is not None:
                    await target.generate(replace(before.target, max_tokens=1))
                answers = await _at_once(target, asked)
                found.append(_ms_per_token(target, answers))
                for answer in answers:
                    answered("target", answer)
                tick()
        if not found:
            break
        times.append(TokenTime(requests, float(np.mean(found)), _standard_error(found), len(found)))
    refusals.tell(anything_left=bool(times))
    calls = sum(map(len, seconds.values()))
    return Probe(draft_name or draft.model, target.model, latency_s, error_s, calls, tuple(times))


async def _draft_calls(
    contexts: Sequence[Context],
    draft: Endpoint,
    refusals: Refusals,
    reset_caches: bool,
    tick: Callable[[], None],
    answered: Callable[[Generation], None],
) -> dict[tuple[str, int], list[float]]:
    """Ask for every context, one at a time, and return the seconds by task and run."""
    with refusals.taken(contexts[0]):  # opens a connection
        await draft.generate(contexts[0].draft)
    if reset_caches:
        await reset_cache(draft)
    seconds: dict[tuple[str, int], list[float]] = {}
    for context in contexts:
        with refusals.taken(context):
            answer = await draft.generate(context.draft)
            answered(answer)
            seconds.setdefault((context.task.name, context.run), []).append(answer.seconds)
        tick()
    refusals.tell(anything_left=bool(seconds))
    return seconds


async def _at_once(target: Endpoint, contexts: Sequence[Context]) -> list[Generation]:
    """Return the answers to all; if one fails, its error, once none runs any more."""
    answers = await asyncio.gather(
        *(target.generate(one.target) for one in contexts), return_exceptions=True
    )
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [answer for answer in answers if isinstance(answer, Generation)]


def _rounds(
    contexts: Sequence[Context], requests: int
) -> Iterator[tuple[Context | None, Sequence[Context]]]:
    """Yield the contexts that a round of each task would ask at once, with the one before them.

    It starts at the second step where the task is long enough, else at the first.
    """
    for _, steps in groupby(contexts, key=lambda context: (context.task.name, context.run)):
        task = list(steps)
        if len(task) > requests:
            yield task[0], task[1 : requests + 1]
        elif len(task) == requests:
            yield None, task


def _ms_per_token(target: Endpoint, answers: Sequence[Generation]) -> float:
    """Return milliseconds over tokens, summed over the requests of a batch, each with its own."""
    tokens = sum(answer.completion_tokens for answer in answers)
    if not tokens:
        raise EngineError(f"{target.name}: expected answers of one token or more, found 0 tokens")
    return float(1000 * sum(answer.seconds for answer in answers) / tokens)


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
