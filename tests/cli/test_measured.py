"""The commands on measured rounds: validate, identity, audit, and a pilot as evidence."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from leapmodel.cli import main
from leapmodel.predictions import Predictions, write_predictions
from leapmodel.predictor import SLOWED
from leapmodel.rounds import Rounds, read_rounds, write_rounds
from leapmodel.trace import read_trace, write_trace
from tests.execution.simulated import simulate


def leapmodel(*arguments: str | Path, width: int = 132) -> Result:
    return CliRunner(env={"COLUMNS": str(width)}).invoke(main, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    runs = {k: simulate(n_tasks=20, depth=k, follow_gold=True, diverges=0.1) for k in (1, 3, 5)}
    for k, rounds in runs.items():
        write_rounds(rounds, folder / f"k{k}.{'jsonl' if k == 1 else 'parquet'}")
    one = runs[3]
    write_rounds(one.sequential, folder / "sequential.parquet")
    write_rounds(one.speculative, folder / "speculative.parquet")
    write_trace(one.sequential_trace(), folder / "trace.parquet")
    steps = one.sequential.committed[["task", "run", "step", "action"]]
    write_predictions(
        Predictions.from_frame(steps.assign(draft="scripted draft", latency_s=0.08)),
        folder / "predicted.parquet",
    )
    probed = {"leapmodel": "probe", "version": 1, "draft_latency_s": 0.05, "machine": "this"}
    (folder / "probe.json").write_text(json.dumps(probed))
    return folder


@pytest.mark.parametrize("width", [80, 132])
def test_validate_fits_the_screen(folder: Path, width: int):
    files = [folder / name for name in ("k1.jsonl", "k3.parquet", "k5.parquet")]
    predicted = ["--predictions", folder / "predicted.parquet"]
    result = leapmodel("validate", *files, *predicted, width=width)
    assert result.exit_code == 0, result.output
    table = result.output.split("Eq. 4: ")[0]
    assert max(map(len, table.splitlines())) <= width
    # a cell too wide for its column would end so; the headings q₁ q₂ … do too
    assert "…" not in table.replace("q₁ q₂ …", "")
    for words in ("i.i.d.", "no idle", "β repl.", "β meas.", "before the run (ex ante)"):
        assert words in result.output


def test_validate_says_the_same_as_json(folder: Path):
    shown = leapmodel("validate", folder / "k3.parquet").output
    value = json.loads(leapmodel("validate", folder / "k3.parquet", "--json").output)
    row = value["rows"][0]
    assert f"{row['speedup_eq4']:.2f}" in shown
    assert f"{row['error']:+.2f} ± {row['error_se']:.2f}" in shown
    low, high = row["speedup_measured_ci95"]
    assert f"{low:.2f} to {high:.2f}" in shown
    assert value["sentence"] in shown
    assert row["ex_ante"] is None
    assert sum(row["parts"].values()) == pytest.approx(-row["error"])


def test_a_trace_first_or_the_sequential_arm_apart(folder: Path):
    ways = [
        ["trace.parquet", "speculative.parquet"],
        ["speculative.parquet", "sequential.parquet"],
        ["k3.parquet"],
    ]
    rows = [
        json.loads(leapmodel("validate", *(folder / name for name in files), "--json").output)
        for files in ways
    ]
    first, *others = (value["rows"] for value in rows)
    assert len(first) == 1
    for other in others:
        assert other[0]["speedup_measured"] == pytest.approx(first[0]["speedup_measured"], rel=1e-2)
        assert other[0]["speedup_eq4"] == pytest.approx(first[0]["speedup_eq4"])


def test_the_latency_from_a_probe(folder: Path):
    question = ["validate", folder / "k3.parquet", "--predictions", folder / "predicted.parquet"]
    terms = [
        json.loads(leapmodel(*question, *more, "--json").output)["rows"][0]["ex_ante"]["draft_term"]
        for more in ([], ["--draft-latency", "0.05"], ["--probe", folder / "probe.json"])
    ]
    assert terms[1] == terms[2] == pytest.approx(terms[0] * 5 / 8)


def test_validate_draws(folder: Path):
    path = folder / "validation.png"
    result = leapmodel("validate", folder / "k3.parquet", "--plot", path)
    assert result.exit_code == 0, result.output
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_measured_run_is_evidence(folder: Path):
    question = ["predict", folder / "trace.parquet", "--rounds", folder / "k3.parquet"]
    shown = leapmodel(*question, "--k", "1:3")
    assert shown.exit_code == 0, shown.output
    assert "draft: the rounds of a measured run; " in shown.output
    named = json.loads(leapmodel(*question, "--draft-name", "scripted draft", "--json").output)
    assert named["draft"] == "scripted draft"
    chosen = leapmodel(
        "choose",
        folder / "trace.parquet",
        "--draft",
        f"pilot={folder / 'k3.parquet'}",
        "--draft",
        f"{folder / 'k1.jsonl'}@0.5",
        "--k",
        "1:2",
        "--json",
    )
    value = json.loads(chosen.output)
    assert [draft["draft"] for draft in value["drafts"]] == ["pilot", "scripted draft"]


def test_a_probe_says_what_drafts_cost_and_how_the_target_slows_down(folder: Path):
    times = [{"requests": n, "ms_per_token": 30.0 + 3 * n} for n in (1, 2, 3)]
    probed = {"leapmodel": "probe", "version": 1, "draft_latency_s": 0.05, "token_times": times}
    slow = folder / "slow.json"
    slow.write_text(json.dumps(probed))

    def chosen(*arguments: object) -> dict:
        shown = leapmodel("choose", folder / "trace.parquet", "--k", "2", *arguments, "--json")
        assert shown.exit_code == 0, shown.output
        return json.loads(shown.output)["drafts"][0]

    stated = chosen("--draft", "0.8@0.05")
    asked = ["--acceptance", "0.8", "--probe", slow, "--k", "2", "--json"]
    predicted = json.loads(leapmodel("predict", folder / "trace.parquet", *asked).output)
    assert predicted["speedup"][0] < stated["speedup"][0]
    for said in (
        ["--draft", f"0.8@{slow}"],
        ["--draft", "0.8@0.05", "--probe", slow],
        ["--draft", f"0.8@{slow}", "--probe", slow],
    ):
        assert chosen(*said)["speedup"] == predicted["speedup"]
    page = folder / "page.html"
    asked = ["--draft", f"0.8@{slow}", "-o", page]
    assert leapmodel("report", folder / "trace.parquet", *asked).exit_code == 0
    assert SLOWED in html.unescape(page.read_text())


def test_an_evidence_trace_that_nothing_uses_is_refused(folder: Path):
    trace = folder / "trace.parquet"
    for drafts in ([], ["--draft", "0.8@0.05"], ["--draft", folder / "k3.parquet"]):
        said = leapmodel("choose", trace, "--evidence-trace", trace, *drafts)
        assert said.exit_code == 2
        assert "--evidence-trace says nothing about the drafts" in said.output


def test_names_of_files_may_hold_the_marks_that_split_a_draft(folder: Path, tmp_path: Path):
    odd = tmp_path / "lr=0.1" / "run@2"
    odd.mkdir(parents=True)
    for name, source in (("a=b.parquet", "predicted.parquet"), ("p@1.json", "probe.json")):
        (odd / name).write_bytes((folder / source).read_bytes())

    def speedups(*specs: str) -> list[float]:
        drafts = [word for spec in specs for word in ("--draft", spec)]
        shown = leapmodel("choose", folder / "trace.parquet", "--k", "2", *drafts, "--json")
        assert shown.exit_code == 0, shown.output
        return [draft["speedup"][0] for draft in json.loads(shown.output)["drafts"]]

    plain = speedups(f"n={folder / 'predicted.parquet'}@0.05")
    for body in (f"{odd}/a=b.parquet", f"n={odd}/a=b.parquet"):
        for cost in ("0.05", f"{odd}/p@1.json"):
            assert speedups(f"{body}@{cost}") == plain
    assert speedups(f"{odd}/a=b.parquet") == speedups(str(folder / "predicted.parquet"))
    assert speedups(f"0.8@{odd}/p@1.json") == speedups("0.8@0.05")


@pytest.mark.parametrize("cost", ["nosuch.json", "", "x", "0.1,0.2", "nosuch.jsonx"])
def test_a_cost_that_is_none(folder: Path, cost: str):
    found = leapmodel("choose", folder / "trace.parquet", "--draft", f"0.8@{cost}")
    assert found.exit_code == 2
    assert f"found '{cost}'" in found.output


def test_a_probe_speaks_of_its_own_draft_only(folder: Path):
    def validated(*names: str) -> Result:
        words: list[str | Path] = []
        for number, name in enumerate(names):
            file = folder / f"named{number}.json"
            probed = {"leapmodel": "probe", "draft": name, "draft_latency_s": 0.05}
            file.write_text(json.dumps(probed))
            words += ["--probe", file]
        question = ["validate", folder / "k3.parquet", "--predictions"]
        return leapmodel(*question, folder / "predicted.parquet", *words)

    assert validated("scripted draft").exit_code == 0
    other = validated("another")
    assert other.exit_code == 2
    said = "named0.json: no latency for the draft 'scripted draft', only for another"
    assert said in other.output
    twice = validated("scripted draft", "scripted draft")
    assert "expected one probe of each draft, found 2 of 'scripted draft'" in twice.output


def test_predictions_speak_of_their_own_draft_only(folder: Path, tmp_path: Path):
    steps = read_rounds(folder / "k3.parquet").sequential.committed[["task", "run", "step"]]

    def validated(*names: str | None) -> Result:
        words: list[str | Path] = []
        for number, name in enumerate(names):
            said = steps.assign(action="Fill Mask", latency_s=0.05)
            file = tmp_path / f"p{number}.jsonl"
            made = said if name is None else said.assign(draft=name)
            write_predictions(Predictions.from_frame(made), file)
            words += ["--predictions", file]
        return leapmodel("validate", folder / "k3.parquet", *words)

    assert validated(None).exit_code == 0
    assert validated("scripted draft", "another").exit_code == 0
    for names in (["zz"], ["zz", "another"]):
        other = validated(*names)
        assert other.exit_code == 2
        said = f"holds the drafts {', '.join(names)}, not 'scripted draft'"
        assert said in other.output
        assert "p0.jsonl" in other.output
        assert len(other.output.strip().splitlines()) == 1


def test_a_folder_takes_no_files_beside_it(folder: Path):
    for more in (["--probe", folder / "probe.json"], ["--draft-latency", "1"], ["--lenient"]):
        found = leapmodel("validate", folder, *more)
        assert found.exit_code == 2
        assert "expected it alone" in found.output


def test_identity(folder: Path):
    files = [folder / "k1.jsonl", folder / "k3.parquet"]
    shown = leapmodel("identity", *files, width=80)
    assert shown.exit_code == 0, shown.output
    assert "two target-only runs" in shown.output
    value = json.loads(leapmodel("identity", *files, "--json").output)
    shares = {
        (row["comparison"], row["configuration"]): row["identical"] for row in value["comparisons"]
    }
    assert len(shares) == 3
    assert f"{shares['two target-only runs', '']:.1%}" in shown.output


def test_a_record_is_no_second_run_of_itself(folder: Path, tmp_path: Path):
    path = folder / "k1.jsonl"
    twice = leapmodel("identity", path, path)
    assert twice.exit_code == 2
    assert twice.output.endswith(f"error: expected each record once, found {path} 2 times\n")
    write_rounds(read_rounds(path), tmp_path / "copy.parquet")
    for copy in (folder / ".." / folder.name / "k1.jsonl", tmp_path / "copy.parquet"):
        copied = leapmodel("identity", path, copy)
        assert copied.exit_code == 2
        assert "found the same record (a copy of it?)" in copied.output


def test_identity_tells_an_invalid_output_from_a_record_that_ends(tmp_path: Path):
    whole = simulate(n_tasks=1, arms=["sequential"], follow_gold=True)
    said = list(whole.frame["verifications"])
    said[-1] = [{**said[-1][0], "output": "", "action": None}]
    files = {"ended": whole.frame.iloc[:-1], "invalid": whole.frame.assign(verifications=said)}
    for name, frame in files.items():
        later = frame.assign(started_s=frame["started_s"] + 1000)
        write_rounds(Rounds.from_frame(later, whole.metadata), tmp_path / f"{name}.parquet")
    write_rounds(whole, tmp_path / "whole.parquet")
    against = {
        name: leapmodel("identity", tmp_path / "whole.parquet", tmp_path / f"{name}.parquet").output
        for name in files
    }
    assert "nothing, its record ends before (ended: sequential)" in against["ended"]
    assert "no valid action (invalid: sequential)" in against["invalid"]


def test_audit(folder: Path, tmp_path: Path):
    clean = leapmodel("audit", folder / "k1.jsonl", folder / "k3.parquet")
    assert clean.exit_code == 0, clean.output
    assert clean.output.count(": 0 violations in 20 tasks, 40 runs, ") == 2
    rounds = read_rounds(folder / "k3.parquet")
    frame = rounds.frame.copy()
    frame["verifications"] = [
        [{**v, "output": "<tool>Teleport</tool>"} for v in asked] if i == 5 else asked
        for i, asked in enumerate(frame["verifications"])
    ]
    write_rounds(Rounds.from_frame(frame, rounds.metadata), tmp_path / "bad.jsonl")
    found = leapmodel("audit", tmp_path / "bad.jsonl")
    assert found.exit_code == 1
    where = frame.iloc[5]
    assert f"task {where['task']}, run 0, {where['arm']}, round {where['round']}: " in found.output
    assert "expected no action, found " in found.output
    value = json.loads(leapmodel("audit", tmp_path / "bad.jsonl", "--json").output)
    assert value["passed"] is False
    assert value["files"][0]["violations"][0]["task"] == where["task"]
    other = leapmodel("audit", folder / "k1.jsonl", "--setting", "seed=7")
    assert other.exit_code == 1


BAD_USAGE = {
    "two traces": (["validate", "trace.parquet", "trace.parquet"], "expected one trace and rounds"),
    "no rounds": (["validate", "trace.parquet"], "expected a file of rounds, found "),
    "a latency without predictions": (
        ["validate", "k3.parquet", "--draft-latency", "1"],
        "a draft's latency says nothing without --predictions",
    ),
    "two latencies": (
        ["validate", "k3.parquet", "--draft-latency", "1", "--probe", "probe.json"],
        "expected --draft-latency or --probe, found both",
    ),
    "no file": (["audit"], "Missing argument 'ROUNDS…'"),
    "no such benchmark": (["audit", "k3.parquet", "--benchmark", "plan"], "did you mean planning?"),
    "no such setting": (["audit", "k3.parquet", "--setting", "size=3"], "its settings are seed"),
    "a setting's value": (
        ["audit", "k3.parquet", "--setting", "seed=[1]"],
        "k3.parquet: seed: expected a whole number, found [1]",
    ),
    "a setting nested deeply": (
        ["audit", "k3.parquet", "--setting", f"seed={'[' * 100_000}"],
        "k3.parquet: seed: expected a whole number, found '[[[[",
    ),
    "a setting called name": (
        ["audit", "k3.parquet", "--setting", "name=7"],
        "k3.parquet: benchmark planning: ",
    ),
    "no setting": (["audit", "k3.parquet", "--setting", "seed"], "expected KEY=VALUE"),
    "another draft": (
        ["predict", "trace.parquet", "--rounds", "k3.parquet", "--draft-name", "big"],
        "the rounds hold the drafts scripted draft: not 'big'",
    ),
}


@pytest.mark.parametrize("case", BAD_USAGE)
def test_bad_usage_is_one_line_and_exit_2(folder: Path, case: str, monkeypatch):
    monkeypatch.chdir(folder)
    arguments, said = BAD_USAGE[case]
    result = leapmodel(*arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert len(result.output.strip().splitlines()) == 1


BAD_DATA = {
    "a missing file": (["validate", "gone.parquet"], "no such file or directory"),
    "a trace to audit": (["audit", "trace.parquet"], "expected a rounds file, found a 'trace'"),
    "one arm alone": (["validate", "speculative.parquet"], "expected a sequential arm, or a trace"),
    "no speculative arm": (["validate", "sequential.parquet"], "expected a speculative arm"),
    "a probe that is none": (
        ["validate", "k3.parquet", "--predictions", "predicted.parquet", "--probe", "k1.jsonl"],
        "k1.jsonl: expected a JSON object, found something else",
    ),
    "nothing to compare": (["identity", "sequential.parquet"], "expected two runs of one task"),
    "rounds where a trace belongs": (["describe", "k3.parquet"], "expected a trace file, found a"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_is_one_line_and_exit_1(folder: Path, case: str, monkeypatch):
    monkeypatch.chdir(folder)
    arguments, said = BAD_DATA[case]
    result = leapmodel(*arguments)
    assert result.exit_code == 1
    assert said in result.output
    assert len(result.output.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "benchmark", [None, 7, "cooking", {"name": "planning", "settings": {"seed": [1]}}]
)
def test_a_benchmark_that_can_not_be_built_is_one_line(folder: Path, tmp_path: Path, benchmark):
    trace = read_trace(folder / "trace.parquet")
    trace.metadata["benchmark"] = benchmark
    write_trace(trace, tmp_path / "trace.jsonl")
    rounds = read_rounds(folder / "k3.parquet")
    rounds.metadata["benchmark"] = benchmark
    write_rounds(rounds, tmp_path / "r.jsonl")
    asked = ["agreement", tmp_path / "trace.jsonl", "--draft-url", "http://127.0.0.1:1"]
    for arguments in (asked, ["audit", tmp_path / "r.jsonl"]):
        result = leapmodel(*arguments)
        assert isinstance(result.exception, SystemExit), result.exception
        assert len(result.output.strip().splitlines()) == 1
        assert f"{arguments[1]}: " in result.output


def test_a_half_written_line_is_named(folder: Path, tmp_path: Path):
    path = tmp_path / "cut.jsonl"
    path.write_bytes((folder / "k1.jsonl").read_bytes()[:-30])
    for command in ("validate", "identity"):
        result = leapmodel(command, path)
        assert result.exit_code == 1
        assert "(the file ends inside this line)" in result.output
    lenient = leapmodel("validate", path, "--lenient")
    assert lenient.exit_code == 0, lenient.output
    assert "dropped 1 task, kept 19" in lenient.output


def test_names_and_numbers_that_a_file_may_hold(tmp_path: Path):
    rounds = simulate(n_tasks=11)
    frame = rounds.frame.assign(draft="$x_\x1b[31m")
    odd = {**rounds.metadata, "warnings": {"a": 1}, "draft": 7, "terminal": ["?"], "target": 3}
    write_rounds(Rounds.from_frame(pd.DataFrame(frame), odd), tmp_path / "odd.jsonl")
    for command in ("validate", "identity"):
        result = leapmodel(command, tmp_path / "odd.jsonl")
        assert result.exit_code == 0, result.output
        assert "\x1b" not in result.output
    assert (
        leapmodel("validate", tmp_path / "odd.jsonl", "--plot", tmp_path / "p.svg").exit_code == 0
    )


def test_validate_takes_a_folder_of_runs(folder: Path, tmp_path: Path):
    pair = tmp_path / "set" / "pair"
    pair.mkdir(parents=True)
    rounds = read_rounds(folder / "k3.parquet")
    write_trace(rounds.sequential_trace(), pair / "trace.parquet")
    write_rounds(rounds, pair / "trained-k3.rounds.parquet")
    value = json.loads(leapmodel("validate", tmp_path / "set", "--json").output)
    alone = json.loads(leapmodel("validate", folder / "k3.parquet", "--json").output)
    assert value["rows"] == alone["rows"]
    both = leapmodel("validate", tmp_path / "set", folder / "k3.parquet")
    assert (both.exit_code, both.stdout) == (2, "")
    one = json.loads(leapmodel("validate", pair, "--json").output)
    assert one["rows"] == alone["rows"]
    none = leapmodel("validate", folder)
    assert none.exit_code == 1
    assert "expected a speculative run in a *.rounds.parquet, found none" in none.stderr
    none = leapmodel("validate", tmp_path)
    assert none.exit_code == 1
    assert "trace.parquet" in none.stderr
