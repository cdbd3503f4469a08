"""How far long work is: a bar in a terminal, now and then a line where there is none."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from typing import Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

LINE_EVERY_S = 30.0
"""Seconds between two lines of a log; work that is done sooner says nothing."""


def progress(*columns: ProgressColumn) -> Progress:
    """Return a progress display on standard error, which vanishes when the work is done.

    Parameters
    ----------
    *columns : rich.progress.ProgressColumn
        What the bar shows in a terminal. A log gets the description, the count and a field
        ``said``, as far as the tasks have them.
    """
    if sys.stderr.isatty():
        return Progress(*columns, console=Console(stderr=True), transient=True)
    return _Lines()


class _Lines(Progress):
    """Says in a line now and then what a bar would show."""

    def __init__(self) -> None:
        super().__init__(disable=True)
        self._spoke_s = time.monotonic()
        self._began_s = self._spoke_s

    def update(self, task_id: TaskID, *args: Any, **values: Any) -> None:
        super().update(task_id, *args, **values)
        now_s = time.monotonic()
        if now_s - self._spoke_s >= LINE_EVERY_S:
            self._spoke_s = now_s
            click.echo(f"leapmodel: {self._line(task_id, now_s)}", err=True)

    def _line(self, task_id: TaskID, now_s: float) -> str:
        task = next(task for task in self.tasks if task.id == task_id)
        parts = [task.description]
        if task.total:
            parts.append(f"{task.completed:g} of {task.total:g}")
        parts.append(str(task.fields.get("said", "")))
        elapsed = timedelta(seconds=round(now_s - self._began_s))
        return ", ".join([*(part for part in parts if part), str(elapsed)])


def progress_bar() -> Progress:
    """Return a progress display of counted work; its tasks have a field ``said``."""
    return progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}"),
        TimeElapsedColumn(),
    )
