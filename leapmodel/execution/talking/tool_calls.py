"""The tool calls of a streamed answer, put together from their pieces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from leapmodel.errors import EngineError, shown
from leapmodel.execution.talking.received import whole_text


class ToolCall(NamedTuple):
    """One call of a tool: its name, and its arguments as the text that the model wrote."""

    name: str
    arguments: str


class ToolCalls:
    """The calls that a stream has made so far.

    Parameters
    ----------
    name : str
        Whose stream it is, for messages.

    Examples
    --------
    >>> calls = ToolCalls("the draft")
    >>> calls.take([{"index": 0, "id": "a", "function": {"name": "ls", "arguments": ""}}])
    >>> calls.take([{"index": 0, "function": {"arguments": '{"path":'}}])
    >>> calls.take([{"index": 0, "function": {"arguments": '"x"}'}}])
    >>> calls.whole()
    (ToolCall(name='ls', arguments='{"path":"x"}'),)
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._parts: list[tuple[list[str], list[str]]] = []
        self._open: dict[int, tuple[int, str | None]] = {}

    def take(self, items: list[Any]) -> None:
        """Take in the pieces of one event.

        Raises
        ------
        EngineError
            If one is no piece of a call.
        """
        for item in items:
            function = item.get("function") if isinstance(item, Mapping) else None
            if not isinstance(function, Mapping):
                raise self._wrong(item)
            index, identity = item.get("index", 0), item.get("id")
            named, said = function.get("name") or "", function.get("arguments") or ""
            texts = isinstance(named, str) and isinstance(said, str)
            if not texts or isinstance(index, bool) or not isinstance(index, int):
                raise self._wrong(item)
            place, known = self._open.get(index, (None, None))
            # Some servers send whole calls, all of them as the first: their identities differ.
            if place is None or (identity and known and identity != known):
                place = len(self._parts)
                self._parts.append(([], []))
            self._open[index] = place, identity or known
            names, arguments = self._parts[place]
            names.append(named)
            arguments.append(said)

    def whole(self) -> tuple[ToolCall, ...]:
        """Return the calls, in the order they began."""
        return tuple(
            ToolCall(whole_text("".join(names)), whole_text("".join(arguments)))
            for names, arguments in self._parts
        )

    def _wrong(self, found: object) -> EngineError:
        return EngineError(f"{self._name}: expected a tool call, found {shown(found)}")


def as_text(calls: tuple[ToolCall, ...]) -> str:
    """Return calls as one text, to be kept beside what was made of them.

    Examples
    --------
    >>> as_text((ToolCall("ls", "{}"),))
    '[{"name": "ls", "arguments": "{}"}]'
    """
    return json.dumps([call._asdict() for call in calls], ensure_ascii=False)
