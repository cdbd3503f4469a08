"""Agreement on held-out contexts, against counting by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leapmodel.drafts.held_out import held_out
from leapmodel.errors import UsageError
from leapmodel.predictions import Predictions
from leapmodel.trace import Trace


def trace_of(plans: dict[str, str]) -> Trace:
    rows = [
        {"task": task, "step": step, "gen_s": 1.0, "segment": 0, "action": letter}
        for task, plan in plans.items()
        for step, letter in enumerate(plan)
    ]
    return Trace.from_frame(pd.DataFrame(rows))


def said(trace: Trace, answers: list[str | None], repeat: int = 0) -> pd.DataFrame:
    return trace.frame[["task", "run", "step"]].assign(
        draft="d", repeat=repeat, action=answers, latency_s=0.1 + 0.1 * repeat
    )


def test_seen_and_unseen_add_up_to_all():
    trace = trace_of({"a": "xy", "b": "xz", "c": "xyz"})
    training = trace_of({"t": "xy", "u": "xyz", "v": "zz"})
    predictions = Predictions.from_frame(said(trace, ["x", "q", "x", "z", "x", None, "z"]))
    found = held_out(trace, predictions, training=training)
    assert found.exact.value == pytest.approx(5 / 7)
    assert found.parsed.value == pytest.approx(6 / 7)
    assert found.seen is not None
    assert found.unseen is not None
    assert found.seen.value == pytest.approx(3 / 5)
    assert found.unseen.value == pytest.approx(1.0)
    assert (found.n_seen, found.n_unseen) == (2, 1)
    assert "seen in training (2 runs): 60.0%" in found.summary()


def test_repeats_are_averaged():
    trace = trace_of({"a": "xy", "b": "xz"})
    both = pd.concat([said(trace, list("xyxz")), said(trace, list("xyqq"), 1)])
    found = held_out(trace, Predictions.from_frame(both))
    assert found.exact.value == pytest.approx(6 / 8)
    assert (found.repeats, found.n_contexts) == (2, 4)
    assert found.latency_s == pytest.approx(0.15)
    assert found.to_dict()["seen"] is None


def test_the_error_is_that_of_whole_tasks(rng: np.random.Generator):
    trace = trace_of({f"t{i}": "xxxx" for i in range(200)})
    hit = np.repeat(rng.random(200) < 0.7, 4)  # a task is hit or missed as a whole
    found = held_out(trace, Predictions.from_frame(said(trace, list(np.where(hit, "x", "q")))))
    share = hit.mean()
    assert found.exact.standard_error == pytest.approx((share * (1 - share) / 200) ** 0.5, rel=0.05)


def test_training_tasks_are_not_held_out():
    trace = trace_of({"a": "xy"})
    with pytest.raises(UsageError, match="has 1 of the held-out tasks, such as a"):
        held_out(trace, Predictions.from_frame(said(trace, ["x", "y"])), training=trace)
