"""Benchmarks the loop can run: tasks, prompts, parsers, environments; no engine and no model.

To add one, write what :mod:`leapmodel.benchmarks.interface` asks for and list it in
:data:`BENCHMARKS`.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from leapmodel.benchmarks.interface import (
    Benchmark,
    Environment,
    Prompt,
    Role,
    Split,
    Task,
    task_named,
)
from leapmodel.benchmarks.planning import PlanningBenchmark
from leapmodel.errors import UsageError

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "Environment",
    "Prompt",
    "Role",
    "Split",
    "Task",
    "load_benchmark",
    "task_named",
]

BENCHMARKS: dict[str, Callable[..., Benchmark]] = {"planning": PlanningBenchmark}
"""The known benchmarks by name."""


def load_benchmark(name: str, /, **settings: Any) -> Benchmark:
    """Return a benchmark by its name.

    Parameters
    ----------
    name : str
        A key of :data:`BENCHMARKS`.
    **settings
        As its class takes them, such as ``seed``; what its ``settings`` returned builds it again.

    Raises
    ------
    UsageError
        If there is no such benchmark, or it knows no such setting.

    Examples
    --------
    >>> len(load_benchmark("planning").tasks("train"))
    250
    """
    if name not in BENCHMARKS:
        near = difflib.get_close_matches(name, BENCHMARKS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(BENCHMARKS)}"
        raise UsageError(f"no benchmark {name!r}; {hint}")
    try:
        return BENCHMARKS[name](**settings)
    except TypeError as error:
        known = inspect.signature(BENCHMARKS[name]).parameters
        unknown = [setting for setting in settings if setting not in known]
        wrong = f"no setting {unknown[0]!r}" if unknown else str(error)
        listed = ", ".join(known)
        raise UsageError(f"benchmark {name}: {wrong}; its settings are {listed}") from None
