"""Seconds and memory of the commands from start to end, and what an import costs.

Run as a program (``command_speed.py STEPS FILE``) it writes a trace: the process that starts the
others must stay small, because a child's peak memory counts its parent's at the start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from figures import Figure

SIZES = (10_000, 100_000, 1_000_000)
PREDICT = ["predict", "T", "--acceptance", "0.8", "--draft-latency", "0.2", "--k", "1:6"]
FORBIDDEN = ("torch", "vllm", "transformers", "matplotlib")


@dataclass(frozen=True)
class Finished:
    """A command that ran to its end."""

    wall_s: float
    user_s: float
    peak_mb: float
    code: int
    out: str
    error: str


def command_figures() -> list[Figure]:
    """Measure `predict` by size, `describe` and the import."""
    with tempfile.TemporaryDirectory() as folder:
        traces = {size: Path(folder) / f"{size}.parquet" for size in SIZES}
        for size, path in traces.items():
            subprocess.run([sys.executable, __file__, str(size), str(path)], check=True)
        return [*_predict(traces), *_describe(traces[SIZES[0]]), *_import()]


def run(arguments: list[str]) -> Finished:
    """Run Python with these arguments and wait for it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, *arguments], stdout=out, stderr=error)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        error.seek(0)
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return Finished(
            wall_s,
            usage.ru_utime,
            usage.ru_maxrss / unit,
            process.returncode,
            out.read().decode(errors="replace"),
            error.read().decode(errors="replace"),
        )


def _failed(what: str, done: Finished, target: float | None = None) -> Figure:
    lines = done.error.strip().splitlines() or [f"exit code {done.code}"]
    return Figure(what, target=target, note=f"failed: {lines[-1]}")


def _predict(traces: dict[int, Path]) -> list[Figure]:
    found = []
    seconds: dict[int, list[float]] = {}
    for size, path in traces.items():
        what = f"leapmodel predict, {size:,} steps, start to end"
        command = ["-m", "leapmodel", *(str(path) if a == "T" else a for a in PREDICT)]
        runs = [run(command) for _ in range(3 if size < SIZES[-1] else 2)]
        if any(done.code for done in runs):
            found.append(_failed(what, runs[-1]))
            continue
        seconds[size] = [done.wall_s for done in runs]
        peak = max(done.peak_mb for done in runs)
        found.append(Figure(what, seconds[size], "s", note=f"peak memory {peak:,.0f} MB"))
    for smaller, larger in pairwise(SIZES):
        if smaller in seconds and larger in seconds:
            growth = median(seconds[larger]) / median(seconds[smaller]) / (larger / smaller)
            found.append(
                Figure(
                    f"growth {smaller:,} to {larger:,} steps / linear growth",
                    [growth],
                    "x",
                    target=1.3,
                    note="below 1 where a fixed cost counts",
                )
            )
    return found


def _describe(trace: Path) -> list[Figure]:
    what = "leapmodel describe, 10,000 steps, start to end"
    runs = [run(["-m", "leapmodel", "describe", str(trace)]) for _ in range(5)]
    if any(done.code for done in runs):
        return [_failed(what, runs[-1], target=2.0)]
    return [Figure(what, [done.wall_s for done in runs], "s", target=2.0)]


def _import() -> list[Figure]:
    bare = median(run(["-c", "pass"]).user_s for _ in range(5))
    found = []
    for module, target in [("leapmodel", 0.3), ("leapmodel.predictor", None)]:
        runs = [run(["-c", f"import {module}"]) for _ in range(5)]
        what = f"import {module}, user time above bare Python"
        if any(done.code for done in runs):
            found.append(_failed(what, runs[-1], target))
        else:
            extra = [done.user_s - bare for done in runs]
            found.append(Figure(what, extra, "s", target))
    listing = f"import leapmodel, sys; print(*[m for m in {FORBIDDEN!r} if m in sys.modules])"
    loaded = run(["-c", listing])
    if loaded.code:
        return [*found, _failed("heavy modules that it loads", loaded)]
    names = loaded.out.split()
    note = ", ".join(names) or f"none of {', '.join(FORBIDDEN)}"
    return [*found, Figure("heavy modules that it loads", [len(names)], "", 1, note=note)]


def _write_trace(n_steps: int, path: str) -> None:
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    lengths = rng.geometric(1 / 12, n_steps)  # of tasks
    lengths = lengths[: int(np.searchsorted(np.cumsum(lengths), n_steps)) + 1]
    task = np.repeat(np.arange(len(lengths)), lengths)[:n_steps]
    first = np.concatenate(([True], np.diff(task) > 0))
    starts = np.flatnonzero(first)
    step = np.arange(n_steps) - np.repeat(starts, np.diff(np.append(starts, n_steps)))
    turn_ends = rng.random(n_steps) < 0.3
    turns = np.cumsum(turn_ends) - turn_ends
    segment = turns - np.repeat(turns[starts], np.diff(np.append(starts, n_steps)))
    calls = np.array([f'look_up({{"item":{i}}})' for i in range(200)], dtype=object)
    action = calls[rng.integers(0, len(calls), n_steps)]
    action[turn_ends] = "<respond/>"
    pd.DataFrame(
        {
            "task": np.char.add("task-", task.astype(str)),
            "segment": segment,
            "step": step,
            "gen_s": 0.05 + rng.gamma(1.0, 1.5, n_steps),
            "tool_s": np.where(turn_ends, 0.0, rng.exponential(0.1, n_steps)),
            "action": action,
        }
    ).to_parquet(path, index=False)


if __name__ == "__main__":
    _write_trace(int(sys.argv[1]), sys.argv[2])
