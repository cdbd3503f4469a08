"""What was probed of servers: a draft's seconds a call, a target's time per token (a JSON file)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leapmodel.errors import DataError, shown

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

    @property
    def slowdown(self) -> tuple[float, ...]:
        """The target's time per token with 1, 2, … requests at once, over that of one alone.

        All 1 where assumption (b) holds. A level that was not probed takes the next lower one's.
        """
        known = {one.requests: one.ms_per_token for one in self.token_times}
        if 1 not in known:
            return ()
        factors = [1.0]
        for requests in range(2, max(known) + 1):
            found = known.get(requests)
            factors.append(factors[-1] if found is None else found / known[1])
        return tuple(factors)

    def to_dict(self) -> dict[str, Any]:
        """Return it as the object a probe file holds."""
        return {
            "leapmodel": PROBE_KIND,
            "version": FORMAT_VERSION,
            **asdict(self),
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


def read_probe(path: str | Path) -> Probe:
    """Read a probe file.

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
    latency = _number(path, said, "draft_latency_s")
    times = said.get("token_times", [])
    if not isinstance(times, list) or not all(isinstance(one, dict) for one in times):
        raise DataError(
            path, column="token_times", expected="a list of objects", found=shown(times)
        )
    return Probe(
        str(said.get("draft", "draft")),
        str(said.get("target", "target")),
        latency,
        float(said.get("draft_latency_se") or "nan"),
        int(said.get("calls") or 0),
        tuple(
            TokenTime(
                int(_number(path, one, "requests")),
                _number(path, one, "ms_per_token"),
                float(one.get("se") or "nan"),
                int(one.get("batches") or 0),
            )
            for one in times
        ),
    )


def what_was_probed(probes: Sequence[Probe]) -> dict[str, Any]:
    """Return the arguments of :func:`~leapmodel.validation.validate` that probes give.

    Those of the one draft that was probed, of each by its name if there are several; none of none.
    """
    if not probes:
        return {}
    if len(probes) == 1:
        return {"draft_latency_s": probes[0].draft_latency_s, "slowdown": probes[0].slowdown}
    return {
        "draft_latency_s": {probe.draft: probe.draft_latency_s for probe in probes},
        "slowdown": {probe.draft: probe.slowdown for probe in probes},
    }


def _number(path: str | Path, said: Mapping[str, Any], column: str) -> float:
    value = said.get(column)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
        raise DataError(path, column=column, expected="a number > 0", found=shown(value))
    return float(value)
