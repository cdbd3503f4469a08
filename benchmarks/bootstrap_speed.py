"""Time and memory of a 10,000-fold bootstrap over 10,000 tasks x 8 depths.

Run as a program it does one such bootstrap and prints its seconds and the MB it took, because
the peak memory of a process can't be taken back.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

from figures import Figure

N_TASKS, N_RESAMPLES = 10_000, 10_000
N_COLUMNS = 32  # 8 depths x rounds, waits, draft calls and tools
REPEATS = 3


def bootstrap_figures() -> list[Figure]:
    """Measure each bootstrap in a process of its own."""
    seconds, megabytes = [], []
    for _ in range(REPEATS):
        done = subprocess.run([sys.executable, __file__], capture_output=True, text=True)
        if done.returncode:
            error = done.stderr.strip().splitlines()[-1]
            return [Figure("bootstrap", unit="MB", target=200, note=error)]
        one_s, one_mb = map(float, done.stdout.split())
        seconds.append(one_s)
        megabytes.append(one_mb)
    what = f"bootstrap, {N_RESAMPLES:,} resamples of {N_TASKS:,} tasks x {N_COLUMNS} columns"
    return [
        Figure(what, seconds, "s"),
        Figure("its peak memory above what was held before", megabytes, "MB", target=200),
    ]


def _peak_mb() -> float:
    # a started process inherits its parent's ru_maxrss; the kernel's own mark begins anew
    status = Path("/proc/self/status")
    if status.exists():
        marks = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return float(marks["VmHWM"].split()[0]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _one_bootstrap() -> None:
    import numpy as np

    from leapmodel.bootstrap import percentile_interval, resampled_sums

    rng = np.random.default_rng(0)
    per_task = rng.gamma(2.0, 1.0, (N_TASKS, N_COLUMNS))
    held = _peak_mb()
    start = time.perf_counter()
    sums = resampled_sums(per_task, N_RESAMPLES, rng=rng)
    percentile_interval(sums[:, :8] / sums[:, 8:16])
    print(time.perf_counter() - start, _peak_mb() - held)


if __name__ == "__main__":
    _one_bootstrap()
