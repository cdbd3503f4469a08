"""A server that speaks as vLLM does, without an engine: for tests, and for measuring the harness.

It streams set texts at set times and can be told to fail. Timing is by deadlines from a request's
arrival, so that delays do not add up; on an idle machine a chunk leaves within about a millisecond
of its time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from leapmodel.errors import UsageError
from leapmodel.execution.fake.answers import (
    Answer,
    Answers,
    FakeRequest,
    Fault,
    answer_to,
    calling,
    constrained,
    constraint_of,
    tokens_of,
)
from leapmodel.execution.fake.sending import Reply, close_at_once, refused, stream, whole

__all__ = ["Answer", "Answers", "FakeRequest", "FakeServer", "Fault"]

_BLOCK = 16  # tokens of a prefix-cache block, vLLM's default


class FakeServer:
    """An OpenAI-compatible server on a free loopback port, run by a thread of this process.

    Parameters
    ----------
    answers : str, Answer, mapping or callable
        What is said: one text, texts by the content of the last message, or a function of the
        :class:`FakeRequest`.
    first_token_s, token_s : float
        Seconds to the first completion token and for each further one. A text of n tokens takes
        ``first_token_s + n * token_s``: the token that ends it counts.
    contention : float
        Share by which each other running request lengthens a token's time (0: none, assumption
        (b) of App. E).
    model : str
        The served model.
    adapters : mapping of str to path, optional
        Adapters loaded at the start.
    max_running : int, optional
        Requests served at once, as vLLM's ``--max-num-seqs``; the others wait.
    max_model_len : int
        Prompt and completion tokens at most; a longer request is refused with 400.
    faults : iterable of Fault
        What goes wrong, the first that strikes; :meth:`fail` adds one later.
    api_key : str, optional
        Required of requests to ``/v1``.
    port : int
        0 for a free one.

    Examples
    --------
    >>> import urllib.request
    >>> with FakeServer("hello") as server:
    ...     urllib.request.urlopen(server.url + "/health").status
    200
    """

    def __init__(
        self,
        answers: Answers = "ok",
        *,
        first_token_s: float = 0.0,
        token_s: float = 0.0,
        contention: float = 0.0,
        model: str = "fake",
        adapters: dict[str, str] | None = None,
        max_running: int | None = None,
        max_model_len: int = 8192,
        faults: Iterable[Fault] = (),
        api_key: str | None = None,
        port: int = 0,
    ) -> None:
        self.answers = answers
        self.first_token_s = first_token_s
        self.token_s = token_s
        self.contention = contention
        self.model = model
        self.adapters = dict(adapters or {})
        self.max_running = max_running
        self.max_model_len = max_model_len
        self.faults = list(faults)
        self.api_key = api_key
        self.port = port
        self.requests: list[FakeRequest] = []
        self.resets: list[bool] = []  # the answer to each request to reset the prefix cache
        self.weights: str | None = None  # what was put in place of those it started with
        self._cached_blocks: set[str] = set()
        self._connections: set[asyncio.Transport] = set()
        self._running = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None

    # What a test asks of it

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def aborted(self) -> int:
        """Requests whose connection the client closed before the end."""
        return sum(request.state == "aborted" for request in self.requests)

    @property
    def finished(self) -> int:
        """Requests answered to the end."""
        return sum(request.state == "finished" for request in self.requests)

    @property
    def running(self) -> int:
        """Requests being answered now."""
        return sum(request.state in ("queued", "running") for request in self.requests)

    def fail(self, fault: Fault) -> Fault:
        """Let something go wrong from now on; returns it, for its count of requests struck."""
        self.faults.append(fault)
        return fault

    def wait_for(self, condition: Callable[[FakeServer], bool], *, timeout_s: float = 5.0) -> bool:
        """Wait until a condition on this server holds; returns whether it came to hold."""
        deadline = time.monotonic() + timeout_s
        while not condition(self):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        return True

    def start(self) -> Self:
        """Listen; raises OSError if the port is taken."""
        ready: threading.Event = threading.Event()
        failure: list[BaseException] = []

        def run() -> None:
            try:
                asyncio.run(self._serve(ready))
            except BaseException as error:
                failure.append(error)
            finally:
                ready.set()

        self._thread = threading.Thread(target=run, name="fake-server", daemon=True)
        self._thread.start()
        ready.wait()
        if failure:
            raise failure[0]
        return self

    def stop(self) -> None:
        """Stop listening and reset what is open, as a process that is killed does."""
        if self._thread is None or self._loop is None:
            return
        with suppress(RuntimeError):  # its loop has ended already
            self._loop.call_soon_threadsafe(self._die)
        self._thread.join()
        self._thread = None

    kill = stop

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # The server

    def _die(self) -> None:
        for transport in list(self._connections):
            close_at_once(transport)
        assert self._stop is not None
        self._stop.set()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._slots = asyncio.Semaphore(self.max_running or 1_000_000)
        app = web.Application(middlewares=[self._gate], client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/health", self._health)
        app.router.add_get("/version", self._version)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_post("/reset_prefix_cache", self._reset_prefix_cache)
        app.router.add_post("/collective_rpc", self._call_workers)
        app.router.add_post("/v1/load_lora_adapter", self._load_adapter)
        app.router.add_post("/v1/unload_lora_adapter", self._unload_adapter)
        # A closed connection cancels the handler: that is how an abort is seen.
        runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", self.port)
            await site.start()
            if not self.port:
                self.port = runner.addresses[0][1]
            ready.set()
            await self._stop.wait()
        finally:
            await runner.cleanup()

    @web.middleware
    async def _gate(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.transport is not None:
            self._connections = {t for t in self._connections if not t.is_closing()}
            self._connections.add(request.transport)
        if (
            self.api_key
            and request.path.startswith("/v1")
            and request.headers.get("Authorization") != f"Bearer {self.api_key}"
        ):
            return web.json_response({"error": "Unauthorized"}, status=401)
        try:
            response: web.StreamResponse = await handler(request)
        except web.HTTPException as error:
            return web.json_response({"detail": error.reason}, status=error.status)
        return response

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response()

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": "fake"})

    async def _models(self, request: web.Request) -> web.Response:
        cards = [{"id": self.model, "root": self.model, "parent": None}]
        cards[0]["max_model_len"] = self.max_model_len  # type: ignore[assignment]
        cards += [
            {"id": name, "root": path, "parent": self.model} for name, path in self.adapters.items()
        ]
        data = [{"object": "model", "created": 0, "owned_by": "vllm", **card} for card in cards]
        return web.json_response({"object": "list", "data": data})

    async def _metrics(self, request: web.Request) -> web.Response:
        waiting = sum(request.state == "queued" for request in self.requests)
        values = {
            "vllm:num_requests_running": self._running,
            "vllm:num_requests_waiting": waiting,
            "vllm:prompt_tokens_total": sum(r.prompt_tokens for r in self.requests),
            "vllm:generation_tokens_total": sum(r.sent_tokens for r in self.requests),
        }
        lines = [
            f'{name}{{engine="0",model_name="{self.model}"}} {float(value)}\n'
            for name, value in values.items()
        ]
        return web.Response(text="".join(lines))

    async def _reset_prefix_cache(self, request: web.Request) -> web.Response:
        success = self._running == 0
        if success:
            self._cached_blocks.clear()
        self.resets.append(success)
        return web.json_response({"success": success})

    async def _call_workers(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body.get("method") != "reload_weights":
            return refused(400, f"the fake server can't {body.get('method')}")
        path = body.get("kwargs", {}).get("weights_path")
        if not path or not os.path.isdir(path):
            return refused(
                500, f"Call to collective_rpc method failed: {path}", "InternalServerError"
            )
        self.weights = path  # and, as with vLLM, nothing is removed from the prefix cache
        return web.json_response({"results": [None]})

    async def _load_adapter(self, request: web.Request) -> web.Response:
        body = await request.json()
        name, path = body.get("lora_name"), body.get("lora_path")
        if not name or not path:
            return refused(
                400, "Both 'lora_name' and 'lora_path' must be provided.", "InvalidUserInput"
            )
        if name == self.model:
            return refused(
                400,
                f"The lora adapter '{name}' conflicts with a served base model.",
                "InvalidUserInput",
            )
        if name in self.adapters and not body.get("load_inplace"):
            return refused(
                400,
                f"The lora adapter '{name}' has already been loaded. If you want to load the "
                "adapter in place, set 'load_inplace' to True.",
                "InvalidUserInput",
            )
        if not os.path.isdir(path):
            return refused(
                404, f"Loading lora {name} failed: No adapter found for {path}", "NotFoundError"
            )
        self.adapters[name] = path
        return web.Response(text=f"Success: LoRA adapter '{name}' added successfully.")

    async def _unload_adapter(self, request: web.Request) -> web.Response:
        name = (await request.json()).get("lora_name")
        if name not in self.adapters:
            return refused(404, f"The lora adapter '{name}' cannot be found.", "NotFoundError")
        del self.adapters[name]
        return web.Response(text=f"Success: LoRA adapter '{name}' removed successfully.")

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        arrived = time.perf_counter()
        try:
            body = json.loads(await http.read())
            messages = [dict(message) for message in body["messages"]]
            model = body.get("model") or self.model
            if any(body.get(limit) == 0 for limit in ("max_tokens", "max_completion_tokens")):
                raise ValueError("max_tokens must be at least 1, got 0.")
        except (ValueError, KeyError, TypeError) as error:
            return refused(400, f"{type(error).__name__}: {error}")
        asked = FakeRequest(
            len(self.requests),
            model,
            messages,
            body,
            arrived,
            weights=self.adapters.get(model, self.weights),
        )
        self.requests.append(asked)
        try:
            response = await self._answer(http, asked)
            if asked.state in ("queued", "running"):
                asked.state = "failed"  # a fault ended it
            return response
        except (asyncio.CancelledError, ConnectionError) as gone:
            asked.state = "aborted" if asked.state in ("queued", "running") else asked.state
            if isinstance(gone, asyncio.CancelledError):
                raise
            return web.Response()  # nobody reads it, and raising would only fill the log
        finally:
            asked.ended_s = time.perf_counter()

    async def _answer(self, http: web.Request, asked: FakeRequest) -> web.StreamResponse:
        fault = next((fault for fault in self.faults if fault.strikes(asked)), None)
        if fault is not None and fault.kind == "status":
            return refused(fault.status, f"the fake server answers {fault.status}, as told to")
        if fault is not None and fault.kind == "not-json":
            return web.Response(text="<html>502 Bad Gateway</html>", content_type="text/html")
        if asked.model != self.model and asked.model not in self.adapters:
            return refused(
                404,
                f"The model `{asked.model}` does not exist. Valid aliases: {self.model}.",
                "NotFoundError",
                param="model",
            )
        self._look_up(asked)
        limit = asked.body.get("max_completion_tokens") or asked.body.get("max_tokens")
        if asked.prompt_tokens + (limit or 1) > self.max_model_len:
            return refused(
                400,
                f"This model's maximum context length is {self.max_model_len} tokens. However, "
                f"you requested {limit or 1} output tokens and your prompt contains "
                f"{asked.prompt_tokens} input tokens, for a total of "
                f"{asked.prompt_tokens + (limit or 1)} tokens. Please reduce the length of the "
                "input prompt or the number of requested output tokens.",
                param="input_tokens",
            )
        try:
            answer = constrained(answer_to(self.answers, asked), constraint_of(asked.body))
            answer = calling(answer, asked.body)
            limit = limit or self.max_model_len - asked.prompt_tokens
            pieces, reason = answer.pieces(limit, beyond=bool(asked.body.get("ignore_eos")))
        except UsageError as error:
            return refused(400, str(error))
        except Exception as error:
            return refused(500, f"{type(error).__name__}: {error}", "InternalServerError")
        waits = self._slots.locked()
        async with self._slots:
            # Timed from its arrival, so that reading it is not added; or from its turn.
            served_s = time.perf_counter() if waits else asked.started_s
            asked.state = "running"
            self._running += 1
            try:
                waiting = partial(self._wait, asked, answer)
                reply = Reply(asked, pieces, reason, fault, waiting, answer.calls)
                if asked.body.get("stream"):
                    return await stream(http, reply, served_s)
                return await whole(reply, served_s)
            finally:
                self._running -= 1

    def _look_up(self, asked: FakeRequest) -> None:
        """Count the prompt's tokens and those in the prefix cache, and put it there."""
        pieces = [asked.model]  # an adapter has entries of its own
        for message in asked.messages:
            pieces += [f"<{message.get('role')}>", *tokens_of(str(message.get("content", "")))]
        asked.prompt_tokens = len(pieces) - 1
        running, hit = hashlib.sha256(), True
        for start in range(0, len(pieces) - _BLOCK, _BLOCK):
            running.update(repr(pieces[start : start + _BLOCK]).encode())
            block = running.hexdigest()
            hit = hit and block in self._cached_blocks
            asked.cached_tokens += _BLOCK * hit
            self._cached_blocks.add(block)

    async def _wait(self, asked: FakeRequest, answer: Answer, due: float, first: bool) -> float:
        own = answer.first_token_s if first else answer.token_s
        seconds = own if own is not None else self.first_token_s if first else self.token_s
        due += seconds * (1 + self.contention * (self._running - 1))
        await asyncio.sleep(max(due - time.perf_counter(), 0))
        return due
