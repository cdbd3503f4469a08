"""What a client says of servers that it can't talk to; what it sends is in the contract."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from leapmodel.errors import EngineError, UsageError
from leapmodel.execution.fake.server import FakeServer
from leapmodel.execution.talking.endpoint import Endpoint

KEY = "LEAPMODEL_API_KEY"


def models_of(endpoint: Endpoint) -> list[str]:
    async def ask() -> list[str]:
        async with endpoint:
            return await endpoint.models()

    return asyncio.run(ask())


class Answering(FakeServer):
    """A server that answers what it is told to when it is asked for its models."""

    def __init__(self, body: bytes, status: int = 200, **headers: str) -> None:
        super().__init__("x")
        self._told = body, status, {name.replace("_", "-"): said for name, said in headers.items()}

    async def _models(self, request: web.Request) -> web.Response:
        body, status, headers = self._told
        return web.Response(body=body, status=status, headers=headers)


class Behind(FakeServer):
    """A server behind a proxy that answers for it, in an encoding it does not name."""

    async def _models(self, request: web.Request) -> web.Response:
        page = "<p>St\u00f6rung</p>".encode("latin-1")
        return web.Response(status=502, body=page, headers={"Content-Type": "text/html"})


def test_an_error_page_in_any_encoding_is_shown():
    with Behind("x") as server, pytest.raises(EngineError, match=r"answered 502: '<p>St.+rung</p>"):
        models_of(Endpoint(server.url, "fake"))


def test_a_host_that_does_not_answer_has_not_stalled(monkeypatch: pytest.MonkeyPatch):
    def never(*_: Any, **__: Any) -> Any:
        raise aiohttp.ConnectionTimeoutError("Connection timeout to host")

    monkeypatch.setattr(aiohttp.ClientSession, "request", never)
    with pytest.raises(EngineError, match=r"the connection failed \(no answer for 10 s\)"):
        models_of(Endpoint("http://10.255.255.1:8000", "fake"))


def test_a_key_may_end_a_line_and_no_other_control_character_is_sent(
    monkeypatch: pytest.MonkeyPatch,
):
    with FakeServer("x", api_key="sesame") as server:
        monkeypatch.setenv(KEY, "sesame\r\n")
        assert models_of(Endpoint(server.url, "fake")) == ["fake"]
        monkeypatch.setenv(KEY, "ses\x01ame")
        with pytest.raises(UsageError, match=rf"{KEY}: expected a key") as caught:
            Endpoint(server.url, "fake")
    assert "ame" not in str(caught.value)


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ({"id": None}, r"\{'id': None\}"),
        ({}, r"\{\}"),
        ({"id": ""}, r"\{'id': ''\}"),
        ({"id": 7}, r"\{'id': 7\}"),
        ({"id": "\ud83d"}, r"\{'id': '.ud83d'\}"),
        ("fake", "'fake'"),
    ],
)
def test_a_model_has_a_name(listed: Any, found: str):
    body = json.dumps({"data": [{"id": "fake"}, listed]}).encode()
    with (
        Answering(body) as server,
        pytest.raises(EngineError, match=f"expected a model with a name, found {found}$"),
    ):
        models_of(Endpoint(server.url, "fake"))


@pytest.mark.parametrize("depth", [150, 100_000])
def test_models_that_are_nested_too_deeply(depth: int):
    body = b'{"data":' + b"[" * depth + b"]" * depth + b"}"
    with Answering(body) as server, pytest.raises(EngineError, match="expected JSON, found "):
        models_of(Endpoint(server.url, "fake"))


@pytest.mark.parametrize("charset", ["base64", "rot13", "idna", "undefined", "utf-16"])
def test_json_is_utf_8_whatever_a_header_says(charset: str):
    told = {"Content_Type": f"application/json; charset={charset}"}
    with Answering(b'{"data": [{"id": "fake"}]}', **told) as server:
        assert models_of(Endpoint(server.url, "fake")) == ["fake"]
    with Answering(b"gone", 502, **told) as server, pytest.raises(EngineError, match="'gone'"):
        models_of(Endpoint(server.url, "fake"))


def test_half_a_character_in_a_version_is_replaced():
    class Versioned(FakeServer):
        async def _version(self, request: web.Request) -> web.Response:
            return web.json_response({"version": "1\ud83d"})

    async def ask(url: str) -> str | None:
        async with Endpoint(url, "fake") as endpoint:
            return await endpoint.version()

    with Versioned("x") as server:
        assert asyncio.run(ask(server.url)) == "1\N{REPLACEMENT CHARACTER}"


def test_redirects_without_an_end_are_said_in_words():
    with (
        Answering(b"", 302, Location="/v1/models") as server,
        pytest.raises(EngineError, match=r"the connection failed \(redirected too often\)$"),
    ):
        models_of(Endpoint(server.url, "fake"))


@pytest.mark.parametrize(
    "place",
    ["http://a..b/", "http://[::1", "http://a:99999/", "ftp://a/", "http://u:pw@127.0.0.1/"],
)
def test_a_redirect_to_no_address_is_one_line(monkeypatch: pytest.MonkeyPatch, place: str):
    monkeypatch.setenv(KEY, "sesame")
    with (
        Answering(b"", 302, Location=place) as server,
        pytest.raises(EngineError, match=r"^model at http://127[^\n]*$"),
    ):
        models_of(Endpoint(server.url, "fake"))


OK = b"HTTP/1.1 200 OK\r\n"
RAW = {
    "no HTTP": b"hello\r\n\r\n",
    "a header that is none": OK + b"\x00: x\r\n\r\n",
    "a chunk that is none": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "gzip that is none": OK + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    "less than it says": OK + b"Content-Length: 9\r\n\r\n{}",
    "a header too long": OK + b"X: " + b"x" * 20_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("what", RAW)
def test_what_is_no_http_is_one_line(what: str):
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(RAW[what])
        writer.close()

    async def ask() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with Endpoint(f"http://127.0.0.1:{port}", "fake") as endpoint:
                await endpoint.models()

    with pytest.raises(EngineError, match=r"the connection failed \([^\n]+\)$"):
        asyncio.run(ask())
