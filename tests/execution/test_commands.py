"""run, collect and probe as a person types them, against fake servers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from leapmodel.execution.auditing.audit import audit
from leapmodel.execution.auditing.violation import Violation
from leapmodel.execution.fake.server import FakeServer, Fault
from leapmodel.execution.records.recording import PAIRS_NAME, ROUNDS_NAME, TRACE_NAME
from leapmodel.execution.training.pairs import read_pairs, write_pairs
from leapmodel.probes import read_probe
from leapmodel.rounds import read_rounds
from leapmodel.trace import read_trace

from .scripted import PLANNING, measure, planner
from .test_loop import by_chance


def leapmodel(*arguments: str | bytes, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "leapmodel", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def violations(folder: Path) -> list[Violation]:
    """What an audit finds, but for the run's own clock: a busy machine is slow between rounds."""
    found = audit(folder / ROUNDS_NAME).violations
    return [violation for violation in found if violation.what != "clock_s"]


def test_run_records_both_arms_and_says_what(tmp_path: Path):
    with FakeServer(planner()) as target, FakeServer(planner(by_chance)) as draft:
        done = leapmodel(
            "run", "--target-url", target.url, "--draft-url", draft.url + "/v1", "--k", "2",
            "--limit", "5", "--draft-name", "half-right", "-o", str(tmp_path / "out"),
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    steps = sum(len(task.gold or ()) for task in PLANNING.tasks("test")[:5])
    assert re.search(rf"sequential: 5 tasks, {steps} steps, [\d.]+ s\n", done.stdout)
    assert re.search(rf"speculative: 5 tasks, {steps} steps in \d+ rounds, [\d.]+ s", done.stdout)
    assert re.search(r"speculative: .*\n  waiting [\d.]+%, .*draft [\d.]+%", done.stdout)
    rounds = read_rounds(tmp_path / "out" / ROUNDS_NAME)
    spent = rounds.completion_tokens().loc["speculative"]
    asked = spent["used"] + spent["cancelled"]
    assert (
        f"; {asked:,.0f} tokens of the target, {spent['cancelled'] / asked:.1%} of" in done.stdout
    )
    assert set(rounds.frame["draft"].dropna()) == {"half-right"}
    assert (rounds.metadata["depth"], rounds.metadata["arms"]) == (2, ["sequential", "speculative"])
    assert violations(tmp_path / "out") == []
    trace = read_trace(tmp_path / "out" / TRACE_NAME)
    assert (trace.n_tasks, trace.n_steps) == (5, steps)
    assert trace.metadata["origin"] == "measured"


def test_passes_are_runs_of_the_same_tasks(tmp_path: Path):
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        done = leapmodel(
            "run", "--target-url", target.url, "--draft-url", draft.url, "--limit", "2",
            "--passes", "2", "-o", str(tmp_path),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    trace = read_trace(tmp_path / TRACE_NAME)
    assert (trace.n_tasks, trace.n_runs) == (2, 4)
    assert "sequential: 2 tasks in 2 runs, " in done.stdout
    assert "speculative: 2 tasks in 2 runs, " in done.stdout
    assert f"recorded in {tmp_path}/{ROUNDS_NAME}\n" in done.stdout
    assert violations(tmp_path) == []


@pytest.mark.timed
def test_collect_and_probe(tmp_path: Path):
    quick = FakeServer(planner(), first_token_s=0.1)
    crowded = FakeServer(planner(), first_token_s=0.1, contention=0.5)
    with crowded as target, quick as draft:
        done = leapmodel(
            "collect", "--target-url", target.url, "--tasks", "test", "--limit", "6",
            "--concurrency", "3", "-o", str(tmp_path),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        pairs = read_pairs(tmp_path / "pairs.jsonl")
        assert len(pairs) == read_trace(tmp_path / TRACE_NAME).n_steps
        done = leapmodel(
            "probe", str(tmp_path / TRACE_NAME), "--target-url", target.url, "--draft-url",
            draft.url, "--k", "2", "--batches", "2", "--limit", "4",
            "-o", str(tmp_path / "probe.json"),
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    found = read_probe(tmp_path / "probe.json")
    assert found.calls == sum(len(task.gold or ()) for task in PLANNING.tasks("test")[:4])
    assert 0.1 < found.draft_latency_s < 0.2
    assert [one.requests for one in found.token_times] == [1, 2, 3]
    # as the server was told: the second request takes half as long again, the third twice as long
    alone, *beside = [one.ms_per_token for one in found.token_times]
    assert [one / alone for one in beside] == pytest.approx([1.25, 1.5], rel=0.15)
    probed = target.requests[-3:]  # at once, in the middle of a task: its beginning is cached
    assert all(0 < one.cached_tokens < one.prompt_tokens for one in probed)
    predicted = leapmodel(
        "predict", str(tmp_path / TRACE_NAME), "--acceptance", "0.7", "--probe",
        str(tmp_path / "probe.json"), "--k", "2", "--json",
    )  # fmt: skip
    assert predicted.returncode == 0, predicted.stderr
    draft_cost = found.draft_latency_s / json.loads(predicted.stdout)["gen_s_mean"]
    assert json.loads(predicted.stdout)["draft_term"][0] == pytest.approx(1.5 * draft_cost, rel=0.5)


def test_probe_asks_as_the_trace_was_recorded(tmp_path: Path):
    """The tasks, the split and the budget are those of another seed, stated in the trace alone."""
    trace = str(tmp_path / TRACE_NAME)
    with FakeServer("<tool>TERMINATE</tool>") as target:
        urls = ["--target-url", target.url, "--draft-url", target.url]
        done = leapmodel(
            "collect", "--target-url", target.url, "--limit", "4", "--benchmark-seed", "7",
            "--target-tokens", "33", "-o", str(tmp_path),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        recorded = list(target.requests)
        done = leapmodel("probe", trace, *urls, "--k", "1", "--batches", "2")
        assert done.returncode == 0, done.stderr
        asked = target.requests[len(recorded) :]
        assert {request.body["max_tokens"] for request in asked} == {32, 33}
        assert {request.last for request in asked} == {request.last for request in recorded}
        same = ["--benchmark", "planning", "--benchmark-seed", "7", "--target-tokens", "33"]
        done = leapmodel("probe", trace, *urls, "--k", "1", "--batches", "2", *same)
        assert done.returncode == 0, done.stderr
        before = len(target.requests)
        for option, value, said in (
            ("--benchmark-seed", "42", "benchmark settings seed 7, now it is 42"),
            ("--target-tokens", "34", "benchmark settings target_tokens 33, now it is 34"),
            ("--benchmark", "other", "benchmark name 'planning', now it is 'other'"),
        ):
            done = leapmodel("probe", trace, *urls, option, value)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr == f"leapmodel: error: {trace}: was recorded with {said}\n"
        done = leapmodel(
            "online", *urls, "--base", "x", "--heldout", trace, "-o", str(tmp_path / "online"),
        )  # fmt: skip
        assert done.returncode == 2
        assert done.stderr == (
            f"leapmodel: error: --heldout {trace}: was recorded with benchmark settings seed 7,"
            " now it is 42\n"
        )
        assert not (tmp_path / "online").exists()
        assert len(target.requests) == before


def test_probe_looks_at_its_output_first(tmp_path: Path):
    (tmp_path / "folder.json").mkdir()
    for output, said in (
        (tmp_path / "nowhere" / "x.json", "its folder does not exist"),
        (tmp_path / "folder.json", "can't write it (Is a directory)"),
        (tmp_path / "x.txt", "expected a name ending in .json"),
    ):
        done = leapmodel(
            "probe", "no-such-trace.jsonl", "--target-url", "http://127.0.0.1:9", "-o", str(output)
        )
        assert done.returncode == 2
        assert done.stderr == f"leapmodel: error: {output}: {said}\n"


@pytest.mark.parametrize("command", ["collect", "run", "online", "train"])
def test_a_folder_without_a_name_is_refused(command: str):
    needed = {"train": ["pairs.jsonl", "--base", "x"], "online": ["--base", "x"]}
    url = [] if command == "train" else ["--target-url", "http://127.0.0.1:9"]
    done = leapmodel(command, *needed.get(command, []), *url, "-o", "")
    assert done.returncode == 2
    assert done.stderr == "leapmodel: error: --output: expected the name of a folder, found ''\n"


@pytest.mark.parametrize("command", ["run", "online", "probe"])
def test_a_depth_beyond_the_deepest_is_refused(tmp_path: Path, command: str):
    given = {"probe": ["trace.jsonl"], "online": ["--base", "x"]}.get(command, [])
    done = leapmodel(
        command, *given, "--target-url", "http://127.0.0.1:9", "-o", str(tmp_path / "o.json"),
        "--k", "65",
    )  # fmt: skip
    assert done.returncode == 2
    assert "'--k': 65 is not in the range 1<=x<=64" in done.stderr
    assert done.stderr.count("\n") == 1


def test_more_batches_than_tasks_names_the_option(tmp_path: Path):
    done = leapmodel(
        "online", "--target-url", "http://127.0.0.1:9", "--base", "x", "--limit", "4",
        "-o", str(tmp_path / "o"),
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        "leapmodel: error: --batches: expected at most 4, one for each task, found 10\n"
    )


def test_a_trace_of_ones_own_is_not_written_over(tmp_path: Path):
    (tmp_path / TRACE_NAME).write_text('{"task":"mine","step":0,"gen_s":1}\n')
    with FakeServer(planner()) as target:
        for more in ([], ["--resume"]):
            for command in (["collect"], ["run", "--arm", "sequential"]):
                done = leapmodel(*command, "--target-url", target.url, "-o", str(tmp_path), *more)
                assert done.returncode == 2
                assert done.stderr == (
                    f"leapmodel: error: {tmp_path / TRACE_NAME}: exists already, without a"
                    f" {ROUNDS_NAME} that it belongs to; name another folder\n"
                )
    assert [path.name for path in tmp_path.iterdir()] == [TRACE_NAME]


def test_pairs_of_ones_own_are_not_written_over(tmp_path: Path):
    path = tmp_path / PAIRS_NAME
    with FakeServer("<tool>TERMINATE</tool>") as target:
        collect = ["collect", "--target-url", target.url, "-o", str(tmp_path), "--limit"]
        assert leapmodel(*collect, "1").returncode == 0
        done = leapmodel(*collect, "2", "--resume")  # its own are made anew
        assert done.returncode == 0, done.stderr
        assert len(read_pairs(path)) == 2
        own = read_pairs(path)
        del own.metadata["begun"]
        write_pairs(own.of_tasks(own.task_names[:1]), path)
        asked = len(target.requests)
        for text in (path.read_text(), '{"task":"mine"}\n', "[" * 100_000 + "\n", "a\n"):
            path.write_text(text)
            done = leapmodel(*collect, "3", "--resume")
            assert done.returncode == 2
            assert done.stderr == (
                f"leapmodel: error: {path}: has not the pairs of {ROUNDS_NAME} beside it, and would"
                " be lost; move it away\n"
            )
            assert path.read_text() == text
        assert len(target.requests) == asked
        path.unlink()
        assert leapmodel(*collect, "3", "--resume").returncode == 0


def test_a_record_goes_on_with_its_own_split_alone(tmp_path: Path):
    with FakeServer("<tool>TERMINATE</tool>") as target:
        common = ["collect", "--target-url", target.url, "-o", str(tmp_path), "--resume"]
        assert leapmodel(*common, "--limit", "1").returncode == 0
        done = leapmodel(*common, "--limit", "1", "--tasks", "test")
        assert done.returncode == 2
        assert "was begun with split 'train', now it is 'test'" in done.stderr
        done = leapmodel(*common, "--limit", "2")
        assert "sequential: 2 tasks, 2 steps" in done.stdout


def test_ctrl_c_keeps_what_was_recorded_and_says_how_to_go_on(tmp_path: Path):
    with FakeServer(planner(), first_token_s=0.05) as target:
        arguments = [
            "collect", "--target-url", target.url, "--tasks", "test", "-o", str(tmp_path),
        ]  # fmt: skip
        running = subprocess.Popen(
            [sys.executable, "-m", "leapmodel", *arguments], stderr=subprocess.PIPE, text=True
        )
        assert target.wait_for(lambda server: server.finished > 5, timeout_s=30)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=20)
        assert running.returncode == 130
        assert said == "leapmodel: stopped; --resume goes on from the last round\n"
        before = (tmp_path / ROUNDS_NAME).read_bytes()
        assert before.endswith(b"\n")
        done = leapmodel(*arguments, "--limit", "4", "--resume")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ROUNDS_NAME).read_bytes().startswith(before)


def test_a_killed_run_loses_the_running_round_at_most(tmp_path: Path):
    with FakeServer(planner(), first_token_s=0.03) as target:
        arguments = [
            "collect", "--target-url", target.url, "--tasks", "test", "--limit", "6",
            "-o", str(tmp_path),
        ]  # fmt: skip
        for _ in range(3):
            begun = target.finished
            running = subprocess.Popen([sys.executable, "-m", "leapmodel", *arguments])
            assert target.wait_for(lambda server, n=begun: server.finished > n + 4, timeout_s=30)
            running.kill()
            running.wait()
            if arguments[-1] != "--resume":
                arguments.append("--resume")
            time.sleep(0.1)
        done = leapmodel(*arguments)
        assert done.returncode == 0, done.stderr
    trace = read_trace(tmp_path / TRACE_NAME)
    wanted = [action for task in PLANNING.tasks("test")[:6] for action in task.gold or ()]
    assert trace.actions.tolist() == wanted
    assert violations(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--benchmark", "plannin"], 2, "no benchmark 'plannin'; did you mean planning?"),
        (["--target-model", "nobody"], 2, "has no model 'nobody'; it has fake"),
        (["--target-extra", "[1]"], 2, '--target-extra: expected a JSON object, such as {"tools"'),
        (["--target-extra", "[" * 9999], 2, "--target-extra: expected a JSON object, found '[["),
        (["--target-extra", '{"n":2}'], 2, "target: extra field 'n': expected one that is not set"),
        (["--target-extra", '{"p":NaN}'], 2, "'p': expected JSON of finite numbers and whole"),
        (["--target-extra", '{"p":1e999}'], 2, "'p': expected JSON of finite numbers and whole"),
        (["--target-model", b"\xff"], 2, "--target-model: expected UTF-8, found '\\udcff'"),
        (["--target-url", "http://a:b"], 2, "expected an address such as http://127.0.0.1:8000"),
        (["--stalled", "nan"], 2, "'--stalled': nan is not in the range x>0"),
        (["--tasks-file", "no-such-file"], 1, "no-such-file: expected a text file"),
        (["--tasks-file", ""], 2, "tasks_file: expected the path of a file, found ''"),
    ],
)
def test_what_makes_no_sense_is_one_line(tmp_path, arguments, status, said):
    with FakeServer(planner()) as target:
        done = leapmodel(
            "collect", "--target-url", target.url, "-o", str(tmp_path / "o"), *arguments
        )
    assert done.returncode == status
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("command", ["run", "online", "probe", "agreement"])
def test_a_word_that_no_record_holds_is_refused_before_anything_is_done(
    tmp_path: Path, command: str
):
    given = {
        "run": ["--target-url", "http://127.0.0.1:9", "-o", str(tmp_path / "o")],
        "online": ["--target-url", "http://127.0.0.1:9", "--base", "x", "-o", str(tmp_path / "o")],
        "probe": ["no-such-trace.jsonl", "--target-url", "http://127.0.0.1:9"],
        "agreement": ["no-such-trace.jsonl"],
    }
    more = ("--base", "--train-options") if command == "online" else ()
    for option in ("--draft-name", "--draft-model", *more):
        done = leapmodel(command, *given[command], option, b"\xff\xfe")
        assert done.returncode == 2
        assert done.stderr == (
            f"leapmodel: error: {option}: expected UTF-8, found '\\udcff\\udcfe'\n"
        )


def test_patience_may_be_without_limit(tmp_path: Path):
    with FakeServer(planner()) as target:
        done = leapmodel(
            "collect", "--target-url", target.url.upper(), "--limit", "1", "--tasks", "test",
            "--stalled", "inf", "-o", str(tmp_path),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_no_server_is_one_line(tmp_path: Path):
    done = leapmodel("collect", "--target-url", "http://127.0.0.1:9", "-o", str(tmp_path / "o"))
    assert done.returncode == 1
    assert re.fullmatch(
        r"leapmodel: error: target at http://127.0.0.1:9: the connection failed .*\n", done.stderr
    )


def test_a_key_is_sent_and_never_shown(tmp_path: Path):
    with FakeServer(planner(), api_key="s3cret") as target:
        refused = leapmodel("collect", "--target-url", target.url, "-o", str(tmp_path / "a"))
        assert refused.returncode == 1
        assert "401" in refused.stderr
        done = leapmodel(
            "collect", "--target-url", target.url, "--tasks", "test", "--limit", "1",
            "-o", str(tmp_path / "b"), LEAPMODEL_API_KEY="s3cret",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    written = b"".join(path.read_bytes() for path in (tmp_path / "b").iterdir())
    assert b"s3cret" not in written + done.stdout.encode() + done.stderr.encode()


def test_a_file_of_tasks_is_run(tmp_path: Path):
    listed = tmp_path / "tasks.txt"
    texts = [f"Given picture {i}, how to get its class?" for i in range(20)]
    listed.write_text("\n".join(texts), encoding="utf-8-sig")
    with FakeServer("<tool>TERMINATE</tool>") as target:
        done = leapmodel(
            "collect", "--target-url", target.url, "--tasks-file", str(listed),
            "-o", str(tmp_path / "o"),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert read_trace(tmp_path / "o" / TRACE_NAME).n_tasks == 16  # the others are for testing


def test_a_stalled_server_is_given_up(tmp_path: Path):
    with FakeServer(planner()) as target:
        target.fail(Fault("stall", at_token=1, skip=3, times=None))
        done = leapmodel(
            "collect", "--target-url", target.url, "--tasks", "test", "--stalled", "2",
            "-o", str(tmp_path),
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "nothing came for 2 s: the server has stalled" in done.stderr


def test_a_target_that_does_not_repeat_itself_is_told_by_the_status(tmp_path: Path):
    def other(request: Any) -> str:
        return "<tool>Fill Mask</tool>" if request.number == 2 else planner()(request)

    for name, answers in (("a", planner()), ("b", planner()), ("c", other)):
        with FakeServer(answers) as target:
            measure(tmp_path / name, PLANNING, target, None, 0, limit=3, arms=("sequential",))
    a, b, c = (str(tmp_path / name / ROUNDS_NAME) for name in "abc")
    assert leapmodel("identity", a, b, "--require").returncode == 0
    assert leapmodel("identity", a, c).returncode == 0
    found = leapmodel("identity", a, c, "--require")
    assert found.returncode == 1
    assert "two target-only runs" in found.stdout
