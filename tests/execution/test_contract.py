"""The fake server keeps the contract that vLLM does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leapmodel.execution.fake.server import Answer, FakeRequest, FakeServer
from tests.execution.contract import *  # noqa: F403
from tests.execution.contract import Served


def answer(request: FakeRequest) -> Answer:
    if request.last.startswith("Two digits"):
        return Answer("47")
    if request.last.startswith("A tool"):
        return Answer("<tool>b</tool>")
    return Answer("one two three four five six seven eight", token_s=0.002)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "adapter_config.json").write_text('{"r": 8}')
    with FakeServer(answer, model="model", max_model_len=2048) as server:
        yield Served(server.url, server.model, server.max_model_len, tmp_path)
