"""Run every notebook from a clean kernel; write what came out, or compare with what is committed.

    python notebooks/execute.py            run them all again, in place
    python notebooks/execute.py 03 04      run only these
    python notebooks/execute.py --check    fail on any error, and on any text or number that changed

Pictures are not compared here: the numbers in them are in ``paper_figs/``, which the tests compare.
What changes from run to run without meaning (times, kernel details, ids of widgets) is left out of
the files.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
_WIDGET = "application/vnd.jupyter.widget-view+json"


def notebooks(numbers: Sequence[str] = ()) -> list[Path]:
    """Return the notebooks with these numbers, by default all, in a reader's order."""
    every = sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))
    return [path for path in every if not numbers or path.name[:2] in numbers]


def execute(path: Path) -> nbformat.NotebookNode:
    """Run a notebook from a clean kernel and return it with its outputs; an error is raised."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
        store_widget_state=False,
        record_timing=False,
        coalesce_streams=True,  # how prints are cut into messages is chance
    )
    return _plain(client.execute())


def _plain(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Leave out what differs from run to run without meaning anything."""
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.clear()
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if data.pop(_WIDGET, None) is not None:
                # a widget is alive only beside a kernel; its text is full of its own ids
                data["text/plain"] = "(sliders: run this cell)"
            output.get("metadata", {}).clear()
    return notebook


def texts(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """Yield every line of source and of text output."""
    for cell in notebook.cells:
        yield from cell.source.splitlines()
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            for text in (output.get("text"), data.get("text/plain"), data.get("text/html")):
                yield from (text or "").splitlines()
            yield from (f"({kind})" for kind in sorted(data) if kind.startswith("image/"))


def changes(path: Path) -> list[str]:
    """Run a notebook and return how its text differs from the committed one."""
    committed = list(texts(nbformat.read(path, as_version=4)))
    return list(
        difflib.unified_diff(committed, list(texts(execute(path))), "committed", "now", n=1)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run or check; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("numbers", nargs="*", help="which, such as 03; default all")
    asked = parser.parse_args(arguments)
    failed = False
    for path in notebooks(asked.numbers):
        if asked.check:
            changed = changes(path)
            print(f"{path.name}: {'changed' if changed else 'the same'}", *changed, sep="\n")
            failed |= bool(changed)
        else:
            text = json.dumps(execute(path), indent=1, ensure_ascii=False, sort_keys=True)
            path.write_text(text + "\n", encoding="utf-8")
            print(f"{path.name}: written")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
