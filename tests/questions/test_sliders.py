import sys

import pytest

from leapmodel.draft import stated_draft
from leapmodel.errors import UsageError
from leapmodel.predictor import predict
from leapmodel.sliders import plot_at_depth, speedup_curve, speedup_sliders
from leapmodel.trace import Trace


def test_the_curve_is_what_predict_says(workload):
    frame = workload.frame.assign(tool_s=(workload.frame["kind"] == "tool") * 0.2)
    trace = Trace.from_frame(frame)
    t_gen_s = trace.gen_s.mean()
    curve = speedup_curve(trace, acceptance=0.7, draft_cost=0.1, tool_cost=0.2 / t_gen_s)
    said = predict(trace, stated_draft(0.7, cost=0.1), curve.depths, n_resamples=50)
    assert curve.speedup == pytest.approx(said.speedup)


def test_the_picture_marks_the_depth(workload):
    curve = speedup_curve(workload, acceptance=0.7, draft_cost=0.1, tool_cost=0.0)
    ax = plot_at_depth(workload, curve, depth=2)
    assert [text.get_text() for text in ax.texts] == [f"k = 2: {curve.speedup[1]:.2f}x"]


def test_moving_a_slider_moves_the_picture(workload):
    pytest.importorskip("ipywidgets")
    *sliders, picture = speedup_sliders(workload).children
    assert [slider.description.split()[0] for slider in sliders] == [
        "acceptance",
        "draft",
        "tool",
        "depth",
    ]
    before = bytes(picture.value)
    sliders[0].value = 0.2
    assert bytes(picture.value) != before
    assert before.startswith(b"\x89PNG")


def test_without_ipywidgets_it_says_what_to_install(workload, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(UsageError, match=r"pip install 'leapmodel\[notebooks\]'"):
        speedup_sliders(workload)
