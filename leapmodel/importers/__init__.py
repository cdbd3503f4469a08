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
from leapmodel.importers.atif import ATIF
from leapmodel.importers.bfcl import BFCL
from leapmodel.importers.claude_code import CLAUDE_CODE
from leapmodel.importers.codex import CODEX
from leapmodel.importers.guesses import gather_predictions
from leapmodel.importers.inspect_ai import INSPECT_AI
from leapmodel.importers.langfuse import LANGFUSE
from leapmodel.importers.langsmith import LANGSMITH
from leapmodel.importers.litellm import LITELLM
from leapmodel.importers.mini_swe_agent import MINI_SWE_AGENT
from leapmodel.importers.mlflow import MLFLOW
from leapmodel.importers.openai_agents import OPENAI_AGENTS
from leapmodel.importers.openhands import OPENHANDS
from leapmodel.importers.openinference import OPENINFERENCE
from leapmodel.importers.otlp import OTLP
from leapmodel.importers.recognition import choose_format
from leapmodel.importers.records import Guess, Importer, Step, TaskRun
from leapmodel.importers.speculative_tool_calls import SPECULATIVE_TOOL_CALLS
from leapmodel.importers.swe_agent import SWE_AGENT
from leapmodel.importers.table import TABLE
from leapmodel.importers.tau2 import TAU2
from leapmodel.predictions import Predictions
from leapmodel.trace import Trace

__all__ = [
    "AUTO",
    "FORMATS",
    "Guess",
    "Importer",
    "Progress",
    "Step",
    "TaskRun",
    "import_log",
    "import_predictions",
    "importer",
    "recognise",
]

FORMATS: dict[str, Importer] = {
    entry.name: entry
    for entry in (
        BFCL,
        CLAUDE_CODE,
        OTLP,
        OPENINFERENCE,
        LANGFUSE,
        LANGSMITH,
        MLFLOW,
        OPENAI_AGENTS,
        LITELLM,
        CODEX,
        INSPECT_AI,
        TAU2,
        OPENHANDS,
        MINI_SWE_AGENT,
        SWE_AGENT,
        ATIF,
        SPECULATIVE_TOOL_CALLS,
        TABLE,
    )
}
"""The known log formats by name."""

AUTO = "auto"
"""The name that stands for whichever format recognises the files."""


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
    leapmodel.errors.UsageError: unknown format 'claude-cod'; did you mean claude-code? Known: bfcl, claude-code, ...
    """  # noqa: E501  (a doctest's message can't be broken)
    plain = name.lower().replace("_", "-")
    if plain in FORMATS:
        return FORMATS[plain]
    near = difflib.get_close_matches(plain, FORMATS, n=1, cutoff=0.5)
    suggestion = f"did you mean {near[0]}? " if near else ""
    raise UsageError(f"unknown format {name!r}; {suggestion}Known: {', '.join(FORMATS)}")


def recognise(paths: str | Path | Sequence[str | Path]) -> Importer:
    """Return the format of a log, told by its content.

    Parameters
    ----------
    paths : path or sequence of paths
        Files or folders, all of one format.

    Raises
    ------
    DataError
        If no format recognises a file, several do, or two files are of different formats.
    UsageError
        If there is no path.
    """
    return choose_format(_listed(paths), FORMATS.values())[0]


def import_log(
    format_name: str,
    paths: str | Path | Sequence[str | Path],
    *,
    lenient: bool = False,
    progress: Progress | None = None,
    contexts: str | Path | None = None,
    **options: object,
) -> Trace:
    """Read the log of a running agent as a trace.

    Parameters
    ----------
    format_name : str
        A key of :data:`FORMATS`, or ``"auto"`` to tell it from the files.
    paths : path or sequence of paths
        Files, or folders whose files of the format are read in natural order. A task that comes
        again in a later file is its next run.
    lenient : bool, default False
        Leave out bad tasks and list them in ``Trace.dropped``, instead of raising.
    progress : callable, optional
        Called as ``(task runs read, files finished, files in all)``.
    contexts : path, optional
        Where to write what the target had before it at each step, as JSON Lines with ``task``,
        ``run``, ``step``, ``messages`` and ``action``, so that a draft can be asked the same.
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
        For an unknown format, an option that the format does not take, or contexts of a format
        whose logs hold no messages.
    """
    chosen, files, given = _prepared(format_name, paths, options)
    if contexts is not None and not chosen.has_messages:
        able = ", ".join(name for name, entry in FORMATS.items() if entry.has_messages)
        raise UsageError(f"{chosen.name} logs hold no messages to write as contexts ({able} do)")
    return assemble(
        chosen,
        files,
        lenient=lenient,
        progress=progress,
        contexts=None if contexts is None else Path(contexts),
        **given,
    )


def import_predictions(
    format_name: str,
    paths: str | Path | Sequence[str | Path],
    *,
    lenient: bool = False,
    progress: Progress | None = None,
    **options: object,
) -> Predictions:
    """Read what a draft proposed in the log of a speculating agent, as predictions.

    They fit the trace that :func:`import_log` makes of the same files.

    Parameters
    ----------
    format_name, paths, lenient, progress, **options
        As for :func:`import_log`.

    Raises
    ------
    DataError
        For the first bad task, or if no step has a guess.
    UsageError
        For an unknown format, or one whose logs hold no guesses.
    """
    chosen, files, given = _prepared(format_name, paths, options)
    if not chosen.has_guesses:
        able = ", ".join(name for name, entry in FORMATS.items() if entry.has_guesses)
        raise UsageError(f"{chosen.name} logs hold no guesses of a draft ({able} do)")
    return gather_predictions(chosen, files, lenient=lenient, progress=progress, **given)


def _prepared(
    format_name: str, paths: str | Path | Sequence[str | Path], options: dict[str, object]
) -> tuple[Importer, list[Path], dict[str, object]]:
    """Return the format, its files and its options as given."""
    listed = _listed(paths)
    if format_name.lower() == AUTO:
        chosen, files = choose_format(listed, FORMATS.values())
    else:
        chosen, files = importer(format_name), []
    given = {name: value for name, value in options.items() if value not in (None, ())}
    for name in given:
        if name not in chosen.options:
            takes = ", ".join(chosen.options) or "none"
            raise UsageError(f"{chosen.name} takes no option {name!r} (its options: {takes})")
    return chosen, files or find_files(listed, chosen.suffixes), given


def _listed(paths: str | Path | Sequence[str | Path]) -> list[str | Path]:
    listed = [paths] if isinstance(paths, (str, Path)) else list(paths)
    if not listed:
        raise UsageError("expected at least one file or folder to import")
    return listed
