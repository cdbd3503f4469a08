"""Asking models about the contexts of somebody's own agent, of which no benchmark is known."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from leapmodel.cli import main
from leapmodel.errors import DataError, EngineError
from leapmodel.execution.fake.answers import Answer, FakeRequest, Fault
from leapmodel.execution.fake.server import FakeServer
from leapmodel.execution.own_contexts import own_contexts
from leapmodel.execution.talking.tool_calls import ToolCalls
from leapmodel.predictions import read_predictions
from leapmodel.probes import read_probe
from leapmodel.trace import Trace, read_trace, write_trace

ACTIONS = ['look({"at":"door"})', 'open({"what":"door"})', "<respond/>"]
TOOLS = {"tools": [{"type": "function", "function": {"name": "look"}}]}


def leapmodel(*arguments: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "132"}).invoke(main, [str(a) for a in arguments])


def rows(n_tasks: int = 3) -> list[dict[str, Any]]:
    """Return contexts as an import writes them; each step's messages begin with those before."""
    written = []
    for task in range(n_tasks):
        messages: list[dict[str, Any]] = [{"role": "user", "content": f"Let me in, {task}."}]
        for step, action in enumerate(ACTIONS):
            key = {"task": f"t{task}", "run": 0, "step": step}
            written.append({**key, "messages": list(messages), "action": action})
            call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": "c", "content": f"done {step}"})
    return written


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    trace, contexts = tmp_path / "trace.jsonl", tmp_path / "contexts.jsonl"
    frame = pd.DataFrame(rows())[["task", "run", "step", "action"]].assign(gen_s=1.0)
    write_trace(Trace.from_frame(frame), trace)
    contexts.write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    return trace, contexts


def answer(request: FakeRequest) -> Answer:
    """Look first, then open the wrong thing, then talk."""
    if "tools" not in request.body:
        return Answer("I would look at the door.")
    seen = sum(message["role"] == "tool" for message in request.messages)
    if seen == 2:
        return Answer("You are in.")
    call = ("look", '{"at": "door"}') if not seen else ("open", '{"what": "window"}')
    return Answer("", calls=(call,))


def test_a_draft_is_asked_what_the_log_holds(files: tuple[Path, Path], tmp_path: Path):
    trace, contexts = files
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    answers = tmp_path / "answers.jsonl"
    with FakeServer(answer) as server:
        result = leapmodel(
            "agreement", trace, "--contexts", contexts, "--draft-url", server.url,
            "--draft-extra", f"@{tmp_path / 'tools.json'}", "--draft-tokens", 50, "-o", answers,
        )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert not result.stderr
    found = read_predictions(answers).frame
    assert found["action"].tolist() == [ACTIONS[0], 'open({"what":"window"})', ACTIONS[2]] * 3
    assert (found["latency_s"] > 0).all()
    assert json.loads(found["output"][1])[0]["name"] == "open"
    asked = server.requests[2]  # the first is asked once more, before
    assert asked.messages == rows()[1]["messages"]
    assert (asked.body["max_tokens"], asked.body["tools"]) == (50, TOOLS["tools"])
    predicted = leapmodel("predict", trace, "--predictions", answers, "--json")
    assert predicted.exit_code == 0, predicted.output


def test_a_draft_that_only_talks_is_noticed(files: tuple[Path, Path]):
    with FakeServer(answer) as server:
        url = ["--draft-url", server.url]
        result = leapmodel("agreement", files[0], "--contexts", files[1], *url)
    assert result.exit_code == 0, result.output
    assert "leapmodel: note: no answer of the draft called a tool" in result.stderr


@pytest.mark.timed
def test_a_probe_of_an_agents_own_servers(files: tuple[Path, Path], tmp_path: Path):
    trace, contexts = files
    found = tmp_path / "probe.json"
    with FakeServer(answer, token_s=0.02, contention=1) as server:
        result = leapmodel(
            "probe", trace, "--contexts", contexts, "--target-url", server.url,
            "--target-extra", json.dumps(TOOLS), "--target-tokens", 9,
            "--k", 1, "--batches", 2, "-o", found,
        )  # fmt: skip
        assert {request.body["max_tokens"] for request in server.requests} >= {1, 9, 1024}
    assert result.exit_code == 0, result.output
    probed = read_probe(found)
    assert probed.calls == 9
    assert [one.requests for one in probed.token_times] == [1, 2]
    # as the server was told, less a token that may come before the second request does
    assert probed.slowdown[1] > 1.3
    chosen = leapmodel("choose", trace, "--draft", f"small=0.8@{found}", "--k", 1, "--json")
    assert chosen.exit_code == 0, chosen.output


def test_contexts_too_long_for_a_model_count_as_wrong(files: tuple[Path, Path], tmp_path: Path):
    trace, contexts = files
    answers, probed = tmp_path / "answers.jsonl", tmp_path / "probe.json"
    with FakeServer(answer, max_model_len=20) as server:
        url = ["--draft-url", server.url, "--draft-tokens", 4]
        result = leapmodel("agreement", trace, "--contexts", contexts, *url, "-o", answers)
        both = [*url, "--target-url", server.url, "--target-tokens", 4, "--k", 1]
        timed = leapmodel("probe", trace, "--contexts", contexts, *both, "-o", probed)
    assert result.exit_code == 0, result.output
    refused = "3 contexts were refused: they {} (the first: task 't0', run 0, step 2: draft at "
    assert refused.format("count as wrong") in result.stderr
    assert "maximum context length" in result.stderr
    frame = read_predictions(answers).frame
    assert len(frame) == 9  # as the draft would have no answer there in the loop either
    assert frame.loc[frame["step"] == 2, "action"].isna().all()
    assert (frame["latency_s"] > 0).all()
    assert timed.exit_code == 0, timed.output
    assert refused.format("are left out") in timed.stderr
    assert read_probe(probed).calls == 6
    with FakeServer(answer, max_model_len=3) as server:
        none = leapmodel("agreement", trace, "--contexts", contexts, "--draft-url", server.url)
    assert none.exit_code == 1
    assert "every context was refused (task 't0', run 0, step 0: draft at" in none.stderr


def test_a_text_that_is_cut_decides_nothing(files: tuple[Path, Path], tmp_path: Path):
    answers = tmp_path / "answers.jsonl"
    with FakeServer(answer) as server:
        url = ["--draft-url", server.url, "--draft-tokens", 2, "-o", answers]
        result = leapmodel("agreement", files[0], "--contexts", files[1], *url)
    assert result.exit_code == 0, result.output
    assert "9 of 9 answers of the draft had reached --draft-tokens" in result.stderr
    assert "exact match 0.0%" in result.stdout
    assert read_predictions(answers).frame["action"].isna().all()


def test_answers_outlive_a_failure(files: tuple[Path, Path], tmp_path: Path):
    answers, whole = tmp_path / "answers.parquet", tmp_path / "whole.parquet"
    extra = ["--draft-extra", json.dumps(TOOLS)]
    common = ["agreement", files[0], "--contexts", files[1], *extra, "--repeats", 2]
    with FakeServer(answer) as server:
        leapmodel(*common, "--draft-url", server.url, "-o", whole)
    dying = Fault("status", status=500, skip=13, times=None)  # one opens the connection
    with FakeServer(answer, faults=[dying]) as server:
        url = ["--draft-url", server.url, "-o", answers]
        broken = leapmodel(*common, *url)
        assert (broken.exit_code, broken.stderr.count("\n")) == (1, 1)
        assert "answered 500" in broken.stderr
        kept = f"12 of 18 answers are in {answers}; --resume asks for the rest"
        assert kept in broken.stderr
        assert "answered 500" in leapmodel(*common, *url, "--resume").stderr  # nothing is lost
    assert len(read_predictions(answers).frame) == 12
    chosen = leapmodel("choose", files[0], "--draft", f"x={answers}", "--k", 1)
    assert "it broke off with 12 of 18 answers" in " ".join(chosen.output.split())
    with FakeServer(answer) as server:
        url = ["--draft-url", server.url, "-o", answers]
        resumed = leapmodel(*common, *url, "--resume")
        assert resumed.exit_code == 0, resumed.output
        assert len(server.requests) == 1 + 6
        again = leapmodel(*common, *url, "--resume")
        assert len(server.requests) == 1 + 6
        other = leapmodel(*common, *url, "--resume", "--draft-name", "another")
        fewer = leapmodel(*common[:-1], 1, *url, "--resume")
    assert again.stdout == resumed.stdout
    ours, theirs = read_predictions(answers), read_predictions(whole)
    columns = ["task", "run", "step", "draft", "repeat", "action", "output"]
    pd.testing.assert_frame_equal(
        ours.frame[columns].sort_values(columns[:5], ignore_index=True),
        theirs.frame[columns].sort_values(columns[:5], ignore_index=True),
    )
    assert ours.metadata == theirs.metadata
    assert (other.exit_code, fewer.exit_code) == (2, 2)
    assert "was made with draft name 'fake', now it is 'another'" in other.stderr
    assert "has an answer to task t0 run 0 step 0 repeat 1, which is not asked" in fewer.stderr


def test_answers_outlive_an_interruption(files: tuple[Path, Path], tmp_path: Path):
    answers = tmp_path / "answers.jsonl"
    with FakeServer(answer, first_token_s=0.1) as server:
        command = ["agreement", files[0], "--contexts", files[1], "--draft-url", server.url]
        running = subprocess.Popen(
            [sys.executable, "-m", "leapmodel", *command, "-o", answers],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert server.wait_for(lambda server: server.finished > 3, timeout_s=30)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=20)
    assert running.returncode == 130
    found = len(read_predictions(answers).frame)
    assert 1 <= found < 9
    kept = f"{found} of 9 answers are in {answers}; --resume asks for the rest"
    assert said == f"leapmodel: stopped; {kept}\n"


def test_to_go_on_takes_a_file(files: tuple[Path, Path]):
    url = ["--draft-url", "http://127.0.0.1:1", "--resume"]
    result = leapmodel("agreement", files[0], "--contexts", files[1], *url)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "--resume: expected -o FILE, which it goes on with" in result.stderr


def test_calls_that_are_no_json_are_counted(files: tuple[Path, Path]):
    def garbled(request: FakeRequest) -> Answer:
        return Answer("", calls=(("look", '{"at": '),))

    with FakeServer(garbled) as server:
        url = ["--draft-url", server.url]
        result = leapmodel("agreement", files[0], "--contexts", files[1], *url)
    assert result.exit_code == 0, result.output
    assert "9 of 9 answers of the draft called tools with arguments that are no" in result.stderr
    assert "no answer" not in result.stderr


def test_a_probe_says_too_that_only_talk_was_timed(files: tuple[Path, Path]):
    tools = ["--draft-extra", json.dumps(TOOLS)]
    with FakeServer(answer) as server:
        common = ["--target-url", server.url, "--k", 1, "--batches", 2]
        result = leapmodel("probe", files[0], "--contexts", files[1], *common, *tools)
    assert result.exit_code == 0, result.output
    assert "no answer of the target called a tool" in result.stderr
    assert "no answer of the draft" not in result.stderr


def test_steps_without_a_context_are_counted(files: tuple[Path, Path]):
    lines = [json.dumps(row) + "\n" for row in rows()]
    files[1].write_text("".join([lines[0], *lines[3:]]), encoding="utf-8")
    with FakeServer(answer) as server:
        url = ["--draft-url", server.url, "--draft-extra", json.dumps(TOOLS)]
        result = leapmodel("agreement", files[0], "--contexts", files[1], *url)
        part = leapmodel("agreement", files[0], "--contexts", files[1], *url, "--limit", 1)
    assert result.exit_code == 0, result.output
    lacking = "steps have no context and are not asked about (the first: task 't0', run 0, step 1)"
    assert f"2 of 9 {lacking}" in result.stderr
    assert f"2 of 3 {lacking}" in part.stderr


@pytest.mark.parametrize("command", ["agreement", "probe"])
def test_what_a_request_is_made_of_is_not_written_over(
    files: tuple[Path, Path], tmp_path: Path, command: str
):
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(TOOLS))
    address = ["--draft-url", "http://127.0.0.1:1", "--draft-extra", f"@{tools}", "-o", tools]
    if command == "probe":
        address += ["--target-url", "http://127.0.0.1:1"]
    result = leapmodel(command, files[0], "--contexts", files[1], *address)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "is what is read, and would be lost" in result.stderr
    assert json.loads(tools.read_text()) == TOOLS


def test_a_probe_of_another_draft_is_noticed(files: tuple[Path, Path], tmp_path: Path):
    answers, probed = tmp_path / "answers.jsonl", tmp_path / "probe.json"
    with FakeServer(answer) as server:
        url = ["--draft-url", server.url, "--draft-extra", json.dumps(TOOLS)]
        common = ["--contexts", files[1], *url]
        leapmodel("agreement", files[0], *common, "--draft-name", "small", "-o", answers)
        target = ["--target-url", server.url, "--k", 1, "--batches", 2]
        leapmodel("probe", files[0], *common, *target, "--draft-name", "big", "-o", probed)
    said = f"{probed} timed the draft 'big', the predictions are of 'small'"
    for asked in (
        ["choose", files[0], "--draft", f"x={answers}@{probed}", "--k", 1],
        ["predict", files[0], "--predictions", answers, "--probe", probed, "--k", 1],
    ):
        result = leapmodel(*asked)
        assert result.exit_code == 0, result.output
        assert said in result.stderr.replace("\n", " ")


@pytest.mark.parametrize("command", ["agreement", "probe"])
def test_a_log_without_its_contexts_is_told_of_them(files: tuple[Path, Path], command: str):
    address = ["--draft-url", "http://127.0.0.1:1"]
    if command == "probe":
        address += ["--target-url", "http://127.0.0.1:1"]
    result = leapmodel(command, files[0], *address)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "states no benchmark; if it is the log of your own agent, name its con" in result.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"messages": []}, "line 1, column messages: expected a list of chat messages, found []"),
        ({"messages": ["hi"]}, "column messages: expected chat messages, each with a role"),
        ({"step": "0"}, "column step: expected a whole number, found '0'"),
        ({"step": 7}, "column step: expected a step of t.jsonl, found t0 0 7"),
        ({"step": 1}, "column action: expected what t.jsonl says, 'open"),
        ({"task": None}, "column task: expected a text, found None"),
        ({"action": "ls({})"}, "column action: expected what t.jsonl says, 'look"),
        ({"action": 3}, "column action: expected a text, found 3"),
    ],
)
def test_what_is_no_context_of_the_trace(
    files: tuple[Path, Path], change: dict[str, Any], said: str
):
    trace, contexts = files
    first, *others = rows()
    lines = [{**first, **change}, *others]
    contexts.write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        own_contexts(contexts, read_trace(trace), source="t.jsonl")
    assert said in str(caught.value)


def test_contexts_of_a_part_of_the_log(files: tuple[Path, Path]):
    trace, contexts = files
    whole = read_trace(trace)
    lines = [*reversed(rows()), {**rows()[0], "task": "another"}]
    contexts.write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    found = own_contexts(contexts, whole, first_tasks=2)
    keys = [(context.task.name, context.step) for context in found]
    assert keys == [(f"t{task}", step) for task in range(2) for step in range(3)]
    contexts.write_text(json.dumps({**rows()[0], "task": "another"}) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="expected contexts of the tasks of the trace, found none"):
        own_contexts(contexts, whole)
    contexts.write_text(2 * (json.dumps(rows()[0]) + "\n"), encoding="utf-8")
    with pytest.raises(DataError, match=r"line 2.*found a second context of t0 0 0"):
        own_contexts(contexts, whole)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--benchmark", "planning"], "--benchmark: expected no --contexts beside it"),
        (["--draft-extra", "@nowhere.json"], "--draft-extra: nowhere.json: expected a readable"),
        (["--draft-extra", "[]"], 'expected a JSON object, such as {"tools": […]}, found'),
    ],
)
def test_what_does_not_go_together(files: tuple[Path, Path], options: list[str], said: str):
    with FakeServer(answer) as server:
        for command in (["agreement"], ["probe", "--target-url", server.url]):
            url = ["--draft-url", server.url]
            result = leapmodel(*command, files[0], "--contexts", files[1], *url, *options)
            assert result.exit_code == 2
            assert said in result.stderr
            assert result.stderr.count("\n") == 1


def test_a_budget_without_contexts(files: tuple[Path, Path]):
    result = leapmodel(
        "agreement", files[0], "--draft-url", "http://127.0.0.1:1", "--draft-tokens", 5
    )
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "--draft-tokens: expected --contexts too" in result.stderr


def test_calls_that_all_claim_to_be_the_first():
    calls = ToolCalls("the draft")
    for name in ("ls", "cd"):
        function = {"name": name, "arguments": "{}"}
        calls.take([{"index": 0, "id": f"call-{name}", "function": function}])
    assert [call.name for call in calls.whole()] == ["ls", "cd"]


@pytest.mark.parametrize(
    "piece",
    ["ls", {}, {"function": "ls"}, {"function": {"name": 3}}, {"index": "a", "function": {}}],
)
def test_what_is_no_piece_of_a_call(piece: Any):
    with pytest.raises(EngineError, match="the draft: expected a tool call, found"):
        ToolCalls("the draft").take([piece])
