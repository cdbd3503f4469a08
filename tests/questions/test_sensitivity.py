from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leapmodel.compared_draft import draft_from_predictions, draft_from_run
from leapmodel.draft import stated_draft
from leapmodel.predictor import predict
from leapmodel.sensitivity import sensitivity
from leapmodel.trace import Trace
from tests.conftest import disturbed
from tests.questions.test_predictor import predictions_for


def changes(trace: Trace, draft) -> pd.Series:
    table = sensitivity(trace, predict(trace, draft, [1, 2, 3]))
    return table.set_index("what_if")["speedup"]


@pytest.mark.parametrize("kind", ["stated", "run", "task", "predictions"])
def test_every_change_goes_the_right_way(workload: Trace, rng: np.random.Generator, kind: str):
    draft = {
        "stated": lambda: stated_draft([0.7, 0.6], latency_s=0.1),
        "run": lambda: draft_from_run(workload, disturbed(workload, rng, 0.3)),
        "task": lambda: draft_from_run(workload, disturbed(workload, rng, 0.3), pool="task"),
        "predictions": lambda: draft_from_predictions(
            workload, predictions_for(workload, rng, 0.7, repeats=2)
        ),
    }[kind]()
    s = changes(workload, draft)
    prediction = predict(workload, draft, [1, 2, 3])
    assert s["as predicted"] == pytest.approx(prediction.verdict.speedup)
    assert s["draft twice as slow"] < s["as predicted"] < s["draft twice as fast"]
    assert s["hits 10 points lower"] < s["as predicted"] < s["hits 10 points higher"]
    assert s["tools twice as slow"] < s["as predicted"] < s["tools instantaneous"]


def test_changed_inputs_equal_a_prediction_made_with_them(workload: Trace):
    draft = stated_draft(0.7, latency_s=0.1)
    k = predict(workload, draft, [1, 2, 3]).verdict.depth
    s = changes(workload, draft)
    fast = predict(workload, stated_draft(0.7, latency_s=0.05), [k]).speedup[0]
    fewer = predict(workload, stated_draft(0.6, latency_s=0.1), [k]).speedup[0]
    tools = Trace.from_frame(workload.frame.assign(tool_s=workload.tool_s * 2))
    slow_tools = predict(tools, draft, [k]).speedup[0]
    assert s["draft twice as fast"] == pytest.approx(fast)
    assert s["hits 10 points lower"] == pytest.approx(fewer)
    assert s["tools twice as slow"] == pytest.approx(slow_tools)


def test_without_tool_time_tools_are_left_alone(rng: np.random.Generator):
    trace = Trace.from_frame(
        pd.DataFrame({"task": "a", "step": range(50), "gen_s": 1.0, "action": "ls({})"})
    )
    assert "tools twice as slow" not in changes(trace, stated_draft(0.5, cost=0.1))


@pytest.mark.parametrize("acceptance", [0.0, 1.0])
def test_at_the_edges_hits_stay_within_0_and_1(workload: Trace, acceptance: float):
    assert np.isfinite(changes(workload, stated_draft(acceptance, cost=0.1))).all()


def test_a_target_that_slows_down_does_so_in_every_case(workload: Trace):
    draft, slowdown = stated_draft(0.7, latency_s=0.1), (1.0, 1.1, 1.3)
    prediction = predict(workload, draft, [2], slowdown=slowdown)
    s = sensitivity(workload, prediction).set_index("what_if")["speedup"]
    assert s["as predicted"] == pytest.approx(prediction.speedup[0])
    fewer = predict(workload, stated_draft(0.6, latency_s=0.1), [2], slowdown=slowdown)
    assert s["hits 10 points lower"] == pytest.approx(fewer.speedup[0])
