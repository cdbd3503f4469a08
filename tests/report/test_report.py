"""The page: whole, safe whatever a log holds, and the same numbers as the choice it shows."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from leapmodel.choice import choose
from leapmodel.cli import main
from leapmodel.compared_draft import draft_from_run
from leapmodel.draft import stated_draft
from leapmodel.report import render_report, write_report
from leapmodel.trace import Trace, write_trace
from tests.conftest import disturbed, random_trace

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)> \"'&$\\frac{ \\d \\g<0> --> \x1b[31m"
)


class Page(HTMLParser):
    """Collect tags, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


def hostile_trace(rng: np.random.Generator) -> Trace:
    trace = random_trace(rng, 20)
    frame = trace.frame.assign(
        task=[f"{HOSTILE} {t}" for t in trace.frame["task"]],
        action=[a.replace("search", f"search{HOSTILE}") for a in trace.actions],
    )
    about = {"origin": HOSTILE, "source": [HOSTILE], "warnings": [HOSTILE], "target_model": HOSTILE}
    return Trace.from_frame(frame, about)


def hostile_page(rng: np.random.Generator) -> str:
    trace = hostile_trace(rng)
    drafts = [
        draft_from_run(trace, disturbed(trace, rng, 0.2), name=HOSTILE),
        stated_draft(0.5, cost=0.1, name="_hidden $x$"),
    ]
    choice = choose(trace, drafts, [1, 2], n_resamples=200)
    return render_report(trace, choice, name=HOSTILE, command=HOSTILE)


def test_nothing_from_a_log_becomes_markup(rng: np.random.Generator):
    page = Page(hostile_page(rng))
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in page.text  # shown as text


def test_the_page_fetches_nothing(rng: np.random.Generator):
    html = hostile_page(rng)
    page = Page(html)
    assert not set(page.tags) & {"link", "iframe", "object", "embed", "script", "form"}
    targets = [v for n, v in page.attributes if n in {"src", "href", "xlink:href", "action"}]
    assert all(value is not None and value.startswith("#") for value in targets)
    assert not re.search(r"url\((?!#)", html)
    assert "@import" not in html


def test_ids_are_unique_and_references_resolve(rng: np.random.Generator):
    page = Page(hostile_page(rng))
    ids = [value for name, value in page.attributes if name == "id"]
    duplicated = {value for value in ids if ids.count(value) > 1}
    assert not duplicated
    for name, value in page.attributes:
        if name in {"href", "xlink:href"}:
            assert value.removeprefix("#") in ids
        if name == "aria-labelledby":
            assert value in ids


def test_the_numbers_are_those_of_the_choice(workload: Trace):
    choice = choose(workload, [stated_draft(0.8, cost=0.1, name="tiny")], [1, 2, 3])
    text = Page(render_report(workload, choice, name="mine")).text
    assert choice.verdict.sentence in text
    for value in choice.drafts[0].prediction.speedup:
        assert f"{value:.2f}" in text
    for words in (
        "What if",
        "It depends on",
        "the acceptance, as stated",
        "Longest steps",
        "seed 0",
    ):
        assert words in text


def test_the_verdict_comes_first(workload: Trace):
    choice = choose(workload, [stated_draft(0.8, cost=0.1)], [1])
    text = Page(render_report(workload, choice)).text
    assert text.index(choice.verdict.title.capitalize()) < text.index("What is predicted")


@pytest.mark.parametrize("n_tasks", [1, 5])
def test_too_few_tasks_still_give_a_page(rng: np.random.Generator, n_tasks: int):
    trace = random_trace(rng, n_tasks)
    choice = choose(trace, [stated_draft(0.8, cost=0.1)], [1, 2])
    assert "Cannot tell" in render_report(trace, choice)


def test_writing_is_all_or_nothing(workload: Trace, tmp_path: Path, monkeypatch):
    choice = choose(workload, [stated_draft(0.8, cost=0.1)], [1])
    target = tmp_path / "r.html"
    target.write_text("before")
    monkeypatch.setattr("leapmodel.report.page.inline_svg", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(workload, choice, target)
    assert target.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_the_command_line_with_and_without_drafts(workload: Trace, tmp_path: Path):
    trace, page = tmp_path / "t.parquet", tmp_path / "r.html"
    write_trace(workload, trace)
    for drafts in ([], ["--draft", "tiny=0.8@0.1"]):
        question = ["report", str(trace), *drafts, "-o", str(page), "--resamples", "200"]
        result = CliRunner().invoke(main, question)
        assert result.exit_code == 0, result.output
        assert page.read_text().startswith("<!doctype html>")
    wrong = CliRunner().invoke(main, ["report", str(trace), "-o", str(tmp_path / "r.pdf")])
    assert wrong.exit_code == 2
    assert "expected a name ending in .html" in wrong.stderr
