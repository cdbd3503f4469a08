"""``python -m leapmodel.paper.reconstruct -o FOLDER``: write the reconstructed traces again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from leapmodel.paper.reconstruction import WORKLOADS, reconstruct, write_reconstruction
from leapmodel.paper.reconstruction_check import compare


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the files of every reconstructed benchmark and print how they compare."""
    parser = argparse.ArgumentParser(
        prog="python -m leapmodel.paper.reconstruct", description=main.__doc__
    )
    parser.add_argument("-o", "--output", required=True, type=Path, help="an existing folder")
    folder = parser.parse_args(arguments).output
    if not folder.is_dir():
        parser.error(f"{folder}: expected an existing folder")
    for benchmark in WORKLOADS:
        made = reconstruct(benchmark)
        for path in write_reconstruction(made, folder):
            print(f"wrote {path}")
        print(compare(made).summary())


if __name__ == "__main__":
    main()
