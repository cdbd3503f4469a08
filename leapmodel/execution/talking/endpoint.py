"""A model behind an OpenAI-compatible server, as the loop asks it: streamed chat completions.

Streaming is what lets a request be abandoned: closing its connection makes the engine abort it, and
the tokens that came until then are known. Anything a server does wrong becomes one
:class:`~leapmodel.errors.EngineError`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from leapmodel.errors import EngineError, UsageError, shown
from leapmodel.execution.talking.address import server_address
from leapmodel.execution.talking.connection import Connection, Refused, text_of
from leapmodel.execution.talking.received import decoded, is_whole, whole_text
from leapmodel.execution.talking.request import checked_extra, request_body
from leapmodel.execution.talking.streamed import Streamed, events
from leapmodel.execution.talking.tool_calls import ToolCall

if TYPE_CHECKING:
    import aiohttp

    from leapmodel.benchmarks import Prompt

API_KEY_VARIABLE = "LEAPMODEL_API_KEY"
"""The environment variable an API key is taken from; it is never logged."""
STALLED_S = 120.0
"""A server that sends nothing for so long has stalled."""


class NotReset(EngineError):
    """A server did not empty its prefix cache.

    Attributes
    ----------
    busy : bool
        Whether it would if no request ran; else it has no such call.
    """

    def __init__(self, said: str, *, busy: bool) -> None:
        super().__init__(said)
        self.busy = busy


@dataclass(frozen=True)
class Generation:
    """What a model answered, and when.

    Attributes
    ----------
    context : str
        The hash of the prompt, by which a record names it.
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
    tool_calls : tuple of ToolCall
        What the server itself took for calls of the request's ``tools``.
    """

    context: str
    text: str
    start_s: float
    first_token_s: float | None
    end_s: float
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int
    finish_reason: str | None
    tool_calls: tuple[ToolCall, ...] = ()

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
        self._prompt = prompt
        self._body = endpoint.body(prompt, model)
        self._said = Streamed(endpoint.name)
        self.start_s = time.perf_counter()

    @cached_property
    def context(self) -> str:
        """The hash of the prompt, by which a record names it."""
        return self._prompt.sha256()

    @property
    def completion_tokens(self) -> int:
        """Tokens that have arrived so far."""
        return self._said.completion_tokens

    @property
    def text(self) -> str:
        """The output that has arrived so far."""
        return self._said.text

    async def generation(self) -> Generation:
        """Send the request and return the whole answer.

        Raises
        ------
        EngineError
            If the server can't be reached, stalls, answers another status than 200, breaks off,
            or sends what is not a stream of chat completions.
        """
        said = self._said
        self.start_s = time.perf_counter()
        async with self._endpoint.talking("POST", "/v1/chat/completions", self._body) as response:
            self.context  # noqa: B018 (hashed while the server works: half of what a round adds)
            async for event in events(response, self._endpoint.name, self._endpoint.stalled_s):
                said.take(event)
        end_s = time.perf_counter()
        said.require_end()
        return Generation(
            self.context,
            said.text,
            self.start_s,
            said.first_token_s,
            end_s,
            said.prompt_tokens,
            said.cached_tokens,
            said.completion_tokens,
            said.finish_reason,
            said.tool_calls,
        )


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
        self.url = server_address(url, role, api_key_variable)
        self.model = model
        self.role = role
        self.temperature = temperature
        self.seed = seed
        self.stalled_s = stalled_s
        self.extra = checked_extra(extra or {}, role)
        key = (os.environ.get(api_key_variable) or "").strip() or None
        if key is not None and not key.isprintable():
            # Not shown, as it is a secret.
            raise UsageError(f"${api_key_variable}: expected a key, found one with odd characters")
        self._connection = Connection(self.url, self.name, key, stalled_s)

    @property
    def name(self) -> str:
        """Role and address, for messages."""
        return f"{self.role} at {self.url}"

    async def __aenter__(self) -> Self:
        self._connection.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()

    def talking(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Send a request, as :meth:`Connection.talking` does."""
        return self._connection.talking(method, path, body)

    def body(self, prompt: Prompt, model: str | None = None) -> dict[str, Any]:
        """Return the JSON body of a request."""
        return request_body(prompt, model or self.model, self.temperature, self.seed, self.extra)

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
        names = []
        for one in data:
            name = one.get("id") if isinstance(one, Mapping) else None
            if not isinstance(name, str) or not name.strip() or not is_whole(name):
                raise EngineError(f"{self.name}: expected a model with a name, found {shown(one)}")
            names.append(name)
        return names

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
        return None if found is None else whole_text(str(found))

    async def reset_prefix_cache(self) -> None:
        """Empty the prefix cache, and make sure that it was.

        Raises
        ------
        NotReset
            If the server has no such call (vLLM: ``VLLM_SERVER_DEV_MODE=1``), or did not do it, as
            it does not while requests run.
        EngineError
            If it fails otherwise.
        """
        try:
            async with self.talking("POST", "/reset_prefix_cache") as response:
                said = await text_of(response)
        except Refused as error:
            if 400 <= error.status < 500:
                raise NotReset(str(error), busy=False) from None
            raise
        if not said.strip():  # as older versions of vLLM answer
            return
        try:
            done = decoded(said)
        except ValueError:
            done = said
        success = done.get("success", True) if isinstance(done, Mapping) else None
        if success is False:
            raise NotReset(
                f"{self.name}: the prefix cache was not reset (requests running?)", busy=True
            )
        if success is not True or done.get("error") is not None:
            raise NotReset(
                f"{self.name}: expected word that the prefix cache was reset, found {shown(done)}",
                busy=False,
            )

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
            text = await text_of(response)
        try:
            return decoded(text)
        except ValueError:
            raise EngineError(f"{self.name}: expected JSON, found {shown(text)}") from None
