"""Commands in docs/ say what the command line takes: each is parsed, none is run. Python is run."""

from __future__ import annotations

import os
import re
import shlex
import sysconfig
from pathlib import Path

import click
import pytest

from leapmodel.cli import main

ROOT = Path(__file__).parents[1]
COMMANDS = [
    (path.name, line)
    for path in sorted((ROOT / "docs").glob("*.md"))
    for block in re.findall(r"^```\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("leapmodel ")
]

PYTHON = [
    pytest.param(block, id=path.name)
    for path in sorted((ROOT / "docs").glob("*.md"))
    for block in re.findall(r"^```python\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
]


@pytest.mark.parametrize(("source", "line"), COMMANDS)
def test_the_command_line_knows_the_command(source: str, line: str):
    name, *arguments = shlex.split(line, comments=True)[1:]
    command = main.get_command(click.Context(main), name)
    assert command is not None, f"{source}: {line}"
    command.make_context(name, arguments)  # raises what a person would see


@pytest.mark.parametrize("block", PYTHON)
def test_python_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    scripts = sysconfig.get_path("scripts")
    monkeypatch.setenv("PATH", scripts + os.pathsep + os.environ["PATH"])
    exec(compile(block, "docs", "exec"), {"__name__": "docs"})


def test_there_is_something_to_check():
    assert len(COMMANDS) > 5
    assert PYTHON
