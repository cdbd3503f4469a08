"""What long work says of itself where there is no terminal."""

from __future__ import annotations

import pytest
from rich.progress import TextColumn

from leapmodel.cli import progress as shown


def test_a_log_gets_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    clock = [1000.0]
    monkeypatch.setattr(shown.time, "monotonic", lambda: clock[0])
    with shown.progress(TextColumn("{task.description}")) as bar:
        task = bar.add_task("sequential", total=63, said="")
        for step in range(1, 41):
            clock[0] += 2
            bar.update(task, completed=step, said=f"{4 * step} steps")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "leapmodel: sequential, 15 of 63, 60 steps, 0:00:30",
        "leapmodel: sequential, 30 of 63, 120 steps, 0:01:00",
    ]


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]):
    with shown.progress(TextColumn("{task.description}")) as bar:
        task = bar.add_task("reading")
        bar.update(task, advance=1)
    assert capsys.readouterr() == ("", "")
