"""The command line as a person uses it: in processes of its own where that matters."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from leapmodel.cli import main
from leapmodel.importers import FORMATS
from leapmodel.predictions import Predictions, read_predictions, write_predictions
from leapmodel.trace import Trace, read_trace, write_trace
from tests.conftest import REPOSITORY, disturbed, random_trace


def leapmodel(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def folder(tmp_path: Path, rng: np.random.Generator) -> Path:
    big = random_trace(rng, 40)
    write_trace(big, tmp_path / "big.parquet")
    write_trace(disturbed(big, rng, share=0.2), tmp_path / "small.parquet")
    right = rng.random(big.n_steps) < 0.8
    frame = big.frame[["task", "run", "step"]].assign(
        draft="tiny", action=np.where(right, big.actions, "other({})"), latency_s=0.1
    )
    write_predictions(Predictions.from_frame(frame), tmp_path / "predicted.parquet")
    other = frame.assign(draft="huge", latency_s=0.9)
    both = Predictions.from_frame(pd.concat([frame, other], ignore_index=True))
    write_predictions(both, tmp_path / "both.jsonl")
    return tmp_path


def test_describe(folder: Path):
    result = leapmodel("describe", folder / "big.parquet")
    assert result.exit_code == 0
    for words in ("tasks", "step time t_gen, mean", "steps per segment", "longest steps", "reply"):
        assert words in result.output


def test_describe_json_and_boundary_tools(folder: Path):
    result = leapmodel(
        "describe", folder / "big.parquet", "--json", "--boundary-tools", "send_*, book_*"
    )
    value = json.loads(result.output)
    assert value["boundary_steps"] > 0
    assert value["segments"] == sum(value["segment_ends"].values())


@pytest.mark.parametrize(
    "draft",
    [
        ["--acceptance", "0.8", "--draft-latency", "0.2"],
        ["--acceptance", "0.8,0.7,0.6", "--draft-cost", "0.1"],
        ["--draft-run", "small.parquet"],
        ["--draft-run", "small.parquet", "--pool", "position"],
        ["--draft-run", "small.parquet", "--pool", "task", "--draft-latency", "0.1"],
        ["--predictions", "predicted.parquet"],
        ["--predictions", "both.jsonl", "--draft-name", "huge"],
        ["--predictions", "predicted.parquet", "--evidence-trace", "big.parquet"],
    ],
)
@pytest.mark.parametrize("terminal", ["accepted", "probe"])
def test_predict_with_every_kind_of_draft(folder: Path, draft: list[str], terminal: str):
    arguments = [str(folder / a) if (folder / a).is_file() else a for a in draft]
    question = ["predict", folder / "big.parquet", *arguments, "--k", "1:3", "--terminal", terminal]
    shown = leapmodel(*question)
    assert shown.exit_code == 0, shown.output
    assert "verdict: " in shown.output
    value = json.loads(leapmodel(*question, "--json").output)
    assert value["depths"] == [1, 2, 3]
    assert f"{value['speedup'][0]:.2f}" in shown.output


def test_both_terminal_rules_give_nearly_one_speedup(folder: Path):
    question = ["predict", folder / "big.parquet", "--acceptance", "0.8", "--draft-latency", "0.1"]
    accepted, probe = (
        json.loads(leapmodel(*question, "--json", "--terminal", t).output)
        for t in ("accepted", "probe")
    )
    assert accepted["commits"] == pytest.approx(probe["commits"])
    assert accepted["wait_inflation"] == pytest.approx(probe["wait_inflation"])
    assert probe["bonus_loss"] == [0.0] * 6


def test_choose(folder: Path):
    question = [
        "choose",
        folder / "big.parquet",
        "--draft",
        f"run={folder / 'small.parquet'}",
        "--draft",
        f"run at a price={folder / 'small.parquet'}@0.1",
        "--draft",
        str(folder / "both.jsonl"),
        "--draft",
        "stated=0.7,0.6@0.05x",
        "--k",
        "1:2",
        "--prices",
        "1,0.1,4",
    ]
    shown = leapmodel(*question, "--plot", folder / "speedup.png")
    assert shown.exit_code == 0, shown.output
    assert (folder / "speedup.png").read_bytes().startswith(b"\x89PNG")
    value = json.loads(leapmodel(*question, "--json").output)
    names = [draft["draft"] for draft in value["drafts"]]
    assert names == ["run", "run at a price", "tiny", "huge", "stated"]
    for name in names:
        assert name in shown.output
    assert value["verdict"]["decision"] in {"deploy", "pilot first", "don't"}
    assert value["verdict"]["decision"] in shown.output


def test_a_template_filled_in_is_a_prediction(folder: Path):
    template, filled = folder / "template.jsonl", folder / "filled.jsonl"
    assert leapmodel("predictions-template", folder / "big.parquet", "-o", template).exit_code == 0
    actions = iter(read_trace(folder / "big.parquet").actions)
    with template.open() as source, filled.open("w") as target:
        target.write(source.readline())
        for line in source:
            target.write(
                json.dumps({**json.loads(line), "action": next(actions), "latency_s": 0.1})
            )
            target.write("\n")
    result = leapmodel("predict", folder / "big.parquet", "--predictions", filled, "--json")
    value = json.loads(result.output)
    assert value["hit_rates"][0] == [1.0]
    assert len(read_predictions(filled).frame) == read_trace(folder / "big.parquet").n_steps


def test_the_same_question_gives_the_same_answer(folder: Path):
    question = [
        "predict",
        folder / "big.parquet",
        "--draft-run",
        folder / "small.parquet",
        "--json",
    ]
    assert leapmodel(*question).output == leapmodel(*question).output
    other = json.loads(leapmodel(*question, "--seed", "1").output)
    same = json.loads(leapmodel(*question).output)
    assert other["speedup"] == same["speedup"]
    assert other["speedup_ci95"] != same["speedup_ci95"]


BAD_USAGE = {
    "no draft": (
        ["predict", "big.parquet"],
        "expected one of --acceptance, --draft-run, --predictions or --rounds, found none",
    ),
    "two drafts": (
        ["predict", "big.parquet", "--acceptance", "1", "--draft-run", "small.parquet"],
        "expected one of --acceptance, --draft-run, --predictions or --rounds, found"
        " --acceptance and --draft-run",
    ),
    "no cost": (
        ["predict", "big.parquet", "--acceptance", "0.8"],
        "--acceptance needs --draft-latency SECONDS (or --draft-cost D)",
    ),
    "acceptance above one": (
        ["predict", "big.parquet", "--acceptance", "1.8", "--draft-latency", "1"],
        "acceptance: expected numbers from 0 to 1, found 1.8",
    ),
    "acceptance in words": (
        ["predict", "big.parquet", "--acceptance", "high", "--draft-latency", "1"],
        "--acceptance: expected numbers such as 0.8 or 0.8,0.7, found 'high'",
    ),
    "negative latency": (
        ["predict", "big.parquet", "--acceptance", "0.8", "--draft-latency", "-1"],
        "the draft's cost: expected a number >= 0, found -1",
    ),
    "depth zero": (
        ["predict", "big.parquet", "--acceptance", "0.8", "--draft-latency", "1", "--k", "0:3"],
        "--k: expected depths from 1 to 64, as 3, 1:6 or 1,3,5, found '0:3'",
    ),
    "unknown command": (["prdict", "big.parquet"], "no command 'prdict'; did you mean predict?"),
    "unknown option": (
        ["predict", "big.parquet", "--xyzzy"],
        "No such option '--xyzzy'. (see leapmodel predict --help)",
    ),
    "unknown format": (
        ["import", "bcfl", "x", "-o", "y.parquet"],
        "unknown format 'bcfl'; did you mean bfcl? Known: " + ", ".join(FORMATS),
    ),
    "stated without cost": (
        ["choose", "big.parquet", "--draft", "x=0.8"],
        "--draft x=0.8: a stated acceptance needs a cost, as x=0.8@0.2 (seconds a call) or"
        " x=0.8@0.07x (target steps)",
    ),
    "one name twice": (
        ["choose", "big.parquet", "--draft", "small.parquet", "--draft", "small.parquet"],
        "each draft needs a name of its own, found small, small",
    ),
    "negative seed": (
        ["predict", "big.parquet", "--acceptance", "1", "--draft-latency", "1", "--seed", "-1"],
        "Invalid value for '--seed': -1 is not in the range x>=0. (see leapmodel predict --help)",
    ),
    "half-width that is no number": (
        ["choose", "big.parquet", "--draft", "x=0.8@1", "--half-width", "nan"],
        "--half-width: expected a number above 0, found nan",
    ),
    "two costs": (
        ["choose", "big.parquet", "--draft", "x=0.8@1,2"],
        "--draft …@COST: expected one number, found '1,2'",
    ),
    "very many depths": (
        [
            "predict",
            "big.parquet",
            "--acceptance",
            "1",
            "--draft-latency",
            "1",
            "--k",
            "1:300000000",
        ],
        "--k: expected depths from 1 to 64, as 3, 1:6 or 1,3,5, found '1:300000000'",
    ),
    "option without its draft": (
        ["predict", "big.parquet", "--acceptance", "1", "--draft-latency", "1", "--pool", "task"],
        "--pool says nothing about --acceptance",
    ),
    "acceptance just above one": (
        ["predict", "big.parquet", "--acceptance", "1.0000001", "--draft-latency", "1"],
        "acceptance: expected numbers from 0 to 1, found 1.0000001",
    ),
    "output that is the input": (
        ["predictions-template", "big.parquet", "-o", "./big.parquet"],
        "./big.parquet: is what is read, and would be lost; name another output",
    ),
    "picture without a name": (
        ["describe", "big.parquet", "--plot", ".png"],
        "--plot: expected a name ending in .png, .pdf or .svg, found '.png'",
    ),
    "two prices": (
        ["choose", "big.parquet", "--draft", "x=0.8@1", "--prices", "1,2"],
        "--prices: expected PROMPT,CACHED,COMPLETION, found '1,2'",
    ),
    "picture of no format": (
        ["describe", "big.parquet", "--plot", "x.gif"],
        "--plot: expected a name ending in .png, .pdf or .svg, found 'x.gif'",
    ),
    "output of no format": (
        ["predictions-template", "big.parquet", "-o", "x.csv"],
        "x.csv: expected a name ending in .parquet or .jsonl",
    ),
}


@pytest.mark.parametrize("case", BAD_USAGE)
def test_bad_usage_is_one_line_and_exit_2(folder: Path, case: str, monkeypatch):
    monkeypatch.chdir(folder)
    arguments, message = BAD_USAGE[case]
    result = leapmodel(*arguments)
    assert result.stderr == f"leapmodel: error: {message}\n"
    assert result.stdout == ""
    assert result.exit_code == 2


BAD_DATA = {
    "no such file": (
        ["describe", "nope.parquet"],
        "nope.parquet: expected a readable file, found no such file or directory",
    ),
    "no such draft": (
        ["choose", "big.parquet", "--draft", "x=nope.parquet@0.1"],
        "nope.parquet: expected a readable file, found no such file or directory",
    ),
    "other tasks": (
        ["predict", "big.parquet", "--draft-run", "other.parquet"],
        "the draft's run: column task: expected tasks of the trace, such as 'task0', found others,"
        " such as 'else'",
    ),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_is_one_line_and_exit_1(folder: Path, case: str, monkeypatch):
    monkeypatch.chdir(folder)
    frame = read_trace("big.parquet").frame
    write_trace(
        Trace.from_frame(frame[frame["task"] == "task0"].assign(task="else")), "other.parquet"
    )
    arguments, message = BAD_DATA[case]
    result = leapmodel(*arguments)
    assert result.stderr == f"leapmodel: error: {message}\n"
    assert result.exit_code == 1


def test_lenient_reports_each_dropped_task_and_goes_on(folder: Path):
    frame = read_trace(folder / "big.parquet").frame.copy()
    bad = folder / "bad.jsonl"
    lines = [json.loads(r) for r in frame.to_json(orient="records", lines=True).splitlines()]
    lines[0]["gen_s"] = -1.0
    bad.write_text("".join(json.dumps(line) + "\n" for line in lines))
    strict = leapmodel("describe", bad)
    assert strict.exit_code == 1
    assert strict.stderr == (
        f"leapmodel: error: {bad}: line 1, column gen_s: expected a number > 0, found -1.0\n"
    )
    lenient = leapmodel("describe", bad, "--lenient", "--json")
    assert lenient.exit_code == 0
    assert f"dropped task task0: {bad}: line 1, column gen_s" in lenient.stderr
    assert "dropped 1 task, kept 39" in lenient.stderr
    assert json.loads(lenient.stdout)["tasks"] == 39


def test_nothing_is_written_when_the_import_fails(tmp_path: Path):
    log = tmp_path / "log.json"
    log.write_text('{"id": "a", "result": [[')
    result = leapmodel("import", "bfcl", log, "-o", tmp_path / "t.parquet")
    assert result.exit_code == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.json"]


def test_compare(folder: Path):
    shown = leapmodel("compare", folder / "big.parquet", folder / "small.parquet")
    assert shown.exit_code == 0, shown.output
    assert "They differ in mean step time (s)" in " ".join(shown.output.split())
    question = ["compare", folder / "big.parquet", folder / "small.parquet", "--json"]
    value = json.loads(leapmodel(*question, "--acceptance", "0.5", "--draft-latency", "1").output)
    assert "acceptance 0.5 and 1 s a call" in value["draft"]


def test_winsorizing_is_said(folder: Path):
    question = ["predict", folder / "big.parquet", "--acceptance", "0.8", "--draft-latency", "0.1"]
    plain = json.loads(leapmodel(*question, "--json").output)
    cut = json.loads(leapmodel(*question, "--json", "--winsorize", "90").output)
    assert cut["gen_s_cv"] < plain["gen_s_cv"]
    assert "cut down to the 90th percentile" in cut["warnings"][-1]
    wrong = leapmodel(*question, "--winsorize", "9")
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)


def test_choose_without_drafts_learns_some(folder: Path):
    value = json.loads(leapmodel("choose", folder / "big.parquet", "--k", "1:2", "--json").output)
    assert [draft["draft"] for draft in value["drafts"]] == ["backoff", "memory", "macro"]
    assert all(draft["coverage"] == 1.0 for draft in value["drafts"])


def test_import_auto_with_contexts(tmp_path: Path):
    log = REPOSITORY / "tests" / "importers" / "fixtures" / "sessions" / "errand_2.jsonl"
    trace, contexts = tmp_path / "t.parquet", tmp_path / "c.jsonl"
    result = leapmodel("import", "auto", log, "-o", trace, "--export-contexts", contexts)
    assert result.exit_code == 0, result.output
    assert f"{trace} (claude-code): 1 tasks" in result.stdout
    rows = [json.loads(line) for line in contexts.read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(read_trace(trace).n_steps))
    assert rows[0]["messages"][0]["role"] == "user"
    same = leapmodel("import", "auto", log, "-o", trace, "--predictions-out", trace)
    assert "each output needs a file of its own" in same.stderr
    none = leapmodel("import", "auto", log, "-o", trace, "--predictions-out", tmp_path / "p.jsonl")
    assert "claude-code logs hold no guesses of a draft" in none.stderr


def test_an_import_never_writes_over_what_it_reads(tmp_path: Path):
    source = REPOSITORY / "tests" / "importers" / "fixtures" / "sessions"
    folder = tmp_path / "logs"
    folder.mkdir()
    for log in source.iterdir():
        (folder / log.name).write_bytes(log.read_bytes())
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    inside = folder / "errand_2.jsonl"
    for outputs in (["-o", inside], ["-o", tmp_path / "t.parquet", "--export-contexts", inside]):
        result = leapmodel("import", "claude-code", folder, *outputs)
        assert result.exit_code == 2
        assert "is what is read, and would be lost" in result.stderr
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_import_of_a_table_with_named_columns(tmp_path: Path):
    log, trace = tmp_path / "log.csv", tmp_path / "t.parquet"
    log.write_text("job,ms,call\na,1500,ls({})\na,500,<respond/>\n")
    named = ["--column", "task=job", "--column", "gen_s=ms", "--column", "action=call"]
    result = leapmodel("import", "table", log, "-o", trace, *named, "--time-unit", "ms")
    assert result.exit_code == 0, result.output
    assert read_trace(trace).gen_s.tolist() == [1.5, 0.5]


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )


def test_importing_the_package_loads_nothing_heavy():
    result = run(
        "-c",
        "import sys, leapmodel;"
        "print(sorted({'torch','vllm','transformers','matplotlib','pandas'} & set(sys.modules)))",
    )
    assert result.stdout == "[]\n"


def test_asking_for_a_prediction_loads_no_plotting():
    result = run(
        "-c",
        "import sys, leapmodel as lm; lm.predict; lm.choose; print('matplotlib' in sys.modules)",
    )
    assert result.stdout == "False\n"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60
    )


def test_a_reader_that_stops_early_is_not_an_error(folder: Path):
    describe = f"{sys.executable} -m leapmodel describe {folder / 'big.parquet'}"
    result = shell(f"{describe} | head -1; exit ${{PIPESTATUS[0]}}")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", ["describe {}", "describe {} --json", "choose {} --k 1"])
def test_a_full_disk_is_one_line(folder: Path, arguments: str):
    asked = arguments.format(folder / "big.parquet")
    result = shell(f"{sys.executable} -m leapmodel {asked} > /dev/full")
    assert result.returncode == 1
    assert result.stderr == "leapmodel: error: no space left on device\n"


def test_a_terminal_without_greek_letters_still_gets_an_answer(folder: Path):
    asked = f"predict {folder / 'big.parquet'} --acceptance 0.8 --draft-latency 0.1"
    result = shell(f"PYTHONIOENCODING=ascii {sys.executable} -m leapmodel {asked}")
    assert result.returncode == 0
    assert "verdict: " in result.stdout


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_closed_streams_give_no_traceback(folder: Path, closed: str):
    result = shell(f"{sys.executable} -m leapmodel choose {folder / 'big.parquet'} --k 1 {closed}")
    assert result.returncode == 0
    assert "Traceback" not in result.stderr


def test_names_from_a_log_can_not_steer_the_terminal(folder: Path):
    frame = read_trace(folder / "big.parquet").frame
    hostile = "[bold]\x1b[31m:bug:\n" + "x" * 200
    renamed = frame.assign(task=hostile + frame["task"])
    write_trace(Trace.from_frame(renamed, {"warnings": [hostile]}), folder / "odd.parquet")
    result = leapmodel("describe", folder / "odd.parquet")
    assert result.exit_code == 0
    assert "\x1b" not in result.output
    assert "[bold]\\x1b[31m:bug:" in result.output


@pytest.mark.parametrize("warnings", [3, None, [{"a": 1}], "plain", float("nan")])
def test_odd_metadata_is_shown_or_left_out(folder: Path, warnings: object):
    odd = folder / "odd.jsonl"
    frame = read_trace(folder / "big.parquet").frame
    head = {"leapmodel": "trace", "warnings": warnings, "boundary_tools": 7, "x": float("inf")}
    lines = frame.to_json(orient="records", lines=True)
    odd.write_text(json.dumps(head) + "\n" + lines)
    for arguments in (["describe"], ["choose", "--draft", "x=0.8@0.1", "--k", "1"]):
        result = leapmodel(arguments[0], odd, *arguments[1:], "--json")
        assert result.exit_code == 0, result.output
        json.loads(result.output)


def test_a_killed_import_leaves_nothing_behind(tmp_path: Path):
    log = tmp_path / "log.json"
    turn = [[{"ls": "{}"}], []]
    with log.open("w") as stream:
        for task in range(60_000):
            record = {"id": f"t{task}", "result": [turn], "latency": [[1.0 + task, 0.5]]}
            stream.write(json.dumps(record) + "\n")
    command = [sys.executable, "-m", "leapmodel", "import", "bfcl", str(log), "-o"]
    process = subprocess.Popen([*command, str(tmp_path / "t.jsonl")], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) == 1 and time.monotonic() < deadline:
        time.sleep(0.02)  # until it has begun to write
    process.terminate()
    assert process.wait(timeout=30) in {0, 143}
    assert {p.name for p in tmp_path.iterdir()} <= {"log.json", "t.jsonl"}


def test_python_m_leapmodel_is_the_same_command(folder: Path):
    began = time.perf_counter()
    result = run("-m", "leapmodel", "describe", "big.parquet", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert time.perf_counter() - began < 20  # it is under 2 s; the limit only catches a hang


def test_a_table_of_milliseconds_is_not_taken_for_seconds(tmp_path: Path):
    log = tmp_path / "log.csv"
    log.write_text("task,latency_ms,action\na,1500,ls({})\n")
    asked = ["import", "table", log, "-o", tmp_path / "t.parquet", "--column", "gen_s=latency_ms"]
    result = leapmodel(*asked)
    assert result.exit_code == 2
    assert "latency_ms looks like ms: say --time-unit ms, or --time-unit s" in result.stderr
    assert leapmodel(*asked, "--time-unit", "ms").exit_code == 0
