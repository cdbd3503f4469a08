"""Who may import whom: data walks one way, and the heavy libraries stay where they are needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "leapmodel"


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def imported(module: str) -> frozenset[str]:
    """Return what a module imports anywhere in it: at the top, in functions, and for types."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            whole = {f"{node.module}.{name.name}" for name in node.names}
            found |= {name if name in MODULES else str(node.module) for name in whole}
    return frozenset(found)


def ours(module: str) -> set[str]:
    return {name for name in imported(module) if name in MODULES} - {module}


def reached(module: str) -> set[str]:
    """Return all of ours that a module needs, whatever stands between."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        new = ours(waiting.pop()) - found
        found |= new
        waiting += new
    return found


def room(*names: str) -> list[str]:
    return [one for one in MODULES for name in names if f"{one}.".startswith(f"leapmodel.{name}.")]


@pytest.mark.parametrize("module", MODULES)
def test_no_module_needs_itself(module: str):
    assert module not in reached(module)


@pytest.mark.parametrize(
    ("modules", "forbidden"),
    [
        (room("equations", "replay", "waiting", "bootstrap", "segments"), {"pandas", "pyarrow"}),
        (room("actions"), {"numpy", "pandas"}),
        (room("benchmarks"), {"torch", "transformers", "aiohttp", "vllm", "peft"}),
        ([m for m in MODULES if m not in room("cli", "report", "paper", "plots")], {"rich"}),
    ],
)
def test_a_room_is_furnished_with_what_it_may_have(modules: list[str], forbidden: set[str]):
    assert modules
    for module in modules:
        for needed in {module, *reached(module)}:
            roots = {name.split(".")[0] for name in imported(needed)}
            assert not roots & forbidden, f"{module} by way of {needed}"


@pytest.mark.parametrize(
    ("modules", "forbidden"),
    [
        (room("execution"), room("predictor", "choice", "validation", "paper", "cli", "report")),
        (room("paper"), room("execution", "cli")),
        (room("importers", "benchmarks", "drafts"), room("execution", "predictor", "cli")),
        ([m for m in MODULES if m not in room("cli", "__main__")], room("cli")),
    ],
)
def test_data_walks_one_way(modules: list[str], forbidden: list[str]):
    assert modules
    assert forbidden
    for module in modules:
        for needed in {module, *reached(module)}:
            assert needed not in forbidden, f"{module} reaches {needed}"


def test_importing_the_package_loads_nothing_heavy():
    heavy = ("torch", "vllm", "transformers", "peft", "matplotlib", "scipy", "pandas")
    look = f"import leapmodel, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
