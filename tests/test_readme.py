"""The README is true: its commands run, and what it shows of their output is what they print."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from leapmodel.cli import main
from leapmodel.trace import write_trace
from tests.conftest import REPOSITORY, disturbed, random_trace

TEXT = (REPOSITORY / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.fixture
def workplace(tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the README speaks of."""
    (tmp_path / "traces").symlink_to(REPOSITORY / "traces")
    big = random_trace(rng, 30)
    write_trace(big, tmp_path / "big.parquet")
    write_trace(disturbed(big, rng, share=0.2), tmp_path / "small.parquet")
    results = tmp_path / "results"
    results.mkdir()
    turn = [[{"ls": "{}"}], []]
    record = {
        "id": "multi_turn_base_0",
        "result": [turn],
        "latency": [[1.0, 0.5]],
        "input_token_count": [[100, 120]],
        "output_token_count": [[20, 5]],
    }
    (results / "big_model.json").write_text(json.dumps(record) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_commands_run_and_print_what_is_shown(workplace: Path, block: str):
    saved = (workplace / "big.parquet").read_bytes()
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        words = shlex.split(command)
        assert words[0] == "leapmodel"
        result = CliRunner(env={"COLUMNS": "132"}).invoke(main, words[1:])
        assert result.exit_code == 0, result.output
        printed = {line.rstrip() for line in result.output.splitlines()}
        for line in shown:
            assert line.rstrip() in printed | {"", "…"}, line
        (workplace / "big.parquet").write_bytes(saved)  # the import example writes this name


def test_the_two_commands_are_on_the_first_screen():
    first_screen = "\n".join(TEXT.split("\n")[:40])
    assert "make demo" in first_screen
    assert "make test" in first_screen


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", TEXT):
        assert (REPOSITORY / target).exists(), target
