"""Weights replaced in a running server answer as those of a server that began with them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from leapmodel.benchmarks import Prompt
from leapmodel.execution.serving.config import ServingConfig
from leapmodel.execution.serving.servers import Servers, serving
from leapmodel.execution.talking.endpoint import Endpoint

from .conftest import made

TEXTS = ("one two three", "seven eight nine ten", "two two four")


@pytest.fixture(scope="module")
def merged(engine_python: str, cache: Path, tiny: Path, adapters: dict[str, Path]) -> Path:
    """The draft with its adapter merged into it."""
    folder = cache / "test-engine" / "tiny-merged-r64"
    return made(engine_python, folder, "merged", str(tiny), str(adapters["draft"]))


@pytest.fixture(scope="module")
def pair(
    config: ServingConfig, merged: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Servers]:
    """A server of the merged weights, and one of the base, which is told to take them."""
    assert config.draft is not None
    one = replace(config.draft, max_lora_rank=None)
    both = replace(
        config,
        target=replace(one, model=str(merged), name="merged", cores="0"),
        draft=replace(one, name="draft", cores="1"),
        logs=str(tmp_path_factory.mktemp("logs")),
    )
    with serving(both, print) as running:
        yield running


def answers(endpoint: Endpoint) -> list[str]:
    async def ask() -> list[str]:
        found = []
        async with endpoint:
            for text in TEXTS:
                prompt = Prompt(({"role": "user", "content": text},), 24)
                found.append((await endpoint.generate(prompt)).text)
        return found

    return asyncio.run(ask())


def put(endpoint: Endpoint, weights: Path) -> None:
    async def load() -> None:
        async with endpoint:
            await endpoint.load_weights(str(weights))

    asyncio.run(load())


def test_replaced_weights_answer_as_a_server_that_began_with_them(
    pair: Servers, tiny: Path, merged: Path
):
    other = Endpoint(pair.target_url, pair.target_model)
    draft = Endpoint(pair.draft_url, pair.draft_model)
    wanted, first = answers(other), answers(draft)
    assert wanted != first
    for _ in range(2):  # a second time from the state that the first has left
        put(draft, merged)
        assert answers(draft) == wanted
        put(draft, tiny)
        assert answers(draft) == first
