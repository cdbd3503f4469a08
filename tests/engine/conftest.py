"""Real vLLM servers for the tests of this folder: a target and a draft, started once.

``make test-engine`` runs them where vLLM is installed; elsewhere they are skipped. The folder named
by LEAPMODEL_CACHE keeps the models between runs; LEAPMODEL_ENGINE_PYTHON names another interpreter
that has vLLM.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from leapmodel.execution.presets import preset
from leapmodel.execution.servers import Servers, serving
from tests.execution.contract import Served

HERE = Path(__file__).parent
PYTHON = os.environ.get("LEAPMODEL_ENGINE_PYTHON", sys.executable)
CONTEXT = 2048


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session")
def engine_python() -> str:
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
    if subprocess.run([PYTHON, "-c", look]).returncode:
        pytest.skip("needs vLLM: make test-engine")
    return PYTHON


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = os.environ.get("LEAPMODEL_CACHE")
    folder = Path(named) / "test-engine" if named else tmp_path_factory.mktemp("cache")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def made(python: str, folder: Path, *how: str) -> Path:
    """A folder that ``weights.py`` made, now or in an earlier run."""
    if not folder.is_dir():
        begun = folder.with_name(f".{folder.name}.{os.getpid()}")
        subprocess.run(
            [python, "-m", "tests.engine.weights", how[0], str(begun), *how[1:]],
            cwd=HERE.parents[1],
            check=True,
        )
        try:
            begun.rename(folder)
        except OSError:  # another run was first
            shutil.rmtree(begun)
    return folder


@pytest.fixture(scope="session")
def tiny(engine_python: str, cache: Path) -> Path:
    """A model of a draft's architecture, with random weights."""
    return made(engine_python, cache / "tiny", "tiny")


@pytest.fixture(scope="session")
def tiny_adapter(engine_python: str, cache: Path, tiny: Path) -> Path:
    return made(engine_python, cache / "tiny-adapter", "adapter", str(tiny))


@pytest.fixture(scope="session")
def servers(
    engine_python: str, tiny: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Servers]:
    logs = tmp_path_factory.mktemp("logs")
    both = {"python": engine_python, "max_model_len": CONTEXT, "kv_cache_memory_bytes": 2**28}
    config = preset("cpu").replacing(
        target={**both, "model": str(tiny), "name": "target", "max_lora_rank": 8},
        draft={**both, "model": str(tiny), "name": "draft", "max_lora_rank": 8},
    )
    from dataclasses import replace

    with serving(replace(config, logs=str(logs)), print) as running:
        yield running


@pytest.fixture(params=["target", "draft"])
def served(request: pytest.FixtureRequest, servers: Servers, tiny_adapter: Path) -> Served:
    server = servers.target if request.param == "target" else servers.draft
    assert server is not None
    return Served(server.url, server.config.served_name, CONTEXT, tiny_adapter)
