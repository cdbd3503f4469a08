"""What a client says of servers that it can't talk to; what it sends is in the contract."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from leapmodel.errors import EngineError, UsageError
from leapmodel.execution.endpoint import Endpoint
from leapmodel.execution.fake.server import FakeServer

KEY = "LEAPMODEL_API_KEY"


def models_of(endpoint: Endpoint) -> list[str]:
    async def ask() -> list[str]:
        async with endpoint:
            return await endpoint.models()

    return asyncio.run(ask())


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
