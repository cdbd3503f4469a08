"""The fake server keeps its times and does what it is told; what it says is in test_contract."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import aiohttp
import pytest

from leapmodel.execution.fake.server import Answer, FakeServer, Fault

CHAT = "/v1/chat/completions"


def body(text: str = "hi", **more: Any) -> dict[str, Any]:
    return {
        "messages": [{"role": "user", "content": text}],
        "stream": True,
        "max_tokens": 50,
        **more,
    }


async def read(response: aiohttp.ClientResponse) -> list[Any]:
    """The events of a stream."""
    events = []
    async for line in response.content:
        text = line.decode().strip()
        if text.startswith("data: ") and text != "data: [DONE]":
            events.append(json.loads(text[6:]))
    return events


def ask(server: FakeServer, *bodies: dict[str, Any]) -> list[tuple[int, list[Any], float]]:
    """Ask all at once: each one's status, events and seconds."""

    async def one(session: aiohttp.ClientSession, b: dict[str, Any]) -> Any:
        start = time.perf_counter()
        async with session.post(server.url + CHAT, json=b) as response:
            events = await read(response) if response.status == 200 else [await response.json()]
            return response.status, events, time.perf_counter() - start

    async def run() -> Any:
        async with aiohttp.ClientSession() as session:
            await one(session, bodies[0])  # the connection and first-use costs
            return await asyncio.gather(*(one(session, b) for b in bodies))

    return asyncio.run(run())


def text(events: list[Any]) -> str:
    return "".join(e["choices"][0]["delta"]["content"] for e in events if e["choices"])


@pytest.mark.timed
def test_times_are_kept_to_a_few_milliseconds():
    with FakeServer(Answer("go", tokens=10), first_token_s=0.03, token_s=0.005) as server:
        seconds = [ask(server, body())[0][2] for _ in range(5)]
    assert 0.075 <= min(seconds) < 0.075 + 0.02  # the best of five: this machine may be busy


@pytest.mark.timed
def test_requests_run_at_once_unless_limited():
    with FakeServer(first_token_s=0.1) as server:
        assert max(s for _, _, s in ask(server, *[body()] * 4)) < 0.4
    with FakeServer(first_token_s=0.1, max_running=1) as server:
        assert max(s for _, _, s in ask(server, *[body()] * 4)) >= 0.4


@pytest.mark.timed
def test_contention_lengthens_every_token():
    with FakeServer(Answer("a", tokens=5), token_s=0.02, contention=1.0) as server:
        alone = ask(server, body())[0][2]
        together = max(s for _, _, s in ask(server, *[body()] * 3))
    assert together > 2 * alone


@pytest.mark.timed
def test_answers_by_message_by_function_and_with_own_times():
    with FakeServer({"a": "one", "b": Answer("two", first_token_s=0.2)}) as server:
        (_, one, fast), (_, two, slow) = ask(server, body("a"), body("b"))
        assert (text(one), text(two)) == ("one", "two")
        assert slow >= 0.2 > fast
        status, [error], _ = ask(server, body("c"))[0]
        assert status == 400
        assert "no answer to 'c'" in error["error"]["message"]
    with FakeServer(lambda request: request.last.upper()) as server:
        assert text(ask(server, body("loud"))[0][1]) == "LOUD"


def test_a_function_that_fails_is_an_internal_error():
    with FakeServer(lambda request: 1 / 0) as server:
        status, [error], _ = ask(server, body())[0]
    assert status == 500
    assert error["error"]["type"] == "InternalServerError"


def test_prefix_cache_counts_blocks_until_it_is_reset():
    long = " ".join(["word"] * 100)
    options = {"stream_options": {"include_usage": True}}

    def cached(server: FakeServer, prompt: str) -> int:
        ask(server, body(prompt, **options))
        return server.requests[-2].cached_tokens  # the first of the two that `ask` sends

    with FakeServer() as server:
        assert cached(server, long) == 0
        assert cached(server, long + " more") == 96
        assert cached(server, "other " + long) == 0

        async def reset() -> Any:
            async with (
                aiohttp.ClientSession() as session,
                session.post(server.url + "/reset_prefix_cache") as response,
            ):
                return await response.json()

        assert asyncio.run(reset()) == {"success": True}
        assert server.resets == [True]
        assert cached(server, long) == 0


@pytest.mark.parametrize("kind", ["drop", "reset"])
def test_a_connection_can_die_mid_stream(kind: Any):
    with FakeServer("one two three") as server:
        fault = server.fail(Fault(kind, at_token=2, skip=1, times=1))
        with pytest.raises((aiohttp.ClientPayloadError, aiohttp.ClientConnectionError)):
            ask(server, body())
        assert fault.struck == 1
        assert server.requests[-1].sent_tokens == 2
        assert server.requests[-1].state == "failed"
        assert ask(server, body())[0][0] == 200  # once only


def test_a_stall_lasts_until_the_client_goes_which_counts_as_an_abort():
    async def run(server: FakeServer) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.post(server.url + CHAT, json=body()) as response,
        ):
            await response.content.readline()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(read(response), 0.1)

    with FakeServer("one two three", faults=[Fault("stall", at_token=1)]) as server:
        asyncio.run(run(server))
        assert server.wait_for(lambda s: s.aborted == 1)
        assert server.running == 0


@pytest.mark.parametrize("status", [404, 429, 500, 503])
def test_statuses(status: int):
    with FakeServer(faults=[Fault("status", status=status, times=None)]) as server:
        assert ask(server, body())[0][0] == status


@pytest.mark.parametrize("kind", ["malformed-json", "not-sse", "empty-choices", "error-event"])
def test_streams_that_are_wrong(kind: Any):
    async def raw(server: FakeServer) -> bytes:
        async with (
            aiohttp.ClientSession() as session,
            session.post(server.url + CHAT, json=body()) as response,
        ):
            return await response.read()

    with FakeServer("one two", faults=[Fault(kind, at_token=1)]) as server:
        answer = asyncio.run(raw(server))
    assert answer.count(b"data: ") >= 3 - (kind == "not-sse")
    assert b"two" not in answer
    assert server.requests[0].state == "failed"


def test_stopping_resets_what_is_open_and_frees_the_port():
    async def run(server: FakeServer) -> None:
        async with aiohttp.ClientSession() as session:
            async with session.post(server.url + CHAT, json=body()) as response:
                await response.content.readline()
                await asyncio.to_thread(server.kill)
                with pytest.raises((aiohttp.ClientPayloadError, aiohttp.ClientConnectionError)):
                    await read(response)
            with pytest.raises(aiohttp.ClientConnectionError):
                await session.get(server.url + "/health")

    server = FakeServer("one two three", faults=[Fault("stall", at_token=2)]).start()
    asyncio.run(run(server))
    with FakeServer(port=server.port) as again:
        assert ask(again, body())[0][0] == 200


def test_an_api_key_is_asked_for():
    with FakeServer(api_key="secret") as server:
        status, answer, _ = ask(server, body())[0]
    assert (status, answer) == (401, [{"error": "Unauthorized"}])
