"""MB/s of an import of each format, against ``json.loads`` over the same bytes.

Run as a program (``import_speed.py FORMAT… [--real FOLDER]``) it prints the same for some formats,
and for real logs where a folder holds them.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import made_agent_logs as agents
import made_span_logs as spans
from figures import Figure
from made_agent_logs import Record
from made_talks import Talk, talks

MEGABYTES = 20
REPEATS = 3
TARGET = 3.0

_LINES = {
    "bfcl": agents.bfcl, "otlp": spans.otlp, "openinference": spans.openinference,
    "langfuse": spans.langfuse, "langsmith": spans.langsmith, "mlflow": spans.mlflow,
    "openai-agents": spans.openai_agents, "litellm": spans.litellm, "openhands": agents.openhands,
    "atif": agents.atif, "speculative-tool-calls": agents.speculative_tool_calls,
}  # fmt: skip
_FILES = {"claude-code": agents.claude_code, "codex": agents.codex}
_DOCUMENTS = {"mini-swe-agent": agents.mini_swe_agent}
_LISTS: dict[str, tuple[Callable[[Talk], Iterator[Record]], str, Record]] = {
    "tau2": (agents.tau2, "simulations", {"info": {
        "num_trials": 1, "agent_info": {"llm": "larch-8b"}, "user_info": {},
        "environment_info": {}}}),
    "inspect-ai": (agents.inspect_ai, "samples", {
        "version": 2, "status": "success",
        "eval": {"task": "t", "task_id": "t", "model": "forest/larch-8b", "dataset": {}}}),
}  # fmt: skip
FORMATS = (*_LINES, *_FILES, *_DOCUMENTS, *_LISTS, "table")


def import_figures(formats: tuple[str, ...] = FORMATS) -> list[Figure]:
    """Measure each format on a log of its own; a table as JSON Lines and as CSV."""
    found = []
    for name in formats:
        with tempfile.TemporaryDirectory() as folder:
            files = make_log(name, Path(folder), MEGABYTES)
            found.append(measured(f"import {name}", name, files, TARGET))
            if name == "table":
                rows = make_log(name, Path(folder), MEGABYTES, ".csv")
                found.append(measured("import table (CSV)", name, rows, TARGET, parsed=files))
                found.append(measured("import table (CSV)", name, rows))
    return found


def measured(
    label: str,
    name: str,
    files: list[Path],
    target: float | None = None,
    *,
    parsed: list[Path] | None = None,
) -> Figure:
    """Return seconds of the import over seconds of parsing as many bytes, each measured in turn.

    The bytes parsed are those of the files themselves, or of others: no JSON is as fast to parse
    as CSV, so a CSV table is held against the same rows as JSON Lines.
    """
    from leapmodel.importers import import_log

    others = parsed or files
    against = "csv.reader" if others[0].suffix == ".csv" else "json.loads"
    n_bytes, n_parsed = (sum(path.stat().st_size for path in of) for of in (files, others))
    ours, theirs = [], []
    for _ in range(REPEATS):
        theirs.append(_seconds(lambda: _parse(others)) * n_bytes / n_parsed)
        ours.append(_seconds(lambda: import_log(name, files)))
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    speed = n_bytes / 1e6 / min(ours)
    note = (
        f"{n_bytes / 1e6:.0f} MB at {speed:.0f} MB/s; {against} {n_bytes / 1e6 / min(theirs):.0f}"
    )
    return Figure(f"{label} / {against}", ratios, "x", target, note=note)


def make_log(
    name: str, folder: Path, megabytes: float, suffix: str = "", *, terse: bool = False
) -> list[Path]:
    """Write a log of a format of about this size and return its files."""
    limit = megabytes * 1e6
    longer = name in _FILES or name in _DOCUMENTS  # a session a file
    runs = talks(mean_steps=25 if longer else 11 if terse else 8, terse=terse)
    if name == "table":
        path = folder / f"log{suffix or '.jsonl'}"
        records = (record for talk in runs for record in agents.table(talk))
        (_write_csv if suffix == ".csv" else _write_lines)(path, records, limit)
        return [path]
    if name in _LINES:
        path = folder / "log.jsonl"
        _write_lines(path, (record for talk in runs for record in _LINES[name](talk)), limit)
        return [path]
    if name in _LISTS:
        return [_write_list(folder / "log.json", runs, limit, *_LISTS[name])]
    files: list[Path] = []
    written = 0
    while written < limit:
        talk = next(runs)
        is_lines = name in _FILES
        files.append(folder / f"{talk.task}{'.jsonl' if is_lines else '.traj.json'}")
        spelled = (_FILES if is_lines else _DOCUMENTS)[name](talk)
        text = "\n".join(json.dumps(record) for record in spelled)
        files[-1].write_text(text, encoding="utf-8")
        written += len(text)
    return files


def _write_lines(path: Path, records: Iterator[Record], limit: float) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        written = 0
        while written < limit:
            written += stream.write(json.dumps(next(records)) + "\n")


def _write_csv(path: Path, records: Iterator[Record], limit: float) -> None:
    with open(path, "w", encoding="utf-8", newline="") as stream:
        first = next(records)
        writer = csv.DictWriter(stream, list(first))
        writer.writeheader()
        writer.writerow(first)
        while stream.tell() < limit:
            writer.writerow(next(records))


def _write_list(
    path: Path,
    runs: Iterator[Talk],
    limit: float,
    spell: Callable[[Talk], Iterator[Record]],
    key: str,
    about: Record,
) -> Path:
    records: list[str] = []
    while sum(map(len, records)) < limit:
        records += [json.dumps(record) for talk in (next(runs),) for record in spell(talk)]
    start = json.dumps(about)[:-1]
    path.write_text(f'{start}, "{key}": [{", ".join(records)}]}}', encoding="utf-8")
    return path


def _parse(files: list[Path]) -> None:
    for path in files:
        if path.suffix == ".csv":
            with open(path, encoding="utf-8", newline="") as text:
                for _ in csv.reader(text):
                    pass
        elif path.suffix == ".eval":
            with zipfile.ZipFile(path) as archive:
                for member in archive.namelist():
                    json.loads(archive.read(member))
        else:
            _parse_json(path)


def _parse_json(path: Path) -> None:
    with open(path, "rb") as stream:
        try:
            for line in stream:
                if line.strip():
                    json.loads(line)
        except ValueError:  # no JSON Lines: one document
            stream.seek(0)
            json.loads(stream.read())


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("formats", nargs="*", default=FORMATS)
    parser.add_argument("--real", type=Path, help="a folder of real logs, one folder a kind")
    arguments = parser.parse_args()
    for name in arguments.formats:
        for figure in import_figures((name,)):
            print("  ".join(figure.cells()), flush=True)
    for folder in sorted(arguments.real.rglob("*")) if arguments.real else ():
        for figure in _real(folder):
            print("  ".join(figure.cells()), flush=True)


def _real(folder: Path) -> Iterator[Figure]:
    from leapmodel.errors import DataError
    from leapmodel.importers import recognise

    if not folder.is_dir():
        return
    kinds: dict[str, list[Path]] = {}
    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        try:
            kinds.setdefault(recognise(path).name, []).append(path)
        except DataError:
            continue
    for name, files in kinds.items():
        try:
            yield measured(f"import {folder.name} as {name}", name, files)
        except DataError as error:
            print(error)


if __name__ == "__main__":
    _main()
