"""Damage logs at random for some minutes: ``python benchmarks/fuzz_importers.py --minutes 10``.

Prints how many cases each format had and how they ended. A case that ends in another exception
than a refusal, takes over 5 s or raises the peak memory by over 300 MB is kept in a folder, and the
exit code is 1.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests hold the logs to damage

from tests.importers.fuzzing import Case, Hang, cases, outcome, seeds

MOST_MB = 300


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None, help="default: a new one, printed")
    parser.add_argument("--keep", type=Path, default=None, help="folder for cases that fail")
    arguments = parser.parse_args()
    seed = random.randrange(10**6) if arguments.seed is None else arguments.seed
    keep = arguments.keep or Path(tempfile.mkdtemp(prefix="leapmodel-fuzz-"))
    print(f"seed {seed}, failures go to {keep}", flush=True)
    warnings.simplefilter("error")
    counts: dict[str, Counter[str]] = {}
    until = time.monotonic() + arguments.minutes * 60
    slowest, n_failed = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases(random.Random(seed), seeds())):
            start, peak = time.monotonic(), _peak_mb()
            if start > until:
                break
            ended = _ended(case, Path(folder), keep, number)
            if number > 500 and _peak_mb() - peak > MOST_MB:
                ended = "too much memory"
                _keep(case, keep, number, ended)
            slowest = max(slowest, time.monotonic() - start)
            n_failed += ended not in {"trace", "DataError", "UsageError"}
            counts.setdefault(case.format_name, Counter())[ended] += 1
    for name, of_it in sorted(counts.items()):
        print(f"{name:24} {of_it.total():8,}  {dict(of_it.most_common())}")
    total = sum((c for c in counts.values()), Counter())
    print(f"all {total.total():,}: {dict(total.most_common())}")
    print(f"slowest {slowest:.2f} s, peak memory {_peak_mb():.0f} MB, {n_failed} failed")
    return 1 if n_failed else 0


def _ended(case: Case, folder: Path, keep: Path, number: int) -> str:
    try:
        return str(outcome(case, folder))
    except (Exception, Hang) as error:
        _keep(case, keep, number, traceback.format_exc())
        return type(error).__name__


def _keep(case: Case, keep: Path, number: int, why: str) -> None:
    keep.mkdir(parents=True, exist_ok=True)
    path = keep / f"{number}_{case.format_name}_{case.seed.file_name}"
    path.write_bytes(case.content)
    path.with_name(path.name + ".txt").write_text(f"{case}\n{why}", encoding="utf-8")
    print(f"FAILED {case}: kept as {path}", flush=True)


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    sys.exit(main())
