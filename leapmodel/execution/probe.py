"""Two things a prediction needs of servers, measured without speculating.

The draft's seconds a call, one at a time, on held-out contexts; and how the target's time per token
grows with the requests it serves at once (assumption (b) of Sec. 3.2).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leapmodel.errors import DataError, UsageError, shown
from leapmodel.execution.about import about_machine
from leapmodel.execution.contexts import Context
from leapmodel.execution.endpoint import Endpoint, Generation

PROBE_KIND = "probe"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class TokenTime:
    """The target's time per completion token at one level of concurrency.

    Attributes
    ----------
    requests : int
        Served at once.
    ms_per_token, se : float
        Mean over batches of seconds over tokens, in milliseconds, and its standard error.
    batches : int
    """

    requests: int
    ms_per_token: float
    se: float
    batches: int


@dataclass(frozen=True)
class Probe:
    """What was probed.

    Attributes
    ----------
    draft : str
    target : str
        Names of the models.
    draft_latency_s, draft_latency_se : float
        Mean of the draft's calls, one at a time, and its standard error over tasks.
    calls : int
        Draft calls made.
    token_times : tuple of TokenTime
        From one request at a time upwards.
    """

    draft: str
    target: str
    draft_latency_s: float
    draft_latency_se: float
    calls: int
    token_times: tuple[TokenTime, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as the object a probe file holds."""
        return {
            "leapmodel": PROBE_KIND,
            "version": FORMAT_VERSION,
            **asdict(self),
            "machine": about_machine(),
        }

    def summary(self) -> str:
        """Return it as text."""
        alone = self.token_times[0].ms_per_token if self.token_times else float("nan")
        lines = [
            f"draft {self.draft}: {1000 * self.draft_latency_s:.1f}"
            f" ± {1000 * self.draft_latency_se:.1f} ms a call ({self.calls} calls, one at a time)",
            f"target {self.target}:",
        ]
        lines += [
            f"  {one.requests} at once: {one.ms_per_token:.2f} ± {one.se:.2f} ms per token"
            f" ({one.ms_per_token / alone - 1:+.1%}, {one.batches} batches)"
            for one in self.token_times
        ]
        return "\n".join(lines)


async def probe(
    contexts: Sequence[Context],
    target: Endpoint,
    draft: Endpoint,
    depth: int,
    *,
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
    total = np.array([sum(one) for one in seconds.values()])
    calls = np.array([len(one) for one in seconds.values()])
    mean = float(total.sum() / calls.sum())
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
        draft.model,
        target.model,
        mean,
        _ratio_error(total, calls, mean),
        int(calls.sum()),
        tuple(times),
    )


def read_probe(path: str | Path) -> dict[str, Any]:
    """Read a probe file; ``draft_latency_s`` is a number above 0.

    Raises
    ------
    DataError
        If it is missing or not a probe file.
    """
    try:
        said = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(path, expected="a probe file", found=str(error.strerror)) from None
    except ValueError:
        raise DataError(path, expected="a JSON object", found="something else") from None
    kind = said.get("leapmodel") if isinstance(said, dict) else None
    if kind != PROBE_KIND:
        raise DataError(path, expected="a probe file", found=shown(kind))
    latency = said.get("draft_latency_s")
    if not isinstance(latency, (int, float)) or isinstance(latency, bool) or not latency > 0:
        raise DataError(
            path, column="draft_latency_s", expected="a number > 0", found=shown(latency)
        )
    found: dict[str, Any] = said
    return found


def _ms_per_token(answers: Sequence[Generation]) -> float:
    """Return milliseconds over tokens, summed over the requests of a batch, each with its own."""
    return float(
        1000
        * sum(answer.seconds for answer in answers)
        / max(1, sum(answer.completion_tokens for answer in answers))
    )


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _ratio_error(total: np.ndarray, calls: np.ndarray, mean: float) -> float:
    """Return the standard error of a ratio of sums over tasks (linearised)."""
    n = len(total)
    if n < 2:
        return float("nan")
    rest = total - mean * calls
    return float(np.sqrt(n / (n - 1) * (rest**2).sum()) / calls.sum())
