"""A whole measurement in a folder: ``rounds.jsonl``, and ``trace.jsonl`` of its sequential arm.

Both grow while the run goes on. What a run needs to be checked and repeated stands in their first
line: benchmark, models, depth, seeds, machine, versions.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from leapmodel.atomic import atomic_path
from leapmodel.benchmarks.interface import about_benchmark
from leapmodel.errors import UsageError
from leapmodel.execution.about import about_machine, about_versions
from leapmodel.execution.protocol import Observer, Plan, carry_out
from leapmodel.execution.records.journal import Journal
from leapmodel.execution.records.record import Round
from leapmodel.execution.talking.endpoint import Endpoint

ROUNDS_NAME = "rounds.jsonl"
TRACE_NAME = "trace.jsonl"
PAIRS_NAME = "pairs.jsonl"
FORMAT_VERSION = 1
FIXED = (
    "benchmark",
    "split",
    "target",
    "draft",
    "depth",
    "mode",
    "reset_caches",
    "concurrency",
    "turn",
    "engine",
    "machine",
    "online",
)
"""What must be the same for a run to go on."""
_OF_ROUNDS = ("arms", "depth", "draft", "mode", "tasks", "turn")
"""What is said of rounds and not of the trace, which is one arm of them."""
_MADE_OF_ROUNDS = {
    TRACE_NAME: ("trace", "is not the trace"),
    PAIRS_NAME: ("pairs", "has not the pairs"),
}
"""What says in its first line when the rounds were begun that it was made of: its kind, and how it
is said that one is not theirs."""

Journalled = Callable[[Journal], None]


async def record(
    plan: Plan,
    folder: str | Path,
    *,
    resume: bool = False,
    observe: Observer | None = None,
    opened: Journalled | None = None,
    about: Mapping[str, Any] | None = None,
) -> Journal:
    """Carry out a plan and write what happens into a folder.

    Parameters
    ----------
    plan : Plan
        Its endpoints are open.
    folder : str or Path
        Made if it does not exist.
    resume : bool, default False
        Whether to go on with what the folder holds.
    observe : callable, optional
        Shown each round once it is recorded.
    opened : callable, optional
        Shown the journal before the first round.
    about : mapping, optional
        More metadata.

    Returns
    -------
    Journal
        Closed; its ``rows`` are the rounds.

    Raises
    ------
    EngineError, UsageError, DataError
        As :func:`~leapmodel.execution.protocol.carry_out` and
        :class:`~leapmodel.execution.records.journal.Journal`.
    """
    place = made_folder(folder)
    refuse_others(place, [TRACE_NAME])
    metadata = {**await describe_run(plan), **(about or {})}
    with Journal(place / ROUNDS_NAME, metadata, resume=resume, fixed=FIXED) as journal:
        if opened is not None:
            opened(journal)
        with TraceFile(place / TRACE_NAME, journal) as trace:

            def seen(finished: Round) -> None:
                trace.add(finished.to_row())
                if observe is not None:
                    observe(finished)

            await carry_out(plan, journal, seen)
    return journal


def made_folder(folder: str | Path) -> Path:
    """Return a folder, which is made if it does not exist.

    Raises
    ------
    UsageError
        If it can't be made.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: can't make this folder ({error.strerror})") from None
    return place


def refuse_others(place: Path, names: Iterable[str]) -> None:
    """Refuse to write over files that no record in this folder has made.

    Parameters
    ----------
    place : Path
    names : iterable of str
        The files that a run writes beside its rounds, each made anew from them.

    Raises
    ------
    UsageError
        If one holds something and there are no rounds that it can have been made from, or it is
        the trace of another record, or has the pairs of another one.
    """
    rounds = _first_line(place / ROUNDS_NAME)
    for name in names:
        path = place / name
        if not path.is_dir() and not _first_line(path):
            continue
        if not rounds.endswith(b"\n"):
            raise UsageError(
                f"{path}: exists already, without a {ROUNDS_NAME} that it belongs to; name another"
                " folder"
            )
        kind, is_not = _MADE_OF_ROUNDS.get(name, (None, ""))
        if kind is not None and not _is_made_of(_first_line(path), kind, rounds):
            raise UsageError(
                f"{path}: {is_not} of {ROUNDS_NAME} beside it, and would be lost; move it away"
            )


def _first_line(path: Path) -> bytes:
    """Return the first line that is not blank; nothing if there is none, or no file."""
    try:
        with open(path, "rb") as stream:
            return next((line for line in stream if not line.isspace()), b"")
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UsageError(f"{path}: can't read it ({error.strerror})") from None


def _is_made_of(first_line: bytes, kind: str, rounds: bytes) -> bool:
    """Return whether the first line of a file says that it was made of the rounds with this one."""
    try:
        copied, said = json.loads(first_line), json.loads(rounds)
        return bool(copied["leapmodel"] == kind and copied.get("begun") == said.get("begun"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False


class TraceFile:
    """The sequential arm as a trace, one line a step; begun anew from the journal each time.

    What stood there is replaced once the new beginning is written whole.
    """

    def __init__(self, path: Path, journal: Journal) -> None:
        self._path = path
        about = {k: v for k, v in journal.metadata.items() if k not in _OF_ROUNDS}
        with atomic_path(path) as beginning, open(beginning, "w", encoding="utf-8") as file:
            file.write(_line({**about, "leapmodel": "trace", "origin": "measured"}))
            for rows in journal.rows.values():
                file.writelines(_line(sequential_step(row)) for row in rows if _is_step(row))
        try:
            self._file = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        except OSError as error:
            raise UsageError(f"{path}: can't write it ({error.strerror})") from None

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # What could not be written is tried again, and must not hide what is told already.
        with suppress(OSError) if kind else nullcontext():
            self._file.close()

    def add(self, row: Mapping[str, Any]) -> None:
        """Append the step that a round is, if it is one of the sequential arm."""
        if not _is_step(row):
            return
        try:
            self._file.write(_line(sequential_step(row)))
        except OSError as error:
            raise UsageError(
                f"{self._path}: can't write it ({error.strerror}); --resume makes it anew"
            ) from None


def _is_step(row: Mapping[str, Any]) -> bool:
    return bool(row["arm"] == "sequential")


def _line(said: Mapping[str, Any]) -> str:
    return json.dumps(said, separators=(",", ":")) + "\n"


def sequential_step(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the step of a trace that a sequential round is."""
    (decided,) = row["verifications"]
    return {
        "task": row["task"],
        "run": row["run"],
        "segment": row["segment"],
        "step": row["first_step"],
        "gen_s": decided["end_s"] - decided["start_s"],
        "tool_s": row["target_tool_s"],
        "action": decided["action"],
        "started_s": row["started_s"],
        "prompt_tokens": decided["prompt_tokens"],
        "cached_tokens": decided["cached_tokens"],
        "completion_tokens": decided["completion_tokens"],
    }


async def describe_run(plan: Plan) -> dict[str, Any]:
    """Return the metadata of a plan's record."""
    models = plan.models
    engine = await models.target.version()
    warnings = []
    if plan.concurrency > 1:
        warnings.append(
            f"{plan.concurrency} tasks ran at a time: its times are not those of single requests"
        )
    if not plan.reset_caches:
        warnings.append("prefix caches were not reset before each arm")
    return {
        "leapmodel": "rounds",
        "version": FORMAT_VERSION,
        "origin": "measured",
        "source": f"the {plan.benchmark.name} benchmark, {len(plan.tasks)} tasks",
        "tasks": [task.name for task in plan.tasks],
        "target_model": models.target.model,
        "benchmark": about_benchmark(plan.benchmark),
        **({} if plan.split is None else {"split": plan.split}),
        "target": _about_endpoint(models.target),
        "draft": None
        if models.draft is None
        else {**_about_endpoint(models.draft), "name": models.draft_name},
        "arms": list(plan.arms),
        "depth": plan.depth,
        "mode": plan.mode,
        "reset_caches": plan.reset_caches,
        "terminal": plan.benchmark.terminal,
        "concurrency": plan.concurrency,
        "turn": plan.turn,
        **({} if engine is None else {"engine": engine}),
        "machine": about_machine(),
        "versions": about_versions(),
        "begun": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "warnings": warnings,
    }


def _about_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "model": endpoint.model,
        "temperature": endpoint.temperature,
        "seed": endpoint.seed,
        "extra": endpoint.extra,
    }
