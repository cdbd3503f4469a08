"""How a fake answer goes over the wire: whole or streamed, in time, and broken where told to."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from leapmodel.execution.fake.answers import FakeRequest, Fault


@dataclass(frozen=True)
class Reply:
    """What is sent to a request.

    Attributes
    ----------
    asked : FakeRequest
        Told how many tokens have been sent, and when it is finished.
    pieces : list of str
        The tokens.
    reason : str
        Why they end.
    fault : Fault or None
        What goes wrong, and at which token.
    wait : callable
        Waits for a token, given when the one before was due and whether it is the first; returns
        when it was due itself.
    """

    asked: FakeRequest
    pieces: list[str]
    reason: str
    fault: Fault | None
    wait: Callable[[float, bool], Awaitable[float]]
    calls: tuple[tuple[str, str], ...] = ()

    def strikes_at(self, token: int) -> bool:
        """Return whether the fault comes before this token."""
        return self.fault is not None and token == self.fault.at_token

    def call_deltas(self) -> Iterator[dict[str, Any]]:
        """Yield the pieces of the tool calls: each one's name, then its arguments in two parts."""
        for index, (name, arguments) in enumerate(self.calls):
            function = {"name": name, "arguments": ""}
            begun = {"index": index, "id": f"call-{index}", "type": "function"}
            yield {"tool_calls": [{**begun, "function": function}]}
            half = len(arguments) // 2
            for part in (arguments[:half], arguments[half:]):
                yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}

    def head(self, kind: str) -> dict[str, Any]:
        """Return what every object that is sent begins with."""
        asked = self.asked
        return {
            "id": f"chatcmpl-{asked.number}", "object": kind, "created": 0, "model": asked.model
        }  # fmt: skip

    def usage(self, *, with_details: bool = False) -> dict[str, Any]:
        """Return the token counts as they are now."""
        asked = self.asked
        counts: dict[str, Any] = {
            "prompt_tokens": asked.prompt_tokens,
            "total_tokens": asked.prompt_tokens + asked.sent_tokens,
            "completion_tokens": asked.sent_tokens,
        }
        if with_details:
            counts["prompt_tokens_details"] = {"cached_tokens": asked.cached_tokens}
        return counts


async def whole(reply: Reply, due: float) -> web.Response:
    """Answer at once, when the last token is due."""
    asked = reply.asked
    for i in range(len(reply.pieces)):
        if reply.fault is not None and reply.strikes_at(i):
            return refused(500, reply.fault.kind, "InternalServerError")
        due = await reply.wait(due, i == 0)
        asked.sent_tokens += 1
    asked.state = "finished"
    message = {"role": "assistant", "content": "".join(reply.pieces)}
    choice = {"index": 0, "message": message, "finish_reason": reply.reason}
    head, usage = reply.head("chat.completion"), reply.usage(with_details=True)
    return web.json_response({**head, "choices": [choice], "usage": usage})


async def stream(http: web.Request, reply: Reply, due: float) -> web.StreamResponse:
    """Answer token by token, as server-sent events."""
    asked, fault = reply.asked, reply.fault
    if fault is not None and fault.kind == "stall" and fault.at_token == 0:
        await asyncio.Event().wait()  # before even the headers
    head = reply.head("chat.completion.chunk")
    options = asked.body.get("stream_options") or {}
    with_usage = bool(options.get("include_usage"))
    continuous = with_usage and bool(options.get("continuous_usage_stats"))
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(http)

    async def send(choices: list[dict[str, Any]], **more: Any) -> None:
        await response.write(_event({**head, "choices": choices, **more}))

    async def send_choice(delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        await send([choice], **({"usage": reply.usage()} if continuous else {}))

    for i, piece in enumerate(reply.pieces):
        if fault is not None and reply.strikes_at(i):
            return await _strike(http, response, fault, head)
        due = await reply.wait(due, i == 0)
        if i == 0:
            await send_choice({"role": "assistant", "content": ""})
        asked.sent_tokens += 1
        last = i == len(reply.pieces) - 1
        if last:
            for delta in reply.call_deltas():
                await send_choice(delta)
        await send_choice({"content": piece}, reply.reason if last else None)
    if fault is not None:
        return await _strike(http, response, fault, head)
    if with_usage:
        await send([], usage=reply.usage(with_details=True))
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    asked.state = "finished"
    return response


async def _strike(
    http: web.Request, response: web.StreamResponse, fault: Fault, head: dict[str, Any]
) -> web.StreamResponse:
    """Let the fault happen to a stream that has begun."""
    if fault.kind == "stall":
        await asyncio.Event().wait()
    elif fault.kind == "comments":
        while True:
            await response.write(b": still here\n\n")
            await asyncio.sleep(0.05)
    elif fault.kind in ("drop", "reset"):
        if isinstance(http.transport, asyncio.Transport):
            close_at_once(http.transport, politely=fault.kind == "drop")
    elif fault.kind == "malformed-json":
        await response.write(b'data: {"choices": [{"index": 0, "del\n\n')
    elif fault.kind == "not-sse":
        await response.write(b"\x00\xff what is this\n\n")
    elif fault.kind == "line":
        await response.write(fault.line + b"\n\n")
    elif fault.kind == "empty-choices":
        await response.write(_event({**head, "choices": []}))
    elif fault.kind == "abort":
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "abort"}
        await response.write(_event({**head, "choices": [choice]}))
    elif fault.kind == "error-event":
        said = _error(500, "the fake engine died, as told to", "InternalServerError")
        await response.write(_event(said))
    if fault.kind not in ("drop", "reset", "truncated"):
        await response.write(b"data: [DONE]\n\n")
    with suppress(ConnectionError):
        await response.write_eof()
    return response


def refused(
    status: int, message: str, kind: str = "BadRequestError", *, param: str | None = None
) -> web.Response:
    """Return an error as vLLM words it."""
    return web.json_response(_error(status, message, kind, param), status=status)


def close_at_once(transport: asyncio.Transport, *, politely: bool = False) -> None:
    """Close a connection; unless politely, the other side sees a reset."""
    sock = transport.get_extra_info("socket")
    if sock is not None and not politely:
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def _error(status: int, message: str, kind: str, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}
