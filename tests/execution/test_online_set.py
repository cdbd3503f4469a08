"""The streams in ``traces/measured`` are what their README says, and pass the audit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leapmodel.execution.auditing.audit import audit
from leapmodel.identity import trajectory_identity
from leapmodel.online_curve import read_online_curves
from leapmodel.rounds import Rounds, read_rounds
from leapmodel.versions import read_versions

MEASURED = Path(__file__).parents[2] / "traces" / "measured"
SETS = {"retrain": MEASURED / "online", "continual": MEASURED / "online-continual"}
"""The folder of each method's stream."""
RECORDS = {
    **{method: folder / f"{method}.rounds.parquet" for method, folder in SETS.items()},
    **{
        f"{method}, {run}": folder / "offline" / f"{run}.rounds.parquet"
        for method, folder in SETS.items()
        for run in ("sequential", "trained-k3")
    },
}


@pytest.fixture(scope="module")
def records() -> dict[str, Rounds]:
    return {run: read_rounds(path) for run, path in RECORDS.items()}


@pytest.fixture(scope="module")
def curves():
    return {method: read_online_curves(folder)[method] for method, folder in SETS.items()}


@pytest.mark.parametrize("run", RECORDS)
def test_every_commit_is_the_targets_own(records, run: str):
    found = audit(records[run])
    assert found.violations == ()
    assert found.counts["commits"] > 0


@pytest.mark.parametrize("method", SETS)
def test_ten_batches_are_each_served_by_the_version_before(records, method: str):
    for arm in (records[method].speculative, records[method].sequential):
        assert arm.frame["task"].nunique() == 250
        assert arm.frame.groupby("batch")["task"].nunique().tolist() == [25] * 10
    frame = records[method].speculative.frame
    assert (frame["draft"] == "version " + frame["batch"].astype(str)).all()
    assert frame["depth"].max() == 3
    online = records[method].metadata["online"]
    assert (online["method"], online["swap"]) == (method, "merged")
    versions = read_versions(SETS[method] / f"{method}.versions.json")
    assert [version.adapter for version in versions[:2]] == [None, "version-01"]
    assert len(versions) == 11


def test_retraining_learns_from_all_that_was_committed(records):
    pairs = [version.pairs for version in read_versions(SETS["retrain"] / "retrain.versions.json")]
    steps = int(records["retrain"].sequential.frame["committed"].sum())
    assert pairs == sorted(pairs)
    assert abs(pairs[-1] - steps) < 0.05 * steps


def test_going_on_learns_from_the_new_batch_and_as_much_of_the_earlier_ones(records):
    pairs = [
        version.pairs for version in read_versions(SETS["continual"] / "continual.versions.json")
    ]
    frame = records["continual"].speculative.frame
    steps = frame.groupby("batch")["committed"].sum().tolist()
    assert pairs[0] == 0
    assert abs(pairs[1] - steps[0]) < 0.05 * steps[0]
    for learned, met in zip(pairs[2:], steps[1:], strict=True):
        assert abs(learned - 2 * met) < 0.1 * met


@pytest.mark.parametrize("run", RECORDS)
def test_the_rounds_account_for_the_time(records, run: str):
    parts = records[run].decomposition()
    assert (records[run].frame["residual_s"] >= 0).all()
    assert (parts["residual_s"] / parts["wall_s"] < 0.02).all()
    assert (parts["wall_over_clock"] - 1).abs().max() < 0.01


@pytest.mark.parametrize("method", SETS)
def test_the_target_takes_its_own_way_whoever_drafts(records, method: str):
    table = trajectory_identity({method: records[method]}).table
    assert (table["identical"] == 1).all()


@pytest.mark.parametrize("method", SETS)
def test_the_draft_gets_better_and_pays(curves, method: str):
    table = curves[method].table
    assert len(table) == 10
    assert table["agreement"].max() > table["agreement"][0] + 0.15
    assert table["speedup"][0] < 1
    assert table["speedup"][5:].mean() > table["speedup"][0] + 0.1
    assert table["speedup_so_far"].iloc[-1] > 1.05


def test_only_what_is_trained_anew_keeps_what_it_learned(curves):
    """Going on wears a version out; the notebook and the README say so."""
    first, last = (curves["retrain"].table["agreement"][0], curves["retrain"].last.agreement)
    assert last > first + 0.15
    assert curves["continual"].last.agreement < curves["continual"].table["agreement"].max() - 0.05


@pytest.mark.parametrize("folder", SETS.values(), ids=lambda folder: folder.name)
def test_no_place_on_the_machine_is_named(folder: Path):
    commands = (folder / "commands.jsonl").read_text()
    text = (folder / "about.json").read_text() + commands
    assert {"collect", "online", "audit"} <= {
        json.loads(line)["command"].split()[1] for line in commands.splitlines()
    }
    for place in ("/root/", "/home/", "/tmp/"):
        assert place not in text
