"""Verify: the target's own action on every context at once, consumed in prefix order (App. I)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from leapmodel.actions import same_action
from leapmodel.benchmarks import Prompt
from leapmodel.execution.records.record import Verification
from leapmodel.execution.talking.endpoint import Call, Endpoint, Generation

Mode = Literal["prefix", "gather"]
"""Whether what a mismatch made needless is cancelled, or waited for."""


@dataclass(frozen=True)
class Verified:
    """What the target said.

    Attributes
    ----------
    requests : tuple of Verification
        One per context, in prefix order.
    accepted : int
        Leading proposals that equal the target's action.
    wall_s : float
        From the first request to the moment the round could commit.
    """

    requests: tuple[Verification, ...]
    accepted: int
    wall_s: float

    @property
    def used(self) -> tuple[Verification, ...]:
        """The requests that the round consumed."""
        return tuple(one for one in self.requests if one.status == "used")

    @property
    def wait_s(self) -> float:
        """The longest request that was consumed."""
        return max(one.end_s - one.start_s for one in self.used)


async def verify(
    target: Endpoint,
    contexts: Sequence[Prompt],
    proposed: Sequence[str],
    parse: Callable[[str], str | None],
    mode: Mode,
    began_s: float,
) -> Verified:
    """Ask the target on all contexts at once and keep what the leading matches allow.

    Parameters
    ----------
    target : Endpoint
    contexts : sequence of Prompt
        The committed state's, then the one after each proposal that something may follow.
    proposed : sequence of str
        The proposals; the j-th is compared with the target's action on the j-th context.
    parse : callable
        From raw output to canonical action, or None.
    mode : {"prefix", "gather"}
        In ``"prefix"`` order the requests behind a mismatch are cancelled and the round goes on at
        once; ``"gather"`` waits for all of them. Both commit the same.
    began_s : float
        The round's start, by ``time.perf_counter()``.

    Raises
    ------
    EngineError
        If a request that the round needs fails; the others are cancelled first. A request that
        turns out to be needless may fail.
    """
    issued_s = time.perf_counter()
    calls = [target.call(prompt) for prompt in contexts]
    running = [asyncio.ensure_future(call.generation()) for call in calls]
    used: list[tuple[Generation, str | None]] = []
    accepted = 0
    try:
        if mode == "gather":
            await asyncio.wait(running)
        for position, request in enumerate(running):
            generation = await request
            action = parse(generation.text)
            used.append((generation, action))
            if position < len(proposed) and same_action(action, proposed[position]):
                accepted += 1
            else:
                break
        wall_s = time.perf_counter() - issued_s
    finally:
        # Also when this task is cancelled itself: no request may outlive its round.
        for request in running:
            request.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    stopped_s = time.perf_counter()
    requests = [
        Verification(
            generation.context,
            generation.text,
            action,
            generation.start_s - began_s,
            generation.end_s - began_s,
            generation.prompt_tokens,
            generation.cached_tokens,
            generation.completion_tokens,
            "used",
        )
        for generation, action in used
    ]
    for i in range(len(used), len(contexts)):
        requests.append(_unused(calls[i], running[i], began_s, stopped_s))
    return Verified(tuple(requests), accepted, wall_s)


def _unused(
    call: Call,
    request: asyncio.Future[Generation],
    began_s: float,
    stopped_s: float,
) -> Verification:
    """Return the record of a request that a mismatch made needless; its tokens were still spent."""
    failed = not request.cancelled() and request.exception() is not None
    ended = None if request.cancelled() or failed else request.result()
    return Verification(
        call.context,
        call.text,
        None,
        call.start_s - began_s,
        (stopped_s if ended is None else ended.end_s) - began_s,
        None if ended is None else ended.prompt_tokens,
        None if ended is None else ended.cached_tokens,
        call.completion_tokens,
        "failed" if failed else "cancelled",
    )
