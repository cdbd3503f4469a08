"""``python -m leapmodel.paper.reconstruct -o FOLDER``: fit again and write the traces again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from leapmodel.paper.fit_report import fit_parameters, fit_residuals
from leapmodel.paper.fits import PLANS, fit
from leapmodel.paper.reconstructed_traces import BENCHMARKS, reconstruct_trace
from leapmodel.paper.reconstruction import WORKLOADS, reconstruct, write_reconstruction
from leapmodel.paper.reconstruction_check import compare
from leapmodel.trace import write_trace


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit the step times, write every reconstructed file, and print how they compare.

    The traces are drawn from the fits as rounded in ``leapmodel/paper/fits.py``.
    """
    parser = argparse.ArgumentParser(
        prog="python -m leapmodel.paper.reconstruct", description=main.__doc__
    )
    parser.add_argument("-o", "--output", required=True, type=Path, help="an existing folder")
    folder = parser.parse_args(arguments).output
    if not folder.is_dir():
        parser.error(f"{folder}: expected an existing folder")
    fits = [fit(benchmark) for benchmark in PLANS]
    print(fit_parameters(fits).summary())
    print(fit_residuals(fits).summary())
    for benchmark in BENCHMARKS:
        if benchmark in WORKLOADS:
            continue
        path = folder / f"{benchmark.lower()}.parquet"
        write_trace(reconstruct_trace(benchmark), path)
        print(f"wrote {path}")
    for benchmark in WORKLOADS:
        made = reconstruct(benchmark)
        for path in write_reconstruction(made, folder):
            print(f"wrote {path}")
        print(compare(made).summary())


if __name__ == "__main__":
    main()
