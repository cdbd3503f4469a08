"""Whatever goes wrong with a server or a disk: one line, nothing recorded lost or doubled."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leapmodel.errors import EngineError, UsageError
from leapmodel.execution.fake.server import FakeRequest, FakeServer, Fault
from leapmodel.execution.records.journal import Journal
from leapmodel.execution.records.recording import ROUNDS_NAME, TRACE_NAME, TraceFile
from leapmodel.rounds import read_rounds
from leapmodel.trace import read_trace

from .scripted import PLANNING, measure, planner
from .test_journal import lines, stable

TASKS = 3
DEPTH = 2
STEPS = sum(len(task.gold or ()) for task in PLANNING.tasks("test")[:TASKS])


def sends(data: bytes) -> Fault:
    """A fault that puts an event into the stream after its first token."""
    return Fault("line", at_token=1, line=b"data: " + data)


def chunk(*choices: Any, **more: Any) -> Fault:
    """One that sends a chunk of a chat completion."""
    return sends(json.dumps({"choices": choices, **more}).encode())


FAULTS: dict[str, tuple[Fault, str]] = {
    "stalls before its answer": (Fault("stall"), "nothing came for 1 s: the server has stalled"),
    "stalls mid-stream": (Fault("stall", at_token=1), "nothing came for 1 s"),
    "says nothing but that it is there": (
        Fault("comments", at_token=1),
        "no event came for 1 s: the server has stalled",
    ),
    "drops the connection": (Fault("drop", at_token=1), "the connection failed"),
    "resets the connection": (Fault("reset", at_token=2), "the connection failed"),
    "reports a dead engine": (Fault("error-event", at_token=1), "the fake engine died"),
    "breaks off politely": (Fault("truncated", at_token=2), "the answer broke off before its end"),
    "gives up its requests as it ends": (Fault("abort", at_token=1), "before its end (abort)"),
    "sends half an object": (Fault("malformed-json", at_token=1), "expected JSON in the stream"),
    "sends no event stream": (Fault("not-sse", at_token=1), "expected an event stream"),
    "counts less than nothing": (
        chunk(usage={"completion_tokens": -1}),
        "a count of tokens, found -1",
    ),
    "counts too much": (
        chunk(usage={"completion_tokens": 10**30}),
        "a count of tokens, found 1000",
    ),
    "counts more than a number": (
        chunk(usage={"prompt_tokens": 1.5}),
        "a count of tokens, found 1.5",
    ),
    "counts a cache in words": (
        chunk(usage={"prompt_tokens_details": {"cached_tokens": "all"}}),
        "a count of tokens, found 'all'",
    ),
    "has counts that are no object": (chunk(usage=[1]), "expected an object as usage, found [1]"),
    "sends parts of a content": (
        chunk({"delta": {"content": [{"type": "text", "text": "a"}]}}),
        "expected a text as content, found [{",
    ),
    "sends a number as content": (chunk({"delta": {"content": 7}}), "a text as content, found 7"),
    "ends for a list of reasons": (
        chunk({"delta": {}, "finish_reason": ["stop"]}),
        "expected a text as finish_reason, found ['stop']",
    ),
    "sends a second answer": (
        chunk({"index": 1, "delta": {"content": "b"}}),
        "expected a single answer, found [{",
    ),
    "sends two answers at once": (
        chunk({"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}),
        "expected a single answer, found [{",
    ),
    "nests beyond reason": (sends(b"[" * 100_000), "expected JSON in the stream, found b'[[["),
    "nests too deeply to be shown": (
        sends(b'{"error":' + b"[" * 900 + b"]" * 900 + b"}"),
        "expected JSON in the stream",
    ),
    "sends a line without an end": (sends(b"7" * (3 << 20)), "is over 2097152 bytes"),
    "sends no choices": (Fault("empty-choices", at_token=1), "the answer broke off"),
    "answers a web page": (Fault("not-json"), "expected an event stream, found b'<html>"),
    "answers 404": (Fault("status", status=404), "answered 404"),
    "answers 429": (Fault("status", status=429), "answered 429"),
    "answers 500": (Fault("status", status=500), "answered 500"),
    "answers 503": (Fault("status", status=503), "answered 503"),
}


def run(folder: Path, target: FakeServer, draft: FakeServer, **options: Any) -> None:
    """Both arms with a draft that is always right, so that every request is needed."""
    measure(folder, PLANNING, target, draft, DEPTH, limit=TASKS, **options)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        run(folder, target, draft)
    return stable(lines(folder)[1:])


def assert_whole(folder: Path, before: bytes, undisturbed: list[dict[str, Any]]) -> None:
    """What was recorded before stands as it did, and the rest has come to it once."""
    after = (folder / ROUNDS_NAME).read_bytes()
    assert after.startswith(before)
    assert before.endswith(b"\n")
    assert stable(lines(folder)[1:]) == undisturbed
    assert read_trace(folder / TRACE_NAME).n_steps == STEPS
    frame = read_rounds(folder / ROUNDS_NAME).frame
    assert not frame.duplicated(["task", "run", "arm", "round"]).any()


@pytest.mark.parametrize("role", ["target", "draft"])
@pytest.mark.parametrize("what", FAULTS)
def test_a_server_that_fails_mid_round(
    tmp_path: Path, undisturbed: list[dict[str, Any]], role: str, what: str
):
    told, said = FAULTS[what]
    skip = STEPS + 6 if role == "target" else 4  # in the speculative arm
    fault = replace(told, skip=skip)
    silent = told.kind in ("stall", "comments")
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        (target if role == "target" else draft).fail(fault)
        with pytest.raises(EngineError, match=rf"^{role} at http.*{re.escape(said)}") as caught:
            run(tmp_path, target, draft, stalled_s=1.0 if silent else 10.0)
        assert fault.struck == 1
        assert "\n" not in str(caught.value)
        # Nothing that belonged to the round is left running in the engine.
        assert target.wait_for(lambda server: server.running == 0)
        assert draft.wait_for(lambda server: server.running == 0)
        before = (tmp_path / ROUNDS_NAME).read_bytes()
        recorded = stable(lines(tmp_path)[1:])
        assert recorded == undisturbed[: len(recorded)]
        assert len(recorded) < len(undisturbed)
        run(tmp_path, target, draft, resume=True)
    assert_whole(tmp_path, before, undisturbed)


def test_halves_of_characters_are_joined_or_replaced_before_they_are_recorded(tmp_path: Path):
    thought = "\ud83d\ude00 and half: \ud83d "  # each half a token, and so an event, of its own
    with FakeServer(planner(thought=thought)) as target, FakeServer(planner()) as draft:
        run(tmp_path, target, draft)
        run(tmp_path, target, draft, resume=True)
    recorded = read_rounds(tmp_path / ROUNDS_NAME).committed["output"]
    assert recorded.str.startswith("\N{GRINNING FACE} and half: \N{REPLACEMENT CHARACTER} ").all()
    assert read_trace(tmp_path / TRACE_NAME).n_steps == STEPS


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_server_that_is_killed_mid_round_and_started_again(
    tmp_path: Path, undisturbed: list[dict[str, Any]], role: str
):
    servers: dict[str, FakeServer] = {}

    def dying(request: FakeRequest) -> str:
        if request.number == (STEPS + 8 if role == "target" else 5):
            servers[role]._die()  # with the round's requests open
        return planner()(request)

    answers = {"target": planner(), "draft": planner(), role: dying}
    with FakeServer(answers["target"]) as target, FakeServer(answers["draft"]) as draft:
        servers.update(target=target, draft=draft)
        with pytest.raises(EngineError, match=f"^{role} at http.*the connection failed"):
            run(tmp_path, target, draft)
        before = (tmp_path / ROUNDS_NAME).read_bytes()
        with pytest.raises(EngineError, match=f"^{role} at http.*the connection failed"):
            run(tmp_path, target, draft, resume=True)  # nobody there yet
        assert (tmp_path / ROUNDS_NAME).read_bytes() == before
        servers[role].stop()
        with FakeServer(planner(), port=servers[role].port) as again:
            run(
                tmp_path,
                again if role == "target" else target,
                again if role == "draft" else draft,
                resume=True,
            )
    assert_whole(tmp_path, before, undisturbed)


@pytest.mark.parametrize("rounds", [0, 3, 9])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_disk_that_is_full_while_recording(
    tmp_path: Path,
    undisturbed: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    rounds: int,
    share: float,
):
    class Full:
        """A file that takes some lines, then part of one, then none."""

        def __init__(self, file: Any) -> None:
            self.file, self.left, self.lines = file, None, rounds

        def write(self, data: Any) -> int:
            if self.left is None and self.lines > 0:
                self.lines -= 1
                return int(self.file.write(data))
            if self.left is None:
                self.left = int(len(data) * share)
                return int(self.file.write(data[: self.left]))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    begin = Journal.__init__

    def begin_full(self: Journal, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        self._file = Full(self._file)  # type: ignore[assignment]

    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "__init__", begin_full)
            with pytest.raises(UsageError, match=r"can't write it \(No space left on device\)"):
                run(tmp_path, target, draft)
        before = (tmp_path / ROUNDS_NAME).read_bytes()
        assert before.count(b"\n") == 1 + rounds
        run(tmp_path, target, draft, resume=True)
    assert_whole(tmp_path, before, undisturbed)


def test_a_disk_that_is_full_under_the_trace(tmp_path: Path, undisturbed: list[dict[str, Any]]):
    begin = TraceFile.__init__

    def begin_full(self: TraceFile, *arguments: Any) -> None:
        begin(self, *arguments)
        self._file.close()
        self._file = open("/dev/full", "w", buffering=1)  # noqa: SIM115

    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TraceFile, "__init__", begin_full)
            with pytest.raises(UsageError, match=r"trace\.jsonl: can't write .*--resume makes it"):
                run(tmp_path, target, draft)
        before = (tmp_path / ROUNDS_NAME).read_bytes()
        run(tmp_path, target, draft, resume=True)
    assert_whole(tmp_path, before, undisturbed)


@pytest.mark.parametrize("pause_s", [0.0, 0.05])
def test_ctrl_c_twice(tmp_path: Path, undisturbed: list[dict[str, Any]], pause_s: float):
    with FakeServer(planner(), first_token_s=0.03) as target, FakeServer(planner()) as draft:
        command = [
            sys.executable, "-m", "leapmodel", "run", "--target-url", target.url,
            "--draft-url", draft.url, "--draft-name", "scripted", "--k", str(DEPTH),
            "--limit", str(TASKS), "-o", str(tmp_path),
        ]  # fmt: skip
        running = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert draft.wait_for(lambda server: server.finished > 4, timeout_s=60)
        running.send_signal(signal.SIGINT)
        draft.wait_for(lambda server: False, timeout_s=pause_s)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
        assert running.returncode in (130, -signal.SIGINT)  # the second may end it while it ends
        assert "Traceback" not in said
        assert target.wait_for(lambda server: server.running == 0)
        before = (tmp_path / ROUNDS_NAME).read_bytes()
        done = subprocess.run([*command, "--resume"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert_whole(tmp_path, before, undisturbed)
    assert json.loads(before.splitlines()[0])["leapmodel"] == "rounds"
