"""The benchmark that a record was made on, from what its metadata say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leapmodel.benchmarks import Benchmark, load_benchmark
from leapmodel.benchmarks.interface import about_benchmark
from leapmodel.errors import DataError, UsageError, shown
from leapmodel.recorded_settings import refuse_other_benchmark


def benchmark_of(
    metadata: Mapping[str, Any],
    where: str | Path,
    *,
    name: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Benchmark:
    """Return the benchmark that a record was made on, or another one by name.

    Where the record states a hash of its tasks, they must be the same: a file of tasks may have
    changed since, and other tasks under the same names would be taken for those that ran.

    Parameters
    ----------
    metadata : mapping
        Of a trace, rounds or pairs; ``benchmark`` is an object with ``name`` and ``settings``, or
        the name alone.
    where : str or Path
        What error messages call the record, such as its file.
    name : str, optional
        The benchmark to take instead; the recorded settings belong to the recorded one alone.
    settings : mapping, optional
        Settings to change.

    Raises
    ------
    DataError
        If none is named, or its settings are no object.
    UsageError
        If there is no such benchmark, it does not take these settings, or its tasks are not those
        of the record.

    Examples
    --------
    >>> said = {"benchmark": {"name": "planning", "settings": {"seed": 5}}}
    >>> benchmark_of(said, "r.jsonl").settings["seed"]
    5
    """
    said = metadata.get("benchmark")
    recorded = said if isinstance(said, Mapping) else {"name": said}
    wanted = recorded.get("name") if name is None else name
    if not isinstance(wanted, str):
        expected = "a benchmark's name in the metadata"
        raise DataError(where, expected=expected, found=shown(said))
    kept: Any = recorded.get("settings") if wanted == recorded.get("name") else None
    if kept is not None and not isinstance(kept, Mapping):
        expected = "the benchmark's settings as an object in the metadata"
        raise DataError(where, expected=expected, found=shown(kept))
    try:
        benchmark = load_benchmark(wanted, **{**(kept or {}), **(settings or {})})
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    hashed = recorded.get("tasks_sha256") if wanted == recorded.get("name") else None
    if hashed is not None:
        ours = about_benchmark(benchmark)
        if hashed != ours["tasks_sha256"]:
            refuse_other_benchmark(ours, metadata, where)
    return benchmark


def recorded_tasks_file(metadata: Mapping[str, Any]) -> str | None:
    """Return the file of tasks that a record was made on, if it states one.

    Examples
    --------
    >>> recorded_tasks_file({"benchmark": {"name": "planning", "settings": {"tasks_file": "t"}}})
    't'
    """
    said: Any = metadata.get("benchmark")
    settings = said.get("settings") if isinstance(said, Mapping) else None
    file = settings.get("tasks_file") if isinstance(settings, Mapping) else None
    return file if isinstance(file, str) else None
