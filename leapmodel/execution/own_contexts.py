"""The contexts of somebody's own agent: the messages that stood before each step in its log.

JSON Lines, a step a line: ``{"task", "run", "step", "messages": […], "action"}``, as ``leapmodel
import --export-contexts`` writes them. No benchmark is needed to ask a model about these: it gets
the messages, and what it decides are the tools it calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from leapmodel.actions import RESPOND, canonical_action, canonical_group
from leapmodel.benchmarks import Prompt, Task
from leapmodel.errors import DataError, shown
from leapmodel.execution.contexts import Context
from leapmodel.execution.talking.endpoint import Generation
from leapmodel.jsonlines import iter_json_lines
from leapmodel.trace import Trace

MOST_TOKENS = 1024
"""Completion tokens of either model, unless told otherwise."""


def own_contexts(
    path: str | Path,
    trace: Trace,
    *,
    first_tasks: int | None = None,
    target_tokens: int | None = None,
    draft_tokens: int | None = None,
    source: str | Path = "the trace",
) -> list[Context]:
    """Read the contexts of a trace's steps, in the trace's order.

    Parameters
    ----------
    path : str or Path
        The contexts. A step that has none is not asked about, and those of other tasks than the
        trace's are passed over: it may be a part of what was imported.
    trace : Trace
        Of the same log.
    first_tasks : int, optional
        Only of so many tasks of the trace, the first.
    target_tokens, draft_tokens : int, optional
        Completion tokens at most; default :data:`MOST_TOKENS`.
    source : str or Path, default "the trace"
        What error messages call the trace, such as its file.

    Raises
    ------
    DataError
        For the first line that is no context, or that has another step or action than the trace;
        or if there is no context of its tasks.
    """
    frame = trace.frame
    keys = zip(frame["task"], frame["run"], frame["step"], strict=True)
    places = {(str(task), int(run), int(step)): i for i, (task, run, step) in enumerate(keys)}
    actions = trace.actions
    wanted = set(trace.task_names[:first_tasks])
    found: dict[int, Context] = {}
    for line, said in iter_json_lines(path):
        row = _Row(path, line, said)
        key = row.key()
        if key[0] not in wanted:
            continue
        if key not in places:
            row.refuse("step", f"a step of {source}", " ".join(map(str, key)))
        place = places[key]
        if place in found:
            row.refuse("step", "each step once", f"a second context of {' '.join(map(str, key))}")
        action = row.action()
        if action is not None and action != actions[place]:
            row.refuse("action", f"what {source} says, {shown(actions[place])}", shown(action))
        task, run, step = key
        messages = row.messages()
        found[place] = Context(
            Task(task, ""),
            run,
            step,
            Prompt(messages, target_tokens or MOST_TOKENS),
            Prompt(messages, draft_tokens or MOST_TOKENS),
            actions[place],
        )
    if not found:
        raise DataError(path, expected=f"contexts of the tasks of {source}", found="none of them")
    return [context for _, context in sorted(found.items())]


def decision(answer: Generation) -> str | None:
    """Return the canonical action of an answer by tool calls; a text is a reply to the user.

    None if it is neither, as when all its tokens went into a thought, if a call's arguments are no
    JSON object, or if a text was cut at the most tokens it may have: a call may have followed.
    """
    if answer.tool_calls:
        return canonical_group([(call.name, call.arguments) for call in answer.tool_calls])
    return RESPOND if answer.text.strip() and not is_cut(answer) else None


def is_cut(answer: Generation) -> bool:
    """Return whether an answer had more to say than it was allowed."""
    return answer.finish_reason == "length"


class _Row:
    """A line of a file of contexts; what does not fit is refused by its name."""

    def __init__(self, path: str | Path, line: int, said: Mapping[str, Any]) -> None:
        self._path, self._line, self._said = path, line, said

    def key(self) -> tuple[str, int, int]:
        task = self._said.get("task")
        if not isinstance(task, str):
            self.refuse("task", "a text", shown(task))
        return task, self._number("run", 0), self._number("step", None)

    def action(self) -> str | None:
        said = self._said.get("action")
        if said is not None and not isinstance(said, str):
            self.refuse("action", "a text", shown(said))
        return None if said is None else canonical_action(said)

    def messages(self) -> tuple[Mapping[str, Any], ...]:
        said = self._said.get("messages")
        if not isinstance(said, list) or not said:
            self.refuse("messages", "a list of chat messages", shown(said))
        for one in said:
            if not isinstance(one, dict) or not isinstance(one.get("role"), str):
                self.refuse("messages", "chat messages, each with a role", shown(one))
        return tuple(said)

    def refuse(self, column: str, expected: str, found: str) -> NoReturn:
        raise DataError(self._path, line=self._line, column=column, expected=expected, found=found)

    def _number(self, column: str, absent: int | None) -> int:
        value = self._said.get(column, absent)
        if not isinstance(value, int) or isinstance(value, bool):
            self.refuse(column, "a whole number", shown(value))
        return value
