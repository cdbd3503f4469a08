"""Turn a log of a running agent into a sequential trace, one file a format.

A format is an :class:`~leapmodel.importers.records.Importer` in a module of its own: a function
that yields the :class:`~leapmodel.importers.records.TaskRun` of one file, one at a time, and
refuses what it can't read with file, line, field, expected and found. Finding the files, numbering
the runs, dropping bad tasks, and checking the trace is the business of
:mod:`~leapmodel.importers.assembly`. To add a format, write its module and list it in
:data:`FORMATS`.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from leapmodel.errors import UsageError
from leapmodel.importers.assembly import Progress, assemble, find_files
from leapmodel.importers.bfcl import BFCL
from leapmodel.importers.claude_code import CLAUDE_CODE
from leapmodel.importers.records import Importer, Step, TaskRun
from leapmodel.trace import Trace

__all__ = ["FORMATS", "Importer", "Progress", "Step", "TaskRun", "import_log", "importer"]

FORMATS: dict[str, Importer] = {entry.name: entry for entry in (BFCL, CLAUDE_CODE)}
"""The known log formats by name."""


def importer(name: str) -> Importer:
    """Return the importer of a log format.

    Parameters
    ----------
    name : str
        A key of :data:`FORMATS`; case and ``_`` for ``-`` don't matter.

    Raises
    ------
    UsageError
        If there is none of that name; the nearest is suggested.

    Examples
    --------
    >>> importer("bfcl").description
    'BFCL multi-turn result files (JSON Lines)'
    >>> importer("claude-cod")
    Traceback (most recent call last):
    leapmodel.errors.UsageError: unknown format 'claude-cod'; did you mean claude-code? Known: bfcl, claude-code
    """  # noqa: E501  (a doctest's message can't be broken)
    plain = name.lower().replace("_", "-")
    if plain in FORMATS:
        return FORMATS[plain]
    near = difflib.get_close_matches(plain, FORMATS, n=1, cutoff=0.5)
    suggestion = f"did you mean {near[0]}? " if near else ""
    raise UsageError(f"unknown format {name!r}; {suggestion}Known: {', '.join(FORMATS)}")


def import_log(
    format_name: str,
    paths: str | Path | Sequence[str | Path],
    *,
    lenient: bool = False,
    progress: Progress | None = None,
    **options: object,
) -> Trace:
    """Read the log of a running agent as a trace.

    Parameters
    ----------
    format_name : str
        A key of :data:`FORMATS`.
    paths : path or sequence of paths
        Files, or folders whose files of the format are read in natural order. A task that comes
        again in a later file is its next run.
    lenient : bool, default False
        Leave out bad tasks and list them in ``Trace.dropped``, instead of raising.
    progress : callable, optional
        Called as ``(task runs read, files finished, files in all)``.
    **options
        Options of the format, see ``Importer.options``.

    Returns
    -------
    Trace
        With ``format``, ``source`` (file names), ``warnings``, and where they are known
        ``target_model`` and ``failed_tasks`` in its metadata.

    Raises
    ------
    DataError
        For the first bad task (file, line, field, expected, found), or if none is left.
    UsageError
        For an unknown format or an option that the format does not take.
    """
    chosen = importer(format_name)
    given = {name: value for name, value in options.items() if value not in (None, ())}
    for name in given:
        if name not in chosen.options:
            takes = ", ".join(chosen.options) or "none"
            raise UsageError(f"{chosen.name} takes no option {name!r} (its options: {takes})")
    if isinstance(paths, (str, Path)):
        paths = [paths]
    if not paths:
        raise UsageError("expected at least one file or folder to import")
    files = find_files(paths, chosen.suffixes)
    return assemble(chosen, files, lenient=lenient, progress=progress, **given)
