"""Peak memory of importing a 1 GB file: ``python benchmarks/import_memory.py [MEGABYTES]``.

The file is written to the temporary folder and deleted again. Memory grows with the steps in it,
so BFCL's, the densest of the formats, has at least as many steps a byte as real result files have:
1.09 million a GB here, and 0.97 and 0.98 million in two files of some 200 tasks each.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from command_speed import run
from figures import Figure
from import_speed import make_log

FORMATS = ("bfcl", "otlp", "openhands")
TARGET_MB = 300

_IMPORT = """
import sys
from leapmodel.importers import import_log
print(import_log(*sys.argv[1:]))
"""


def memory_figures(megabytes: float = 1000) -> list[Figure]:
    """Measure each format in a process of its own."""
    found = []
    for name in FORMATS:
        with tempfile.TemporaryDirectory() as folder:
            (path,) = make_log(name, Path(folder), megabytes, terse=name == "bfcl")
            done = run(["-c", _IMPORT, name, str(path)])
        what = f"peak memory, import of {megabytes:,.0f} MB of {name}"
        if done.code:
            note = (done.error.strip().splitlines() or ["failed"])[-1]
            found.append(Figure(what, unit="MB", target=TARGET_MB, note=note))
            continue
        note = f"{done.wall_s:.0f} s, {done.out.strip()}"
        found.append(Figure(what, [done.peak_mb], "MB", TARGET_MB, note=note))
    return found


if __name__ == "__main__":
    for figure in memory_figures(*map(float, sys.argv[1:])):
        print("  ".join(figure.cells()), flush=True)
