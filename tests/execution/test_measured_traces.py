"""The runs in ``traces/measured/`` are what the README says of them, and pass the audit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from leapmodel.execution.auditing.audit import audit
from leapmodel.identity import trajectory_identity
from leapmodel.measured_set import read_measured_set
from leapmodel.rounds import read_rounds
from leapmodel.set_validation import validate_set

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "traces" / "measured"
SETS = {"bfloat16": MEASURED / "planning", "float32": MEASURED / "planning-float32"}
"""The control set as it was measured on two machines, by what they compute in."""
EXACT = "float32.rounds.parquet"
RECORDS = [path for folder in SETS.values() for path in sorted(folder.rglob("*.rounds.parquet"))]


@pytest.fixture(scope="module", params=SETS)
def precision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(precision: str) -> Path:
    return SETS[precision]


@pytest.fixture(scope="module")
def pairs(folder: Path):
    return read_measured_set(folder)


@pytest.fixture(scope="module")
def validations():
    return {name: validate_set(folder, n_resamples=2000) for name, folder in SETS.items()}


@pytest.fixture(scope="module")
def validation(validations):
    """That of the machine whose figures the README shows."""
    return validations["bfloat16"]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: str(path.relative_to(MEASURED)))
def test_every_commit_is_the_targets_own(path: Path):
    found = audit(read_rounds(path))
    assert found.violations == ()
    assert found.counts["commits"] > 0


def test_the_sequential_arms_are_whole(pairs):
    for pair in pairs.values():
        assert pair.trace.n_tasks == 63
        assert set(pair.rounds) > {"sequential"}


def test_the_rounds_account_for_the_time(pairs):
    for pair in pairs.values():
        for rounds in pair.rounds.values():
            parts = rounds.decomposition()
            assert (rounds.frame["residual_s"] >= 0).all()
            assert (parts["residual_s"] / parts["wall_s"] < 0.02).all()
            assert (parts["wall_over_clock"] - 1).abs().max() < 0.01


def test_the_trained_draft_is_faster_and_was_predicted_to_be(validation):
    rows = {(row.name, row.depth): row for row in validation.rows}
    assert rows["trained tiny-2m", 3].speedup >= 1.3
    assert rows["trained tiny-2m", 3].speedup_ci95[0] > 1.2
    errors = [abs(row.ex_ante_error) for row in validation.rows]
    assert max(errors) <= 0.10


def test_equation_4_is_above_by_what_concurrent_verification_costs(validation):
    """Assumption (b) does not hold on one core, and that is all that is missing.

    What Eq. 4 is aimed at, within 0.05 on four rows of five and within 0.10 on all, it misses.
    """
    errors = [abs(row.error) for row in validation.rows]
    assert (sum(e <= 0.05 for e in errors), sum(e <= 0.10 for e in errors)) == (1, 3)
    for row in validation.rows:
        rates = row.measured.ms_per_token
        assert 1.0 < rates["speculative"] / rates["sequential"] < 1.2
        assert abs(row.error + row.parts["ms_per_token"]) <= 0.05


def test_three_sizes_of_draft(validations):
    """On a machine where four requests at once slow each other down by more than a third."""
    rows = {(row.name, row.depth): row for row in validations["float32"].rows}
    assert len(rows) == 7
    speedups = {size: rows[f"trained tiny-{size}", 3].speedup for size in ("2m", "5m", "15m")}
    assert speedups == pytest.approx({"2m": 1.36, "5m": 1.62, "15m": 1.33}, abs=0.005)
    for (name, _), row in rows.items():
        assert (row.speedup_ci95[0] > 1.15) == (name != "untrained tiny-2m")
        assert 0.05 < row.error < 0.45
        assert abs(row.ex_ante_error) <= 0.09
        assert abs(row.error + row.parts["ms_per_token"]) <= 0.08
    assert rows["target-direct", 3].speedup == pytest.approx(1.24, abs=0.005)
    assert rows["untrained tiny-2m", 3].speedup_ci95[1] < 1
    assert validations["float32"].warnings == ()  # no arm ran on a faster machine than the other


def test_arms_that_take_turns_have_a_machine_of_one_speed(pairs, precision: str):
    turns = [
        rounds
        for pair in pairs.values()
        for rounds in pair.rounds.values()
        if rounds.metadata.get("turn")
    ]
    assert len(turns) == (precision == "float32")
    for rounds in turns:
        alone = rounds.ms_per_token(alone=True)
        assert alone["speculative"] / alone["sequential"] == pytest.approx(1, abs=0.05)


def test_the_readme_says_what_was_measured(validation):
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "README.md").read_text().splitlines()
        if line.startswith(("| tiny-", "| the target without"))
    ]
    said = {
        (draft.split(",")[0], draft.split(", ")[-1], int(k)): cells for draft, k, *cells in rows
    }
    assert len(said) == len(validation.rows)
    for row in validation.rows:
        kind, _, base = row.name.partition(" ")
        if kind == "target-direct":
            key = ("the target without its thought", "the target without its thought", row.depth)
        else:
            key = (base, kind, row.depth)
        numbers = [float(word) for cell in said[key] for word in re.findall(r"\d+\.\d+", cell)]
        ex_ante = row.speedup + row.ex_ante_error
        found = [row.to_dict()["commits"], row.speedup, *row.speedup_ci95, row.speedup_eq4, ex_ante]
        assert numbers == pytest.approx(found, abs=0.011)  # its intervals are of more resamples


def test_trajectories_agree_where_they_must(precision: str, folder: Path, pairs):
    alone = {name: pair.rounds["sequential"] for name, pair in pairs.items()}
    table = trajectory_identity(alone).table.set_index("comparison")
    assert table.loc["two target-only runs", "identical"] == 1
    exact = trajectory_identity({"float32": read_rounds(folder / EXACT)}).table
    assert len(exact) == 3
    assert (exact["identical"] == 1).all()
    if precision == "float32":
        runs = {(a, b): rounds for a, pair in pairs.items() for b, rounds in pair.rounds.items()}
        whole = trajectory_identity({" ".join(key): rounds for key, rounds in runs.items()}).table
        assert (whole["identical"] == 1).all()


def test_it_is_said_how_they_were_made_and_no_place_on_the_machine(folder: Path):
    about = json.loads((folder / "about.json").read_text())
    assert set(about) == {"machine", "versions", "weights"}
    commands = (folder / "commands.jsonl").read_text()
    ran = [json.loads(line) for line in commands.splitlines()]
    assert {one["command"].split()[1] for one in ran} >= {"collect", "train", "run", "audit"}
    for place in ("/root/", "/home/", "/tmp/"):
        assert place not in commands + json.dumps(about)
