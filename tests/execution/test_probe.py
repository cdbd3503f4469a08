"""What a probe refuses to make of a server's answers; what it measures is in test_commands."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from leapmodel.benchmarks import Prompt, Task
from leapmodel.errors import EngineError
from leapmodel.execution.contexts import Context
from leapmodel.execution.fake.sending import Reply
from leapmodel.execution.fake.server import FakeServer
from leapmodel.execution.probe import probe
from leapmodel.execution.talking.endpoint import Endpoint
from leapmodel.probes import Probe

PROMPT = Prompt(({"role": "user", "content": "x"},), 8)
CONTEXTS = [Context(Task("t", "x"), 0, step, PROMPT, PROMPT, "a({})") for step in range(3)]


def probed(server: FakeServer) -> Probe:
    async def ask() -> Probe:
        async with (
            Endpoint(server.url, "fake", role="target") as target,
            Endpoint(server.url, "fake", role="draft") as draft,
        ):
            return await probe(CONTEXTS, target, draft, 1)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("counted", "said"),
    [
        (0, "target at .*: expected answers of one token or more, found 0 tokens"),
        (-5, "expected a count of tokens, found -5"),
        pytest.param(10**400, "expected a count of tokens, found 1000", id="huge"),
    ],
)
def test_no_time_per_token_is_made_of_no_tokens(
    monkeypatch: pytest.MonkeyPatch, counted: int, said: str
):
    with FakeServer("a b") as server:
        assert probed(server).token_times[0].ms_per_token > 0

        def wrong(*_: Any, **__: Any) -> dict[str, Any]:
            return {"completion_tokens": counted}

        monkeypatch.setattr(Reply, "usage", wrong)
        with pytest.raises(EngineError, match=said):
            probed(server)
