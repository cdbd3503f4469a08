"""Commands in docs/ say what the command line takes: each is parsed, none is run."""

from __future__ import annotations

import re
import shlex
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


@pytest.mark.parametrize(("source", "line"), COMMANDS)
def test_the_command_line_knows_the_command(source: str, line: str):
    name, *arguments = shlex.split(line, comments=True)[1:]
    command = main.get_command(click.Context(main), name)
    assert command is not None, f"{source}: {line}"
    command.make_context(name, arguments)  # raises what a person would see


def test_there_are_commands_to_check():
    assert len(COMMANDS) > 5
