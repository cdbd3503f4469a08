"""What was probed of servers: a draft's seconds a call, a target's time per token (a JSON file)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from leapmodel.errors import DataError, UsageError, shown
from leapmodel.jsonlines import read_json

PROBE_KIND = "probe"
FORMAT_VERSION = 1
MOST_REQUESTS = 65
"""At once: one more than the largest depth that can be asked about."""
LARGEST = 1e12


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
    draft : str or None
        What the draft is called; None, in a file made by other means, for whichever is asked about.
    target : str
        Name of the model.
    draft_latency_s, draft_latency_se : float
        Mean of the draft's calls, one at a time, and its standard error over tasks.
    calls : int
        Draft calls made.
    token_times : tuple of TokenTime
        From one request at a time upwards.
    source : str
        The file that it was read from, for messages.
    """

    draft: str | None
    target: str
    draft_latency_s: float
    draft_latency_se: float
    calls: int
    token_times: tuple[TokenTime, ...]
    source: str = field(default="a probe", compare=False, repr=False)

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
        """Return it as the object a probe file holds; what is not known is None."""

        def plain(value: Any) -> Any:
            if isinstance(value, float) and math.isnan(value):
                return None
            if isinstance(value, dict):
                return {name: plain(item) for name, item in value.items()}
            return [plain(item) for item in value] if isinstance(value, tuple) else value

        said = {name: plain(value) for name, value in asdict(self).items() if name != "source"}
        return {"leapmodel": PROBE_KIND, "version": FORMAT_VERSION, **said}

    def summary(self) -> str:
        """Return it as text."""
        alone = self.token_times[0].ms_per_token if self.token_times else float("nan")
        lines = [
            f"draft {self.draft or '(no name)'}:"
            f" {_with_error(1000 * self.draft_latency_s, 1000 * self.draft_latency_se, 1)} ms a"
            f" call ({self.calls} calls, one at a time)",
            f"target {self.target}:",
        ]
        lines += [
            f"  {one.requests} at once: {_with_error(one.ms_per_token, one.se, 2)} ms per token"
            f" ({one.ms_per_token / alone - 1:+.1%},"
            f" {one.batches} batch{'es' * (one.batches != 1)})"
            for one in self.token_times
        ]
        return "\n".join(lines)


def read_probe(path: str | Path) -> Probe:
    """Read a probe file.

    Raises
    ------
    DataError
        If it is missing or not a probe file, or if it times the target with several requests at
        once but not with one alone, which the others are compared with.
    """
    said = read_json(path, kind="a probe file", shape="a JSON object")
    kind = said.get("leapmodel") if isinstance(said, dict) else None
    if kind != PROBE_KIND:
        raise DataError(path, expected="a probe file", found=shown(kind))
    read = _Reader(path)
    read.version(said)
    return Probe(
        read.text(said, "draft"),
        read.text(said, "target") or "target",
        read.number(said, "draft_latency_s"),
        read.number(said, "draft_latency_se", absent=math.nan),
        read.whole(said, "calls", absent=0),
        read.token_times(said),
        str(path),
    )


def _with_error(value: float, error: float, digits: int) -> str:
    known = "" if math.isnan(error) else f" ± {error:.{digits}f}"
    return f"{value:.{digits}f}{known}"


def what_was_probed(probes: Sequence[Probe]) -> dict[str, Any]:
    """Return the arguments of :func:`~leapmodel.validation.validate` that probes give.

    Those of each draft by its name; of a probe that names none, whatever the draft.

    Raises
    ------
    UsageError
        If one draft was probed twice.
    """
    if not probes:
        return {}
    names = [probe.draft for probe in probes]
    files = " and ".join(dict.fromkeys(probe.source for probe in probes))
    if names == [None]:
        return {"draft_latency_s": probes[0].draft_latency_s, "slowdown": probes[0].slowdown}
    for name in names:
        if name is None or names.count(name) > 1:
            raise UsageError(
                f"{files}: expected one probe of each draft, found {names.count(name)} of"
                f" {'one without a name' if name is None else repr(name)}"
            )
    return {
        "draft_latency_s": {probe.draft: probe.draft_latency_s for probe in probes},
        "slowdown": {probe.draft: probe.slowdown for probe in probes},
        "probed_in": files,
    }


class _Reader:
    """Reads values out of a probe file's objects; what does not fit is refused by its name."""

    def __init__(self, path: str | Path) -> None:
        self._path = path

    def number(self, said: Mapping[str, Any], name: str, *, absent: float | None = None) -> float:
        value: Any = said.get(name)
        if absent is not None and (value is None or value != value):  # null, or NaN as once written
            return absent
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and (0 < value <= LARGEST or (value == 0 and absent is not None)):
            return float(value)
        self._refuse(name, value, "a number > 0" if absent is None else "a number >= 0")

    def whole(self, said: Mapping[str, Any], name: str, *, absent: int | None = None) -> int:
        value = said.get(name, absent)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST:
            self._refuse(name, value, "a whole number")
        return int(value)

    def text(self, said: Mapping[str, Any], name: str) -> str | None:
        value = said.get(name)
        if value is not None and not isinstance(value, str):
            self._refuse(name, value, "a text")
        return value

    def version(self, said: Mapping[str, Any]) -> None:
        version = self.whole(said, "version", absent=FORMAT_VERSION)
        if not 1 <= version <= FORMAT_VERSION:
            self._refuse("version", version, f"one from 1 to {FORMAT_VERSION}")

    def token_times(self, said: Mapping[str, Any]) -> tuple[TokenTime, ...]:
        times: Any = said.get("token_times")
        if times is None:
            return ()
        if not isinstance(times, list) or not all(isinstance(one, dict) for one in times):
            self._refuse("token_times", times, "a list of objects")
        found = [
            TokenTime(
                self.whole(one, "requests"),
                self.number(one, "ms_per_token"),
                self.number(one, "se", absent=math.nan),
                self.whole(one, "batches", absent=0),
            )
            for one in times
        ]
        levels = [one.requests for one in found]
        for requests in levels:
            if not 1 <= requests <= MOST_REQUESTS or levels.count(requests) > 1:
                self._refuse("requests", requests, f"each of 1 to {MOST_REQUESTS} at most once")
        if found and 1 not in levels:
            self._refuse("requests", levels, "1 among them, to compare the others with")
        return tuple(sorted(found, key=lambda one: one.requests))

    def _refuse(self, name: str, value: Any, expected: str) -> NoReturn:
        raise DataError(self._path, column=name, expected=expected, found=shown(value))
