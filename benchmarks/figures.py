"""What a benchmark reports: one figure a row, with its spread and its target."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True)
class Figure:
    """One measured quantity.

    Attributes
    ----------
    what : str
        What was measured.
    values : sequence of float
        One value per repeat.
    unit : str
        Of the values: ``s``, ``x`` (a ratio), ``MB``, …
    target : float, optional
        The bound to meet; None where nothing is asked.
    at_least : bool
        Whether the target is a lower bound; an upper one otherwise.
    note : str
        How it was measured, or why it could not be.
    """

    what: str
    values: Sequence[float] = ()
    unit: str = ""
    target: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the median meets the target; None without a target or a value."""
        if self.target is None or not self.values:
            return None
        middle = median(self.values)
        return middle >= self.target if self.at_least else middle < self.target

    def cells(self) -> tuple[str, ...]:
        """Return the row's cells: what, min, median, max, unit, target, met, note."""
        spread = ("-", "-", "-")
        if self.values:
            spread = tuple(f"{v:,.4g}" if v < 1000 else f"{v:,.0f}" for v in self._spread())
        bound = "" if self.target is None else f"{'>=' if self.at_least else '<'} {self.target:g}"
        met = {True: "met", False: "MISSED", None: ""}[self.is_met]
        if self.target is not None and not self.values:
            met = "not measured"
        return (self.what, *spread, self.unit, bound, met, self.note)

    def _spread(self) -> tuple[float, float, float]:
        return min(self.values), median(self.values), max(self.values)


def seconds_of(call: Callable[[], object]) -> float:
    """Return the wall-clock seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def machine() -> str:
    """Return processor, cores, Python and operating system in a line."""
    processor = platform.processor() or platform.machine()
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        names = [
            line.partition(":")[2].strip()
            for line in listing.read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ]
        processor = names[0] if names else processor
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    version = sys.version.split()[0]
    return f"{processor}, {cores} cores{load}, Python {version}, {platform.system()}"
