from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from leapmodel.comparison import QUANTITIES, compare_traces
from leapmodel.draft import stated_draft
from leapmodel.errors import UsageError
from leapmodel.trace import Trace
from tests.conftest import disturbed, random_trace


def row(comparison, quantity: str) -> dict:
    return comparison.table.set_index("quantity").loc[quantity].to_dict()


def test_a_trace_does_not_differ_from_itself(workload: Trace):
    same = compare_traces(workload, workload)
    assert same.table["difference"].abs().max() == 0
    assert not same.table["differs"].any()
    assert same.mix_distance == 0
    assert same.paired
    assert same.sentence.startswith("No difference is beyond chance")
    assert "the answer stays" in same.sentence


def test_figures_by_hand(workload: Trace):
    other = Trace.from_frame(workload.frame.assign(gen_s=workload.gen_s * 2))
    found = row(compare_traces(workload, other), "mean step time (s)")
    assert found["first"] == pytest.approx(workload.gen_s.mean())
    assert found["second"] == pytest.approx(2 * workload.gen_s.mean())
    assert found["low"] < found["difference"] < found["high"]
    assert found["differs"]
    cv = row(compare_traces(workload, other), "step time CV")
    assert cv["difference"] == pytest.approx(0, abs=1e-12)


def test_pairing_tasks_makes_the_interval_narrower(rng: np.random.Generator):
    trace = random_trace(rng, 60)
    slower = Trace.from_frame(trace.frame.assign(gen_s=trace.gen_s * 1.05))
    renamed = Trace.from_frame(slower.frame.assign(task="x" + slower.frame["task"]))
    paired = row(compare_traces(trace, slower), "mean step time (s)")
    unpaired = row(compare_traces(trace, renamed), "mean step time (s)")
    assert paired["differs"]
    assert unpaired["high"] - unpaired["low"] > 3 * (paired["high"] - paired["low"])


def test_another_mix_of_actions_is_found(rng: np.random.Generator):
    trace = random_trace(rng, 40)
    changed = disturbed(trace, rng, share=0.4, speed=1.0)
    found = compare_traces(trace, changed)
    assert found.mix_distance > 0.2
    assert found.mix_p_value < 0.01
    assert "the action mix" in found.sentence


def test_chance_gives_even_p_values(rng: np.random.Generator):
    everything = random_trace(rng, 400)
    names = np.array(everything.task_names)
    p_values = []
    for sample in range(10):
        halves = (names[sample * 40 : sample * 40 + 20], names[sample * 40 + 20 : sample * 40 + 40])
        parts = [
            Trace.from_frame(everything.frame[everything.frame["task"].isin(half)])
            for half in halves
        ]
        p_values.append(compare_traces(*parts, n_resamples=100).mix_p_value)
    assert min(p_values) > 0.001
    assert 0.2 < np.mean(p_values) < 0.8


def test_a_changed_answer_is_said(rng: np.random.Generator):
    trace = random_trace(rng, 40, with_tools=False)
    single = trace.frame.assign(segment=trace.frame["step"])  # every step a segment of its own
    found = compare_traces(trace, Trace.from_frame(single), draft=stated_draft(0.9, cost=0.05))
    assert "the answer changes: deploy" in found.sentence
    assert "don't" in found.sentence


def test_few_tasks_give_no_interval(rng: np.random.Generator):
    small = random_trace(rng, 5)
    found = compare_traces(small, small)
    assert found.table["low"].isna().all()
    assert not found.table["differs"].any()


def test_json_is_whole_and_a_path_is_refused(workload: Trace):
    value = compare_traces(workload, workload).to_dict()
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    assert [r["quantity"] for r in value["quantities"]] == list(QUANTITIES)
    with pytest.raises(UsageError, match=r"expected a Trace, as leapmodel.read_trace gives, found"):
        compare_traces("t.parquet", workload)  # type: ignore[arg-type]


def test_winsorizing_says_what_it_cut():
    frame = pd.DataFrame(
        {"task": "a", "step": range(100), "gen_s": [1.0] * 99 + [901.0], "action": "ls({})"}
    )
    trace = Trace.from_frame(frame)
    cut = trace.winsorized(99)
    assert cut.gen_s.max() < 20
    assert cut.metadata["warnings"][0].startswith("1 step times were cut down to the 99th")
    assert trace.gen_s.max() == 901
    with pytest.raises(UsageError, match="expected a percentile from 50 to 100, found 5"):
        trace.winsorized(5)
