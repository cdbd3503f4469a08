"""A streamed chat completion: its events, and what they have said so far."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from leapmodel.errors import EngineError, shown
from leapmodel.execution.talking.received import decoded, token_count, whole_text
from leapmodel.execution.talking.tool_calls import ToolCall, ToolCalls

if TYPE_CHECKING:
    import aiohttp

LONGEST_LINE = 2 << 20
"""Bytes of one event; a longer one is refused before it is read whole."""
_CUT_OFF = frozenset({"abort", "cancelled", "error"})
"""Finish reasons of an engine that gave an answer up, as vLLM does when it is told to end."""


class Streamed:
    """What a stream has said so far.

    Parameters
    ----------
    name : str
        Whose stream it is, for messages.

    Attributes
    ----------
    first_token_s : float or None
        When the first piece came, by ``time.perf_counter()``.
    prompt_tokens, cached_tokens : int or None
        As the server counts them; None if it does not.
    finish_reason : str or None
        None until the end.
    """

    def __init__(self, name: str) -> None:
        self.first_token_s: float | None = None
        self.prompt_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.finish_reason: str | None = None
        self._name = name
        self._parts: list[str] = []
        self._calls = ToolCalls(name)
        self._pieces = 0
        self._counted: int | None = None

    @property
    def completion_tokens(self) -> int:
        """Tokens so far: as the server counts them, else the pieces that came."""
        return self._pieces if self._counted is None else self._counted

    @property
    def text(self) -> str:
        """The output so far."""
        return whole_text("".join(self._parts))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools called so far."""
        return self._calls.whole()

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in one event.

        Raises
        ------
        EngineError
            If it is no chunk of a chat completion, reports an error, or holds what no record could.
        """
        self._take_usage(self._typed(event, "usage", Mapping, "an object"))
        choices = event.get("choices")
        if not isinstance(choices, list):
            raise self._wrong("choices", event.get("error", event))
        if not choices:
            return
        choice = choices[0]
        first = not isinstance(choice, Mapping) or choice.get("index") in (0, None)
        if len(choices) > 1 or not first:
            raise self._wrong("a single answer", choices)
        self._take_choice(choice)

    def require_end(self) -> None:
        """Refuse a stream that is over before its answer is.

        Raises
        ------
        EngineError
            If it gave no reason to end, or one that is none.
        """
        if self.finish_reason is None or self.finish_reason in _CUT_OFF:
            why = "" if self.finish_reason is None else f" ({self.finish_reason})"
            raise EngineError(f"{self._name}: the answer broke off before its end{why}")

    def _take_usage(self, usage: Mapping[str, Any] | None) -> None:
        if usage is None:
            return
        self._counted = token_count(usage.get("completion_tokens"), self._name)
        self.prompt_tokens = token_count(usage.get("prompt_tokens"), self._name)
        details = self._typed(usage, "prompt_tokens_details", Mapping, "an object") or {}
        self.cached_tokens = token_count(details.get("cached_tokens"), self._name)

    def _take_choice(self, choice: Any) -> None:
        delta = choice.get("delta") if isinstance(choice, Mapping) else None
        if not isinstance(delta, Mapping):
            raise self._wrong("a delta", choice)
        # A reasoning parser sends thoughts apart: they take time and tokens, but are no action.
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        content = self._typed(delta, "content", str, "a text")
        calls = self._typed(delta, "tool_calls", list, "a list")
        if content or thought or calls:
            self._pieces += 1
            if self.first_token_s is None:
                self.first_token_s = time.perf_counter()
        if content:
            self._parts.append(content)
        if calls:
            self._calls.take(calls)
        self.finish_reason = (
            self._typed(choice, "finish_reason", str, "a text") or self.finish_reason
        )

    def _typed(self, said: Mapping[str, Any], field: str, kind: type, expected: str) -> Any:
        """Return a field of one type, or None where there is none."""
        value = said.get(field)
        if value is None or isinstance(value, kind):
            return value
        raise self._wrong(f"{expected} as {field}", value)

    def _wrong(self, expected: str, found: object) -> EngineError:
        return EngineError(f"{self._name}: expected {expected}, found {shown(found)}")


async def events(
    response: aiohttp.ClientResponse, name: str, stalled_s: float
) -> AsyncIterator[Mapping[str, Any]]:
    """Give the JSON objects of a server-sent event stream up to ``[DONE]``.

    Parameters
    ----------
    response : aiohttp.ClientResponse
        Of a session whose ``read_bufsize`` is half of :data:`LONGEST_LINE`.
    name : str
        Whose it is, for messages.
    stalled_s : float
        Seconds without an event after which it is given up, comments or not: a proxy sends these
        to keep the connection open, for as long as the engine behind it says nothing.

    Raises
    ------
    EngineError
        For the first line that is none of such a stream, or if it has stalled.
    """
    from aiohttp.http_exceptions import LineTooLong

    heard_s = time.perf_counter()
    while True:
        try:
            line = await response.content.readline()
        except (LineTooLong, ValueError):  # the latter from older versions of aiohttp
            raise EngineError(
                f"{name}: a line of the answer is over {LONGEST_LINE} bytes"
            ) from None
        if not line:
            return
        text = line.strip()
        if not text or text.startswith((b":", b"event:", b"id:", b"retry:")):
            if time.perf_counter() - heard_s > stalled_s:
                raise EngineError(
                    f"{name}: no event came for {stalled_s:g} s: the server has stalled"
                )
            continue
        heard_s = time.perf_counter()
        if not text.startswith(b"data:"):
            raise EngineError(f"{name}: expected an event stream, found {shown(text)}")
        data = text[5:].strip()
        if data == b"[DONE]":
            return
        try:
            event = decoded(data)
        except ValueError:
            raise EngineError(f"{name}: expected JSON in the stream, found {shown(data)}") from None
        if not isinstance(event, dict):
            raise EngineError(f"{name}: expected a JSON object in the stream, found {shown(event)}")
        yield event
