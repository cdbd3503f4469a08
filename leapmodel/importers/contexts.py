"""Write what the target had before it at each step, so that a draft can be asked the same.

JSON Lines, one step a line: ``{"task", "run", "step", "messages": […], "action"}``. ``messages``
are all the chat messages of the run up to the step, in the shape of the OpenAI chat format, and
``action`` is what the target decided there, in canonical form.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO

from leapmodel.atomic import atomic_path
from leapmodel.errors import DataError
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.records import TaskRun


class ContextWriter:
    """Write the contexts of one task run after the other; the file appears when all are there.

    Parameters
    ----------
    path : Path
        Where to write.
    ledger : Ledger
        Where runs whose log holds no messages are counted.
    """

    def __init__(self, path: Path, ledger: Ledger) -> None:
        self._path = path
        self._ledger = ledger
        self._stack = ExitStack()
        self._n_runs = 0

    def __enter__(self) -> ContextWriter:
        temporary = self._stack.enter_context(atomic_path(self._path))
        # Half a surrogate pair has no UTF-8, but its escape is what JSON writes for it.
        self._stream: IO[str] = self._stack.enter_context(
            open(temporary, "w", encoding="utf-8", errors="backslashreplace")
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def write(self, task_run: TaskRun, run: int) -> None:
        """Write the contexts of a run, or count it if the log does not hold them whole."""
        steps = task_run.steps
        if not steps[0].before or any(step.said is None for step in steps[:-1]):
            self._ledger.count("runs whose messages the log does not hold", task_run.task)
            return
        self._n_runs += 1
        so_far = ""  # each message is written out once; a context is a prefix of the last one
        for index, step in enumerate(steps):
            for message in step.before:
                so_far = _joined(so_far, message)
            key = json.dumps({"task": task_run.task, "run": run, "step": index}, ensure_ascii=False)
            action = json.dumps(step.action, ensure_ascii=False)
            self._stream.write(f'{key[:-1]}, "messages": [{so_far}], "action": {action}}}\n')
            if step.said is not None:
                so_far = _joined(so_far, step.said)

    def finish(self, source: str) -> None:
        """Refuse to leave an empty file.

        Raises
        ------
        DataError
            If no run had messages.
        """
        if not self._n_runs:
            raise DataError(
                source, expected="the messages of at least one run", found="a log without them"
            )


def _joined(so_far: str, message: dict[str, object]) -> str:
    text = json.dumps(message, ensure_ascii=False, default=str)
    return f"{so_far}, {text}" if so_far else text
