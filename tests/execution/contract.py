"""What the loop relies on in a server, asked of the fake one and of vLLM alike.

The tests here run where a module imports them beside a fixture ``served``: ``test_contract.py`` in
this folder, and in ``tests/engine``.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest

from leapmodel.benchmarks import Prompt
from leapmodel.errors import EngineError
from leapmodel.execution.own_contexts import decision
from leapmodel.execution.talking.endpoint import Endpoint, Generation

T = TypeVar("T")
PROMPT = "Say one two three four five six seven eight nine ten, and then all of it again. " * 8
TRIES = 3  # where a time is judged: the machine may be busy, and the best of them tells
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"tool": {"type": "string", "enum": ["search", "stop"]}},
    "required": ["tool"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Served:
    """A server under test.

    Attributes
    ----------
    url, model : str
    max_model_len : int
    adapter : Path
        An adapter of the model.
    """

    url: str
    model: str
    max_model_len: int
    adapter: Path


class Asking:
    """Requests as they are on the wire."""

    def __init__(self, served: Served, session: aiohttp.ClientSession) -> None:
        self.served = served
        self.session = session

    def body(self, text: str = PROMPT, **more: Any) -> dict[str, Any]:
        return {
            "model": self.served.model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": 12,
            "temperature": 0,
            "seed": 0,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            **more,
        }

    async def post(self, path: str, body: Any = None) -> tuple[int, Any]:
        async with self.session.post(self.served.url + path, json=body) as response:
            text = await response.text()
            try:
                return response.status, json.loads(text)
            except ValueError:
                return response.status, text

    async def chat(self, **body: Any) -> tuple[int, Any]:
        return await self.post("/v1/chat/completions", self.body(**body))

    async def stream(self, **body: Any) -> list[dict[str, Any]]:
        """The events of a stream, which must end as one does."""
        request = self.session.post(
            self.served.url + "/v1/chat/completions", json=self.body(**body)
        )
        async with request as response:
            assert response.status == 200, await response.text()
            assert response.content_type == "text/event-stream"
            lines = [line.strip() for line in (await response.read()).split(b"\n\n")]
        assert lines[-2:] == [b"data: [DONE]", b""]
        return [json.loads(line.removeprefix(b"data: ")) for line in lines[:-2]]

    async def text(self, **body: Any) -> str:
        events = await self.stream(**body)
        return "".join(
            e["choices"][0]["delta"].get("content") or "" for e in events if e["choices"]
        )

    async def cached(self, **body: Any) -> int:
        return (await self.stream(**body))[-1]["usage"]["prompt_tokens_details"]["cached_tokens"]

    async def reset(self) -> bool:
        status, said = await self.post("/reset_prefix_cache")
        assert status == 200
        assert said in ({"success": True}, {"success": False})
        return bool(said["success"])

    async def reset_when_idle(self, within_s: float) -> float:
        """Seconds until a reset succeeds, which it does once nothing runs."""
        start = time.perf_counter()
        while not await self.reset():
            assert time.perf_counter() - start < within_s, "requests still run"
            await asyncio.sleep(0.005)
        return time.perf_counter() - start


def asking(served: Served, ask: Callable[[Asking], Awaitable[T]]) -> T:
    async def run() -> T:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(120)) as session:
            return await ask(Asking(served, session))

    return asyncio.run(run())


def talking(served: Served, talk: Callable[[Endpoint], Awaitable[T]]) -> T:
    async def run() -> T:
        async with Endpoint(served.url, served.model, role="draft") as endpoint:
            return await talk(endpoint)

    return asyncio.run(run())


def prompt(text: str = PROMPT, max_tokens: int = 12, **more: Any) -> Prompt:
    return Prompt(({"role": "user", "content": text},), max_tokens, **more)


# Streams


def test_a_stream_has_a_role_then_tokens_then_a_reason_then_the_usage(served: Served):
    events = asking(served, lambda ask: ask.stream())
    assert all(e["object"] == "chat.completion.chunk" for e in events)
    assert {e["model"] for e in events} == {served.model}
    assert len({e["id"] for e in events}) == 1
    choices = [e["choices"][0] for e in events[:-1]]
    assert choices[0]["delta"] == {"role": "assistant", "content": ""}
    reasons = [choice["finish_reason"] for choice in choices]
    assert reasons[-1] in ("stop", "length")
    assert set(reasons[:-1]) == {None}
    assert events[-1]["choices"] == []
    usage = events[-1]["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens"] > 100
    counts = [e["usage"]["completion_tokens"] for e in events]
    assert counts[0] == 0
    assert counts == sorted(counts)
    assert counts[-1] == counts[-2] == usage["completion_tokens"]


def test_usage_comes_only_when_asked_for(served: Served):
    plain = asking(served, lambda ask: ask.stream(stream_options=None))
    last = asking(served, lambda ask: ask.stream(stream_options={"include_usage": True}))
    assert all(e.get("usage") is None for e in plain)
    assert plain[-1]["choices"]
    assert [e.get("usage") is not None for e in last] == [False] * (len(last) - 1) + [True]


def test_too_few_tokens_end_it_by_length(served: Served):
    events = asking(served, lambda ask: ask.stream(max_tokens=3))
    assert events[-2]["choices"][0]["finish_reason"] == "length"
    assert events[-1]["usage"]["completion_tokens"] == 3


def test_the_same_request_has_the_same_answer_streamed_or_not(served: Served):
    async def both(ask: Asking) -> tuple[str, Any]:
        streamed = await ask.text()
        status, whole = await ask.chat(stream=False, stream_options=None)
        assert status == 200
        return streamed, whole

    streamed, whole = asking(served, both)
    assert whole["object"] == "chat.completion"
    assert whole["choices"][0]["message"]["content"] == streamed
    assert whole["usage"]["completion_tokens"] <= 12


def test_requests_run_at_once(served: Served):
    async def four(ask: Asking) -> int:
        answers = await asyncio.gather(*(ask.text(text=f"{i} {PROMPT}") for i in range(4)))
        return len(answers)

    assert asking(served, four) == 4


# The prefix cache


def test_a_prefix_is_cached_until_it_is_reset(served: Served):
    async def three(ask: Asking) -> list[int]:
        await ask.reset_when_idle(2)
        first = await ask.cached()
        second = await ask.cached(text=PROMPT + "And again.")
        await ask.reset_when_idle(2)
        return [first, second, await ask.cached()]

    first, second, third = asking(served, three)
    assert (first, third) == (0, 0)
    assert second > 50


@pytest.mark.timed
def test_a_reset_fails_while_a_request_runs_and_works_soon_after_it_is_closed(served: Served):
    async def run(ask: Asking) -> tuple[bool, float]:
        request = ask.session.post(
            served.url + "/v1/chat/completions", json=ask.body(max_tokens=500, ignore_eos=True)
        )
        async with request as response:
            for _ in range(6):  # a few tokens in
                await response.content.readline()
            while_running = await ask.reset()
            response.close()
        return while_running, await ask.reset_when_idle(2)

    tries = [asking(served, run) for _ in range(TRIES)]
    assert not any(while_running for while_running, _ in tries)
    assert min(seconds for _, seconds in tries) < 0.5  # closing the connection aborted it


# Refusals


def test_what_is_no_request_is_refused(served: Served):
    assert asking(served, lambda ask: ask.chat(messages=None))[0] == 400
    assert asking(served, lambda ask: ask.chat(max_tokens=0))[0] == 400


def test_an_unknown_model_is_404(served: Served):
    status, said = asking(served, lambda ask: ask.chat(model="nobody"))
    assert status == 404
    assert said["error"]["type"] == "NotFoundError"
    assert said["error"]["code"] == 404
    assert said["error"]["message"] == (
        f"The model `nobody` does not exist. Valid aliases: {served.model}."
    )


def test_a_prompt_that_is_too_long_is_400(served: Served):
    long = "word " * 2 * served.max_model_len
    status, said = asking(served, lambda ask: ask.chat(text=long))
    assert status == 400
    assert said["error"]["type"] == "BadRequestError"
    assert f"maximum context length is {served.max_model_len} tokens" in said["error"]["message"]


def test_the_client_says_so_in_one_line(served: Served):
    with pytest.raises(EngineError, match=r"answered 404.*The model `nobody` does not exist"):
        talking(served, lambda endpoint: endpoint.generate(prompt(), model="nobody"))
    with pytest.raises(EngineError, match=r"answered 400.*maximum context length"):
        talking(served, lambda e: e.generate(prompt("word " * 2 * served.max_model_len)))


# Constrained decoding


def test_a_choice(served: Served):
    asked = {"structured_outputs": {"choice": ["yes", "no"]}}
    assert asking(served, lambda ask: ask.text(**asked)) in ("yes", "no")


def test_a_regular_expression(served: Served):
    asked = {"structured_outputs": {"regex": "[0-9]{2}"}}
    text = asking(served, lambda ask: ask.text(text="Two digits, please.", **asked))
    assert len(text) == 2
    assert text.isdecimal()


def test_a_grammar(served: Served):
    asked = {"structured_outputs": {"grammar": 'root ::= "<tool>" ("a" | "b") "</tool>"'}}
    text = asking(served, lambda ask: ask.text(text="A tool, please.", max_tokens=40, **asked))
    assert text in ("<tool>a</tool>", "<tool>b</tool>")


@pytest.mark.parametrize(
    "asked",
    [
        {"structured_outputs": {"json": SCHEMA}},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "call", "schema": SCHEMA},
            }
        },
    ],
    ids=["structured_outputs", "response_format"],
)
def test_a_json_schema(served: Served, asked: dict[str, Any]):
    text = asking(served, lambda ask: ask.text(max_tokens=40, **asked))
    assert json.loads(text) in ({"tool": "search"}, {"tool": "stop"})


def test_old_names_of_constraints_are_ignored_in_silence(served: Served):
    async def both(ask: Asking) -> tuple[str, str]:
        return await ask.text(), await ask.text(guided_choice=["yes", "no"])

    free, guided = asking(served, both)
    assert free == guided


def test_two_constraints_are_refused(served: Served):
    both = {"structured_outputs": {"choice": ["a"], "regex": "b"}}
    assert asking(served, lambda ask: ask.chat(**both))[0] == 400


# Adapters


def test_an_adapter_is_loaded_used_and_unloaded(served: Served):
    async def run(ask: Asking) -> None:
        load = {"lora_name": "v1", "lora_path": str(served.adapter)}
        status, said = await ask.post("/v1/load_lora_adapter", load)
        assert (status, said) == (200, "Success: LoRA adapter 'v1' added successfully.")
        async with ask.session.get(served.url + "/v1/models") as response:
            cards = {card["id"]: card for card in (await response.json())["data"]}
        assert set(cards) == {served.model, "v1"}
        assert cards["v1"]["parent"] == served.model
        assert cards["v1"]["root"] == str(served.adapter)
        assert cards[served.model]["max_model_len"] == served.max_model_len
        events = await ask.stream(model="v1")
        assert {e["model"] for e in events} == {"v1"}
        status, said = await ask.post("/v1/load_lora_adapter", load)
        assert status == 400
        assert "'v1' has already been loaded" in said["error"]["message"]
        status, said = await ask.post("/v1/unload_lora_adapter", {"lora_name": "v1"})
        assert (status, said) == (200, "Success: LoRA adapter 'v1' removed successfully.")
        assert (await ask.chat(model="v1"))[0] == 404

    asking(served, run)


def test_an_adapter_shares_no_cached_prefix_with_another(served: Served):
    async def run(ask: Asking) -> list[int]:
        for name in ("v1", "v2"):
            body = {"lora_name": name, "lora_path": str(served.adapter)}
            assert (await ask.post("/v1/load_lora_adapter", body))[0] == 200
        await ask.reset_when_idle(2)
        found = [await ask.cached(model=name) for name in ("v1", "v1", "v2", served.model)]
        for name in ("v1", "v2"):
            await ask.post("/v1/unload_lora_adapter", {"lora_name": name})
        return found

    first, again, other, base = asking(served, run)
    assert again > 50
    assert (first, other, base) == (0, 0, 0)


def test_a_missing_adapter_is_said_clearly(served: Served):
    with pytest.raises(EngineError, match=r"answered 404.*No adapter found for /nowhere"):
        talking(served, lambda endpoint: endpoint.load_adapter("v9", "/nowhere"))
    with pytest.raises(EngineError, match=r"answered 404.*adapter .+v9.+ cannot be found"):
        talking(served, lambda endpoint: endpoint.unload_adapter("v9"))
    assert talking(served, lambda endpoint: endpoint.models()) == [served.model]


# The client


def test_the_client_tells_text_times_and_tokens(served: Served):
    async def run(endpoint: Endpoint) -> Any:
        await endpoint.reset_prefix_cache()
        return [await endpoint.generate(prompt()) for _ in range(2)]

    first, second = talking(served, run)
    assert first.text == second.text
    assert first.start_s < first.first_token_s <= first.end_s
    assert first.prompt_tokens == second.prompt_tokens
    assert first.cached_tokens == 0
    assert second.cached_tokens > 50
    assert 1 <= first.completion_tokens <= 12
    assert first.finish_reason in ("stop", "length")
    said = talking(
        served,
        lambda e: e.generate(prompt(max_tokens=40, structured={"choice": ["<tool>a</tool>"]})),
    )
    assert said.text == "<tool>a</tool>"


def test_the_client_tells_which_tool_was_called(served: Served):
    function = {"name": "look", "description": "Look at it.", "parameters": SCHEMA}
    tools = {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
    }

    async def run() -> Generation:
        async with Endpoint(served.url, served.model, role="draft", extra=tools) as endpoint:
            return await endpoint.generate(prompt("Look at it.", 60))

    answer = asyncio.run(run())
    (call,) = answer.tool_calls
    assert call.name == "look"
    arguments = json.loads(call.arguments)  # vLLM holds a model to JSON, but not to the schema
    assert (decision(answer) is not None) == isinstance(arguments, dict)
    assert not answer.text
    assert answer.first_token_s is not None


@pytest.mark.timed
def test_a_cancelled_call_knows_its_tokens_and_frees_the_engine(served: Served):
    async def run(endpoint: Endpoint) -> tuple[int, float]:
        endpoint.extra["ignore_eos"] = True
        call = endpoint.call(prompt(max_tokens=500))
        task = asyncio.create_task(call.generation())
        while call.completion_tokens < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        closed = time.perf_counter()
        while True:
            try:
                await endpoint.reset_prefix_cache()
                return call.completion_tokens, time.perf_counter() - closed
            except EngineError:
                assert time.perf_counter() - closed < 2

    tries = [talking(served, run) for _ in range(TRIES)]
    assert all(3 <= tokens < 500 for tokens, _ in tries)
    assert min(seconds for _, seconds in tries) < 0.5


def test_the_client_knows_health_version_and_names(served: Served):
    assert talking(served, lambda endpoint: endpoint.healthy())
    assert talking(served, lambda endpoint: endpoint.version())
    assert talking(served, lambda endpoint: endpoint.models()) == [served.model]
