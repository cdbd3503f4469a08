"""A model behind an OpenAI-compatible server, as the loop asks it: streamed chat completions.

Streaming is what lets a request be abandoned: closing its connection makes the engine abort it, and
the tokens that came until then are known. Anything a server does wrong becomes one
:class:`~leapmodel.errors.EngineError`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from leapmodel.errors import EngineError, UsageError, shown
from leapmodel.execution.extras import require

if TYPE_CHECKING:
    import aiohttp

    from leapmodel.benchmarks import Prompt

API_KEY_VARIABLE = "LEAPMODEL_API_KEY"
"""The environment variable an API key is taken from; it is never logged."""
STALLED_S = 120.0
"""A server that sends nothing for so long has stalled."""
_CONNECT_S = 10.0
_LONGEST_LINE = 1 << 20
_CUT_OFF = frozenset({"abort", "cancelled", "error"})
"""Finish reasons of an engine that gave an answer up, as vLLM does when it is told to end."""


@dataclass(frozen=True)
class Generation:
    """What a model answered, and when.

    Attributes
    ----------
    text : str
        The raw output.
    start_s, first_token_s, end_s : float
        Readings of ``time.perf_counter()``; no first token if nothing was generated.
    prompt_tokens, cached_tokens : int or None
        As the server counts them; None if it does not.
    completion_tokens : int
        As the server counts them, else the number of streamed pieces.
    finish_reason : str or None
        Such as ``"stop"`` or ``"length"``.
    """

    text: str
    start_s: float
    first_token_s: float | None
    end_s: float
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int
    finish_reason: str | None

    @property
    def seconds(self) -> float:
        """Wall-clock seconds from request to last byte."""
        return self.end_s - self.start_s


class Call:
    """One request under way. Cancel the task that awaits it, and its connection is closed.

    Attributes
    ----------
    start_s : float
        When it was made, by ``time.perf_counter()``.
    completion_tokens : int
        Tokens that have arrived so far.
    """

    def __init__(self, endpoint: Endpoint, prompt: Prompt, model: str | None) -> None:
        self._endpoint = endpoint
        self._body = endpoint.body(prompt, model)
        self._parts: list[str] = []
        self._pieces = 0
        self._counted: int | None = None
        self._usage: Mapping[str, Any] = {}
        self._first_s: float | None = None
        self._finish: str | None = None
        self.start_s = time.perf_counter()

    @property
    def completion_tokens(self) -> int:
        """Tokens that have arrived so far."""
        return self._pieces if self._counted is None else self._counted

    @property
    def text(self) -> str:
        """The output that has arrived so far."""
        return "".join(self._parts)

    async def generation(self) -> Generation:
        """Send the request and return the whole answer.

        Raises
        ------
        EngineError
            If the server can't be reached, stalls, answers another status than 200, breaks off,
            or sends what is not a stream of chat completions.
        """
        self.start_s = time.perf_counter()
        async with self._endpoint.talking("POST", "/v1/chat/completions", self._body) as response:
            async for event in _events(response, self._endpoint.name):
                self._take(event)
        end_s = time.perf_counter()
        if self._finish is None or self._finish in _CUT_OFF:
            why = "" if self._finish is None else f" ({self._finish})"
            raise EngineError(f"{self._endpoint.name}: the answer broke off before its end{why}")
        details = self._usage.get("prompt_tokens_details")
        return Generation(
            self.text,
            self.start_s,
            self._first_s,
            end_s,
            _count(self._usage.get("prompt_tokens")),
            _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None,
            self.completion_tokens,
            self._finish,
        )

    def _take(self, event: Mapping[str, Any]) -> None:
        if isinstance(usage := event.get("usage"), Mapping):
            self._usage = usage
            self._counted = _count(usage.get("completion_tokens"))
        choices = event.get("choices")
        if not isinstance(choices, list):
            said = event.get("error", event)
            raise EngineError(f"{self._endpoint.name}: expected choices, found {shown(said)}")
        if not choices:
            return
        choice = choices[0]
        delta = choice.get("delta") if isinstance(choice, Mapping) else None
        if not isinstance(delta, Mapping):
            raise EngineError(f"{self._endpoint.name}: expected a delta, found {shown(choice)}")
        # A reasoning parser sends thoughts apart: they take time and tokens, but are no action.
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        content = delta.get("content")
        if content or thought:
            self._pieces += 1
            if self._first_s is None:
                self._first_s = time.perf_counter()
        if isinstance(content, str):
            self._parts.append(content)
        self._finish = choice.get("finish_reason") or self._finish


class Endpoint:
    """A model behind an OpenAI-compatible server.

    Use it as an asynchronous context manager.

    Parameters
    ----------
    url : str
        The server's address, such as ``http://127.0.0.1:8000``; a trailing ``/v1`` is understood.
    model : str
        The model's or adapter's name at the server.
    role : str, default "model"
        For messages: ``"target"`` or ``"draft"``.
    api_key_variable : str
        The environment variable that holds the API key, if the server wants one.
    stalled_s : float, default 120
        Seconds without a byte after which an answer is given up.
    temperature : float, default 0
        Greedy by default, as in every end-to-end run of the paper (App. G).
    seed : int, default 0
        The sampling seed.
    extra : mapping, optional
        More of the request's body, such as
        ``{"chat_template_kwargs": {"enable_thinking": False}}``.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        role: str = "model",
        api_key_variable: str = API_KEY_VARIABLE,
        stalled_s: float = STALLED_S,
        temperature: float = 0.0,
        seed: int = 0,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"{role}: expected an address http://…, found {shown(url)}")
        self.url = url.rstrip("/").removesuffix("/v1")
        self.model = model
        self.role = role
        self.temperature = temperature
        self.seed = seed
        self.extra = dict(extra or {})
        self._stalled_s = stalled_s
        self._key = (os.environ.get(api_key_variable) or "").strip() or None
        if self._key is not None and not self._key.isprintable():
            # Not shown, as it is a secret.
            raise UsageError(f"${api_key_variable}: expected a key, found one with odd characters")
        self._session: aiohttp.ClientSession | None = None

    @property
    def name(self) -> str:
        """Role and address, for messages."""
        return f"{self.role} at {self.url}"

    async def __aenter__(self) -> Self:
        aiohttp = require("aiohttp", "execution")
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=_CONNECT_S, sock_read=self._stalled_s
            ),
            connector=aiohttp.TCPConnector(limit=0),
            headers={"Authorization": f"Bearer {self._key}"} if self._key else None,
            read_bufsize=_LONGEST_LINE,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()
        self._session = None

    def body(self, prompt: Prompt, model: str | None = None) -> dict[str, Any]:
        """Return the JSON body of a request."""
        body: dict[str, Any] = {
            "model": model or self.model,
            "messages": [dict(message) for message in prompt.messages],
            "max_tokens": prompt.max_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            **self.extra,
        }
        if prompt.structured is not None:
            body["structured_outputs"] = dict(prompt.structured)
        return body

    def call(self, prompt: Prompt, *, model: str | None = None) -> Call:
        """Return a request that is sent when its ``generation()`` is awaited."""
        return Call(self, prompt, model)

    async def generate(self, prompt: Prompt, *, model: str | None = None) -> Generation:
        """Ask and return the whole answer; see :meth:`Call.generation`."""
        return await self.call(prompt, model=model).generation()

    async def models(self) -> list[str]:
        """Return the names the server answers to.

        Raises
        ------
        EngineError
            As for :meth:`Call.generation`.
        """
        said = await self._json("GET", "/v1/models")
        data = said.get("data") if isinstance(said, Mapping) else None
        if not isinstance(data, list):
            raise EngineError(f"{self.name}: expected a list of models, found {shown(said)}")
        return [str(one.get("id")) for one in data if isinstance(one, Mapping)]

    async def healthy(self) -> bool:
        """Return whether the server is up."""
        try:
            async with self.talking("GET", "/health"):
                return True
        except EngineError:
            return False

    async def version(self) -> str | None:
        """Return the engine's version, if it tells."""
        try:
            said = await self._json("GET", "/version")
        except EngineError:
            return None
        found = said.get("version") if isinstance(said, Mapping) else None
        return None if found is None else str(found)

    async def reset_prefix_cache(self) -> None:
        """Empty the prefix cache, and make sure that it was.

        Raises
        ------
        EngineError
            If the server has no such call (vLLM: ``VLLM_SERVER_DEV_MODE=1``), or did not do it, as
            it does not while requests run.
        """
        async with self.talking("POST", "/reset_prefix_cache") as response:
            said = await response.text(errors="replace")
        try:
            done = json.loads(said) if said.strip() else {"success": True}
        except ValueError:
            done = said
        if isinstance(done, Mapping) and done.get("success") is False:
            raise EngineError(f"{self.name}: the prefix cache was not reset (requests running?)")

    async def load_adapter(self, name: str, path: str) -> None:
        """Load an adapter into the running server (vLLM).

        Every version needs a path of its own: under a known path, entries of the prefix cache
        that the old version made would be used again.

        Raises
        ------
        EngineError
            If the server refuses, such as for a path that is missing.
        """
        body = {"lora_name": name, "lora_path": path}
        async with self.talking("POST", "/v1/load_lora_adapter", body):
            pass

    async def unload_adapter(self, name: str) -> None:
        """Unload an adapter.

        Raises
        ------
        EngineError
            If the server refuses.
        """
        async with self.talking("POST", "/v1/unload_lora_adapter", {"lora_name": name}):
            pass

    async def load_weights(self, path: str) -> None:
        """Put other weights of the same shapes into the running server, in place (vLLM).

        They answer under the name of the model that was served, so whatever was in the prefix
        cache is removed. On a CPU, vLLM 0.32 does not repack tied embeddings: weights that differ
        in these would answer wrongly. Those with an adapter merged into them do not differ there.

        Parameters
        ----------
        path : str
            A model directory that the server can read.

        Raises
        ------
        EngineError
            If the server refuses, or has no such call (vLLM: ``VLLM_SERVER_DEV_MODE=1``). Where the
            directory can't be loaded vLLM's engine ends.
        """
        body = {"method": "reload_weights", "kwargs": {"weights_path": path}}
        async with self.talking("POST", "/collective_rpc", body):
            pass
        await self.reset_prefix_cache()

    async def _json(self, method: str, path: str) -> Any:
        async with self.talking(method, path) as response:
            text = await response.text(errors="replace")
        try:
            return json.loads(text)
        except ValueError:
            raise EngineError(f"{self.name}: expected JSON, found {shown(text)}") from None

    @asynccontextmanager
    async def talking(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and give its response, whose status is 2xx.

        Raises
        ------
        EngineError
            For whatever goes wrong on the way there and back.
        """
        if self._session is None:
            raise EngineError(f"{self.name}: use it as an asynchronous context manager")
        import aiohttp

        try:
            async with self._session.request(method, self.url + path, json=body) as response:
                if not 200 <= response.status < 300:
                    page = await response.text(errors="replace")
                    said = shown(" ".join(page.split()), 200)
                    raise EngineError(
                        f"{self.name}: {method} {path} answered {response.status}: {said}"
                    )
                yield response
        except aiohttp.ConnectionTimeoutError:
            raise EngineError(
                f"{self.name}: the connection failed (no answer for {_CONNECT_S:g} s)"
            ) from None
        except TimeoutError:
            raise EngineError(
                f"{self.name}: nothing came for {self._stalled_s:g} s: the server has stalled"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            reason = str(error) or type(error).__name__
            reason = reason.replace(" ssl:default", "")  # it says so of plain connections too
            raise EngineError(f"{self.name}: the connection failed ({reason})") from None


async def _events(response: aiohttp.ClientResponse, name: str) -> AsyncIterator[Mapping[str, Any]]:
    """Give the JSON objects of a server-sent event stream up to ``[DONE]``."""
    while True:
        try:
            line = await response.content.readline()
        except ValueError:
            raise EngineError(
                f"{name}: a line of the answer is over {_LONGEST_LINE} bytes"
            ) from None
        if not line:
            return
        text = line.strip()
        if not text or text.startswith((b":", b"event:", b"id:", b"retry:")):
            continue
        if not text.startswith(b"data:"):
            raise EngineError(f"{name}: expected an event stream, found {shown(text)}")
        data = text[5:].strip()
        if data == b"[DONE]":
            return
        try:
            event = json.loads(data)
        except ValueError:
            raise EngineError(f"{name}: expected JSON in the stream, found {shown(data)}") from None
        if not isinstance(event, dict):
            raise EngineError(f"{name}: expected a JSON object in the stream, found {shown(event)}")
        yield event


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
