from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from leapmodel.description import describe
from leapmodel.trace import Trace


def trace_of(gen_s, **columns) -> Trace:
    n = len(gen_s)
    frame = {"task": "a", "segment": 0, "step": range(n), "gen_s": gen_s, "action": "ls({})"}
    return Trace.from_frame(pd.DataFrame({**frame, **columns}))


def test_figures_by_hand():
    trace = Trace.from_frame(
        pd.DataFrame(
            {
                "task": ["a", "a", "a", "b"],
                "segment": [0, 0, 1, 0],
                "step": [0, 1, 2, 0],
                "gen_s": [1.0, 2.0, 3.0, 2.0],
                "tool_s": [0.5, 0.0, 1.5, 0.0],
                "action": ["ls({})", "<respond/>", "ls({})", None],
            }
        )
    )
    about = describe(trace)
    assert (about.tasks, about.segments, about.steps) == (2, 3, 4)
    assert about.gen_s["mean"] == 2.0
    assert about.gen_s["cv"] == pytest.approx(np.std([1, 2, 3, 2]) / 2)
    assert about.tool_step_share == 0.5
    assert about.tool_cost == 0.5
    assert about.tool_time_share == pytest.approx(0.2)
    assert about.segment_ends == {
        "reply": 1,
        "tool call (step cap, or the log ends)": 1,
        "output that did not parse": 1,
    }
    assert about.longest.iloc[0].to_dict() == {
        "task": "a",
        "run": 0,
        "step": 2,
        "gen_s": 3.0,
        "share": 0.375,
    }
    json.dumps(about.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("gen_s", "columns", "sentence"),
    [
        ([0.0005, 1.0, 2.0], {}, "1 step took less than 1 ms: not generation times?"),
        ([1.0] * 30, {}, "all steps took exactly 1 s: a placeholder? beta would be 1"),
        (
            [*np.linspace(1, 2, 20), *[1.5] * 20],
            {},
            "50% of the steps took exactly 1.5 s: a placeholder?",
        ),
        (
            [*np.linspace(1, 2, 49), 80.0],
            {},
            "1 step took over 20 times the median (1.51 s), with 52% of the generation time:"
            " queues or retries?",
        ),
        (
            [1.0, 2.0, 3.0],
            {"completion_tokens": [10, 20, 60_000]},
            "1 step generated over 2,000 tokens a second: their times can't be whole generations",
        ),
        (
            [1.0, 2.0],
            {},
            "no step has tool time: tools are taken to be instantaneous",
        ),
    ],
)
def test_suspicious_times_are_said(gen_s, columns, sentence):
    assert sentence in describe(trace_of(gen_s, **columns)).suspicious


def test_ordinary_times_are_not_suspicious(workload: Trace):
    assert describe(workload).suspicious == ()


def test_boundary_steps_are_counted(workload: Trace):
    cut = workload.with_boundary_tools(["send_*"])
    about = describe(cut)
    calls = workload.frame["action"].str.startswith("send_mail").sum()
    assert about.boundary_steps == calls > 0
    assert about.segment_ends["boundary tool"] == calls
    assert about.segments == describe(workload).segments + calls
