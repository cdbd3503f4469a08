"""The main job on real logs, which live beside the checkout and are not part of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leapmodel.choice import choose
from leapmodel.compared_draft import draft_from_run
from leapmodel.description import describe
from leapmodel.draft import stated_draft
from leapmodel.hits import compare_runs
from leapmodel.importers import import_log
from leapmodel.predictor import predict
from leapmodel.replay import exact_replay
from leapmodel.trace import Trace


@pytest.fixture(scope="module")
def bfcl_pair() -> tuple[Trace, Trace]:
    from tests.conftest import SHARED

    folder = SHARED / "traces" / "bfcl_results"
    if not folder.is_dir():
        pytest.skip("needs the real logs in ../shared/traces, which are not here")
    name = "gpt-oss-{}_multi_turn_base_result.json"
    return tuple(import_log("bfcl", folder / name.format(size)) for size in ("120b", "20b"))  # type: ignore[return-value]


def test_bfcl_description(bfcl_pair: tuple[Trace, Trace]):
    about = describe(bfcl_pair[0])
    assert (about.tasks, about.segments, about.steps) == (200, 732, 2178)
    assert about.gen_s["mean"] == pytest.approx(1.7548, abs=5e-5)
    assert about.gen_s["cv"] == pytest.approx(1.378, abs=5e-4)


def test_bfcl_exact_replay(bfcl_pair: tuple[Trace, Trace]):
    for terminal in ("accepted", "probe"):
        sums = exact_replay(bfcl_pair[0].segments, 0.8, [1, 2, 3, 4], terminal=terminal)  # type: ignore[arg-type]
        assert sums.commits.round(4).tolist() == [1.6127, 1.9009, 2.0261, 2.0787]
        assert sums.wait_inflation.round(4).tolist() == [1.2078, 1.2691, 1.2854, 1.2883]


def test_bfcl_hits_of_two_independent_runs(bfcl_pair: tuple[Trace, Trace]):
    compared = compare_runs(*bfcl_pair)
    assert compared.paired_tasks == 195
    assert (compared.steps.known.sum(), compared.steps.hit.sum()) == (973, 823)


def test_bfcl_prediction_from_two_runs(bfcl_pair: tuple[Trace, Trace]):
    """A 20B model that reasons as long as the 120B one can't help, and that is the answer."""
    big, small = bfcl_pair
    prediction = predict(big, draft_from_run(big, small), range(1, 7))
    assert (prediction.draft.facts["known"], prediction.draft.facts["hits"]) == (973, 823)
    assert prediction.draft_cost == pytest.approx(0.896, abs=0.001)
    assert prediction.draft.facts["unmatched_cost"] == pytest.approx(1.135, abs=0.001)
    assert prediction.verdict.decision == "don't"
    assert prediction.bounds is not None
    assert (prediction.bounds[0] < prediction.speedup).all()
    assert prediction.draft.coverage == pytest.approx(973 / 2178)
    assert "45% of the steps" in prediction.draft.warnings[0]


def test_bfcl_choice(bfcl_pair: tuple[Trace, Trace]):
    big, small = bfcl_pair
    drafts = [
        draft_from_run(big, small, name="small"),
        stated_draft(0.8, latency_s=0.2, name="tiny"),
    ]
    choice = choose(big, drafts, range(1, 7))
    assert (choice.verdict.draft, choice.verdict.decision) == ("tiny", "deploy")
    assert np.isnan(choice.drafts[0].break_even).all()


@pytest.mark.parametrize(
    ("model", "steps", "mean_s"), [("sonnet", 240, 6.6415), ("haiku", 227, 5.3405)]
)
def test_claude_code_sessions(shared_traces: Path, model: str, steps: int, mean_s: float):
    folder = shared_traces / "claude_code" / f"{model}_run_complete_dataset"
    trace = import_log("claude-code", folder, drop_tools=("ToolSearch",))
    about = describe(trace)
    assert (about.tasks, about.steps) == (45, steps)
    assert about.gen_s["mean"] == pytest.approx(mean_s, abs=5e-5)


def test_claude_code_boundary_tools_leave_less(shared_traces: Path):
    folder = shared_traces / "claude_code" / "sonnet_run_complete_dataset"
    trace = import_log("claude-code", folder, drop_tools=("ToolSearch",))
    cut = trace.with_boundary_tools(["*exchange*", "*modify*", "*cancel*", "*return*"])
    draft = stated_draft(0.8, latency_s=0.2)
    free, left = (predict(t, draft, [3]).speedup[0] for t in (trace, cut))
    assert describe(cut).boundary_steps > 0
    assert 1 < left < free
