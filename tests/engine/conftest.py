"""Real vLLM servers for the tests of this folder, started once: SmolLM2 and a tiny draft.

They compute in float32, where greedy answers do not depend on what else is in the batch.
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
from dataclasses import replace
from pathlib import Path

import pytest

from leapmodel.execution.serving.config import ServingConfig
from leapmodel.execution.serving.presets import preset
from leapmodel.execution.serving.servers import Servers, serving
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
    return Path(named) if named else tmp_path_factory.mktemp("cache")


def weights(python: str, *how: str) -> str:
    """What ``weights.py`` says last when it is run."""
    command = [python, "-m", "tests.engine.weights", *how]
    done = subprocess.run(command, cwd=HERE.parents[1], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, f"{' '.join(command)} failed: see above"
    return (done.stdout.splitlines() or [""])[-1]


def made(python: str, folder: Path, *how: str) -> Path:
    """A folder that ``weights.py`` made, now or in an earlier run."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        begun = folder.with_name(f".{folder.name}.{os.getpid()}")
        weights(python, how[0], str(begun), *how[1:])
        try:
            begun.rename(folder)
        except OSError:  # another run was first
            shutil.rmtree(begun)
    return folder


@pytest.fixture(scope="session")
def smollm2(engine_python: str, cache: Path) -> Path:
    return Path(weights(engine_python, "smollm2", str(cache)))


@pytest.fixture(scope="session")
def tiny(engine_python: str, cache: Path) -> Path:
    """A model of a draft's architecture, with random weights."""
    return made(engine_python, cache / "test-engine" / "tiny", "tiny")


@pytest.fixture(scope="session")
def adapters(engine_python: str, cache: Path, smollm2: Path, tiny: Path) -> dict[str, Path]:
    """An adapter for each role's model."""
    folder = cache / "test-engine"
    return {
        "target": made(engine_python, folder / "smollm2-adapter-r64", "adapter", str(smollm2)),
        "draft": made(engine_python, folder / "tiny-adapter-r64", "adapter", str(tiny)),
    }


@pytest.fixture(scope="session")
def config(engine_python: str, smollm2: Path, tiny: Path) -> ServingConfig:
    both = {
        "python": engine_python,
        "dtype": "float32",
        "max_model_len": CONTEXT,
        "max_lora_rank": 64,
        "tool_call_parser": "hermes",
    }
    return preset("cpu").replacing(
        target={**both, "model": str(smollm2), "name": "target"},
        draft={**both, "model": str(tiny), "name": "draft"},
    )


@pytest.fixture(scope="session")
def servers(config: ServingConfig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    logs = str(tmp_path_factory.mktemp("logs"))
    with serving(replace(config, logs=logs), print) as running:
        yield running


@pytest.fixture(params=["target", "draft"])
def served(request: pytest.FixtureRequest, servers: Servers, adapters: dict[str, Path]) -> Served:
    server = servers.target if request.param == "target" else servers.draft
    assert server is not None
    return Served(server.url, server.config.served_name, CONTEXT, adapters[request.param])
