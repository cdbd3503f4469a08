"""The fake server keeps the contract that vLLM does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leapmodel.errors import EngineError
from leapmodel.execution.fake.server import Answer, FakeRequest, FakeServer
from leapmodel.execution.talking.endpoint import Endpoint
from tests.execution.contract import *  # noqa: F403
from tests.execution.contract import Served, prompt, talking


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


def test_replaced_weights_are_told_to_the_answers_and_share_no_cache(tmp_path: Path):
    def say(request: FakeRequest) -> str:
        return Path(request.weights).name if request.weights else "first"

    with FakeServer(say, model="model") as server:
        served = Served(server.url, server.model, server.max_model_len, tmp_path)

        async def run(endpoint: Endpoint) -> list[tuple[str, int | None]]:
            found = []
            for path in (None, tmp_path, None):
                if path is not None:
                    await endpoint.load_weights(str(path))
                answer = await endpoint.generate(prompt())
                found.append((answer.text, answer.cached_tokens))
            with pytest.raises(EngineError, match=r"answered 500.*/nowhere"):
                await endpoint.load_weights("/nowhere")
            return found

        (first, _), (second, cached), (third, again) = talking(served, run)
    assert (first, second, third) == ("first", tmp_path.name, tmp_path.name)
    assert cached == 0
    assert again is not None
    assert again > 50
