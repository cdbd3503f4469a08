"""The record of a run while it runs: a rounds file that grows by one line a round.

Each line is handed to the operating system before the next round begins, so a killed run loses the
running round at most. A journal that is opened again gives back what stands in it, without a last
line that was only half written.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import pandas as pd

from leapmodel.errors import UsageError
from leapmodel.execution.records.record import Round
from leapmodel.execution.records.written import Key, checked_rows, read_written
from leapmodel.recorded_settings import first_difference, refuse_difference
from leapmodel.rounds import Rounds


class Journal:
    """A rounds file open for appending; use it as a context manager.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist.
    metadata : mapping
        What the run is: written as the first line of a new file, and compared with that of an
        existing one.
    resume : bool, default False
        Whether to go on with an existing file. Without it, one that exists is refused.
    fixed : iterable of str
        The metadata that must be the same for a run to go on; see
        :mod:`leapmodel.recorded_settings`.

    Raises
    ------
    UsageError
        If the file exists and ``resume`` is false, another process writes it, it can't be written,
        or it is the record of a different run.
    DataError
        If what stands in it is not a rounds file, or a line of it is damaged, missing or there
        twice.
    """

    def __init__(
        self,
        path: str | Path,
        metadata: Mapping[str, Any],
        *,
        resume: bool = False,
        fixed: Iterable[str] = (),
    ) -> None:
        self.path = Path(path)
        self.rows: dict[Key, list[dict[str, Any]]] = defaultdict(list)
        if self.path.exists() and not resume:
            raise UsageError(f"{path}: exists already (--resume goes on with it)")
        if not self.path.parent.is_dir():
            raise UsageError(f"{path}: its folder does not exist")
        try:
            self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115 (closed by __exit__)
        except OSError as error:
            raise UsageError(f"{path}: can't write it ({error.strerror})") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise UsageError(f"{path}: another run is writing it") from None
        try:
            self.metadata = self._begin(dict(metadata), tuple(fixed))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, finished: Round, **extra: Any) -> None:
        """Append a round.

        Raises
        ------
        UsageError
            If it can't be written, as on a full disk. What stood before is left as it was.
        """
        row = {**finished.to_row(), **extra}
        self._append(row)
        self.rows[finished.task, finished.run, finished.arm].append(row)

    def rounds(self) -> Rounds:
        """Return what stands in it, the rounds of a run of a task together.

        Raises
        ------
        DataError
            If there is no round.
        """
        recorded = [row for rows in self.rows.values() for row in rows]
        return Rounds.from_frame(pd.DataFrame(recorded), self.metadata, source=str(self.path))

    def _append(self, line: Mapping[str, Any]) -> None:
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        end = self._file.seek(0, os.SEEK_END)
        try:
            written = 0
            while written < len(data):
                written += self._file.write(data[written:]) or 0
        except OSError as error:
            self._file.truncate(end)
            raise UsageError(
                f"{self.path}: can't write it ({error.strerror}); what stands in it is complete:"
                " --resume goes on from there"
            ) from None

    def _begin(self, metadata: dict[str, Any], fixed: tuple[str, ...]) -> dict[str, Any]:
        """Write the metadata of a new record, or check the record that is there and read it."""
        written = read_written(self.path)
        found = written.metadata
        if found is not None:
            self._refuse_another(found, json.loads(json.dumps(metadata)), fixed)
            self.rows.update(checked_rows(self.path, written))
        self._file.truncate(written.end)  # not before it is known to be a record
        if found is None:
            self._append(metadata)
            return metadata
        return found

    def _refuse_another(
        self, theirs: dict[str, Any], ours: dict[str, Any], fixed: tuple[str, ...]
    ) -> None:
        """Refuse the record of a run with other settings."""
        differs = first_difference(
            {name: theirs[name] for name in fixed if name in theirs},
            {name: ours[name] for name in fixed if name in ours},
        )
        refuse_difference(f"{self.path}: was begun", differs)
