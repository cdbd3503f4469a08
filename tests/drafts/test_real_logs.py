"""How predictable real agents are; their logs live beside the checkout and are not part of it.

The numbers of the drafts' settings were fixed by reason. Two decisions were taken with these logs'
scores in view: that a memory has to earn its say, and that the confusion tracker corrects against
what was expected; what the draft ``memory`` scores here is no fresh test of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from leapmodel.compared_draft import draft_from_predictions
from leapmodel.drafts import DRAFTS, agreement, memory_ablation, prequential, self_agreement
from leapmodel.importers import import_log
from leapmodel.predictor import predict
from leapmodel.trace import Trace

BFCL = "bfcl_results/gpt-oss-{}_multi_turn_base_result.json"
CLAUDE = "claude_code/{}_run_complete_dataset"


def real_trace(folder: Path, log: str) -> Trace:
    if log.endswith("b"):
        return import_log("bfcl", folder / BFCL.format(log))
    return import_log("claude-code", folder / CLAUDE.format(log), drop_tools=("ToolSearch",))


@pytest.mark.parametrize(
    ("log", "draft", "exact", "name_only"),
    [
        ("120b", "backoff", 0.397, 0.473),
        ("120b", "memory", 0.404, 0.485),
        ("120b", "macro", 0.165, 0.188),
        ("20b", "backoff", 0.367, 0.454),
        ("20b", "memory", 0.372, 0.462),
        ("20b", "macro", 0.149, 0.174),
        ("sonnet", "backoff", 0.458, 0.575),
        ("sonnet", "memory", 0.458, 0.571),
        ("sonnet", "macro", 0.150, 0.246),
        ("haiku", "backoff", 0.392, 0.476),
        ("haiku", "memory", 0.392, 0.511),
        ("haiku", "macro", 0.079, 0.115),
    ],
)
def test_agreement_on_real_logs(
    shared_traces: Path, log: str, draft: str, exact: float, name_only: float
):
    trace = real_trace(shared_traces, log)
    found = agreement(trace, prequential(trace, DRAFTS[draft]()))
    assert found.exact.value == pytest.approx(exact, abs=0.002)
    assert found.name_only.value == pytest.approx(name_only, abs=0.002)
    assert 0.01 < found.exact.standard_error < 0.05
    assert found.mean_us is not None
    assert found.mean_us < 10_000  # thousandths of a target step, however busy the machine


def test_an_agent_becomes_predictable(shared_traces: Path):
    trace = real_trace(shared_traces, "sonnet")
    found = agreement(trace, prequential(trace, DRAFTS["backoff"](), seed=0))
    curve = [part.exact.value for part in found.learning_curve]
    assert sum(curve[:3]) / 3 + 0.1 < sum(curve[-3:]) / 3


def test_what_these_drafts_would_buy(shared_traces: Path):
    trace = real_trace(shared_traces, "120b")
    draft = draft_from_predictions(trace, prequential(trace, DRAFTS["backoff"]()))
    prediction = predict(trace, draft, range(1, 7))
    assert prediction.draft_cost < 0.005
    assert prediction.speedup.max() == pytest.approx(1.08, abs=0.01)
    assert prediction.verdict.decision == "pilot first"


def test_episodes_add_most_and_little(shared_traces: Path):
    """BFCL's tasks stand next to similar ones; in shuffled order nothing is added."""
    found = memory_ablation(real_trace(shared_traces, "20b"))
    gain = dict(zip(found.memories, found.over_none, strict=True))
    assert 0 <= gain["contrast", "episodes", "confusion"].value < 0.02
    assert gain["episodes",].value > max(gain["contrast",].value, gain["confusion",].value)


def test_one_run_a_task_says_nothing_of_self_agreement(shared_traces: Path):
    assert self_agreement(real_trace(shared_traces, "120b")) is None
