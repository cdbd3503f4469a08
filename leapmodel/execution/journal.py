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

from leapmodel.errors import DataError, UsageError, shown
from leapmodel.execution.record import Round

Key = tuple[str, int, str]
"""A task, the number of its run, and the arm."""


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
        The metadata that must be the same for a run to go on.

    Raises
    ------
    UsageError
        If the file exists and ``resume`` is false, another process writes it, it can't be written,
        or it is the record of a different run.
    DataError
        If what stands in it is not a rounds file.
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
        self._file.seek(0)
        data = self._file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            self._file.truncate(len(whole))
        lines = whole.splitlines()
        if not lines:
            self._append(metadata)
            return metadata
        found = self._parsed(lines[0], 1)
        if found.get("leapmodel") != metadata.get("leapmodel"):
            raise DataError(
                self.path, line=1, expected="the metadata of a rounds file", found=shown(found)
            )
        for name in fixed:
            ours, theirs = json.loads(json.dumps(metadata.get(name))), found.get(name)
            if ours != theirs:
                raise UsageError(
                    f"{self.path}: was begun with {name} {shown(theirs)}, now it is {shown(ours)}"
                )
        for number, line in enumerate(lines[1:], 2):
            row = self._parsed(line, number)
            try:
                self.rows[row["task"], row["run"], row["arm"]].append(row)
            except KeyError as error:
                raise DataError(
                    self.path,
                    line=number,
                    column=str(error.args[0]),
                    expected="a value",
                    found="none",
                ) from None
        return found

    def _parsed(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise DataError(
                self.path, line=number, expected="a JSON object", found=shown(line.decode("latin1"))
            )
        return row
