"""What is measured with a pair of servers is whole, however often it broke off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leapmodel.errors import EngineError
from leapmodel.execution.measuring import server_pair
from leapmodel.execution.measuring.beginning import Places
from leapmodel.execution.measuring.server_pair import Pair, Run, measure_pair

PAIR = Pair("tiny", "tiny-2m", (Run("trained", 3), Run("trained", 1), Run("target-direct", 3)))
RECORDS = ["sequential", "trained-k3", "trained-k1", "target-direct-k3"]
WHOLE = {
    "trace.parquet",
    *(f"{name}.rounds.parquet" for name in RECORDS),
    *(f"{draft}.{kind}" for draft in ("trained", "target-direct") for kind in
      ("predictions.parquet", "probe.json")),
}  # fmt: skip
COMMANDS = 4 + 2 * 2 + 4  # the arms, what predicts them, the audits


class Scripted:
    """Commands that do nothing but leave the file that is expected, and fail when told to."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.ran: list[tuple[str, ...]] = []
        self.fail_at = fail_at

    def run(self, *arguments: str, unless: Path | None = None, **_: Any) -> None:
        if unless is not None and unless.exists():
            return
        self.ran.append(arguments)
        if len(self.ran) == self.fail_at:
            raise EngineError("stopped")
        if "-o" in arguments and arguments[0] != "run":
            Path(arguments[arguments.index("-o") + 1]).write_text("found")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How often servers were started."""
    started: list[str] = []

    @contextmanager
    def serving(*_: Any) -> Iterator[Any]:
        started.append("both")
        yield SimpleNamespace(target_url="t", target_model="t", draft_url="d", draft_model="d")

    monkeypatch.setattr(server_pair, "serving", serving)
    monkeypatch.setattr(server_pair, "servers_for", lambda *_, **__: None)
    monkeypatch.setattr(server_pair, "keep", lambda source, kept: kept.write_text("kept"))
    return started


def measure(folder: Path, commands: Scripted) -> None:
    places, models = Places(folder, folder / "work"), (Path("t"), Path("d"))
    measure_pair(places, PAIR, models, commands, [], folder / "train", compiled=False)  # type: ignore[arg-type]


def audited(commands: Scripted) -> list[str]:
    return [Path(said[1]).name.split(".")[0] for said in commands.ran if said[0] == "audit"]


@pytest.mark.parametrize("fail_at", range(1, COMMANDS + 1))
def test_what_broke_off_is_made_whole_and_audited(tmp_path: Path, served: list[str], fail_at: int):
    with pytest.raises(EngineError, match="stopped"):
        measure(tmp_path, Scripted(fail_at))
    again = Scripted()
    measure(tmp_path, again)
    assert {file.name for file in (tmp_path / "tiny").iterdir()} == WHOLE
    assert audited(again) == RECORDS


def test_what_is_whole_is_not_measured_again(tmp_path: Path, served: list[str]):
    first, again = Scripted(), Scripted()
    measure(tmp_path, first)
    assert len(first.ran) == COMMANDS
    measure(tmp_path, again)
    assert served == ["both"]
    assert audited(again) == RECORDS
    assert len(again.ran) == len(RECORDS)


def test_what_predicts_a_run_is_there_before_it(tmp_path: Path, served: list[str]):
    commands = Scripted()
    measure(tmp_path, commands)
    kinds = [said[0] for said in commands.ran if said[0] != "audit"]
    known = ["agreement", "probe"]
    assert kinds == ["run", *known, "run", "run", *known, "run"]


def test_the_arms_of_a_run_take_turns(tmp_path: Path, served: list[str]):
    commands = Scripted()
    measure(tmp_path, commands)
    alone, *runs = [said for said in commands.ran if said[0] == "run"]
    assert "--arm" in alone
    assert len(runs) == 3
    assert all("--turn" in said and "--arm" not in said for said in runs)
