from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leapmodel.paper.reconstructed_traces import BENCHMARKS, WARNING, reconstruct_trace
from leapmodel.paper.tables import load
from leapmodel.paper.turns import BFCL
from leapmodel.replay import exact_replay
from leapmodel.trace import read_trace

FOLDER = Path(__file__).resolve().parents[2] / "traces" / "reconstructed"


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_making_it_again_gives_the_file_that_is_shipped(benchmark):
    again, shipped = (
        reconstruct_trace(benchmark),
        read_trace(FOLDER / f"{benchmark.lower()}.parquet"),
    )
    # Text is one dtype when it is made and may be another when it is read; its letters decide.
    pd.testing.assert_frame_equal(again.frame, shipped.frame, check_dtype=False)
    assert again.metadata == shipped.metadata


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_it_says_that_it_is_no_measurement(benchmark):
    metadata = read_trace(FOLDER / f"{benchmark.lower()}.parquet").metadata
    assert metadata["origin"] == "reconstructed"
    assert metadata["warnings"] == [WARNING]
    assert "LEAP" in metadata["source"]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_steps_per_task_and_mean_time_are_table_9s(benchmark):
    trace = reconstruct_trace(benchmark)
    row = load("table09").frame.query(
        "target == 'Qwen3-32B' and draft == '0.6B' and benchmark == @benchmark"
    )
    assert round(trace.n_steps / trace.n_tasks, 1) == row["steps_per_task"].item()
    assert trace.gen_s.mean() == pytest.approx(row["t_gen_s"].item(), abs=0.001)


@pytest.mark.parametrize(
    ("benchmark", "kind"),
    [
        ("OpenAGI", "terminate"),
        ("TaskBench", "terminate"),
        ("tau2-bench", "terminate"),
        ("BFCL", "respond"),
    ],
)
def test_every_segment_ends_as_it_must(benchmark, kind):
    trace = reconstruct_trace(benchmark)
    last = trace.frame.groupby(["task", "segment"]).tail(1)
    assert len(last) == trace.n_segments
    assert (last["kind"] == kind).all()
    assert (trace.frame["kind"] == kind).sum() == trace.n_segments
    assert trace.frame["action"].notna().all()


def test_bfcls_turns_have_the_stated_mean_and_task_count():
    trace = reconstruct_trace("BFCL")
    assert trace.n_tasks == 60
    assert trace.segments.lengths.mean() == pytest.approx(2.6, abs=0.01)
    assert np.bincount(trace.segments.lengths).tolist() == [0, 0, 146, 54, 20, 8, 3, 2]


def test_bfcls_turns_are_two_steps_and_a_geometric_number():
    mean_extra = BFCL.n_steps / BFCL.n_turns - 2
    stay = mean_extra / (1 + mean_extra)
    for length, turns in BFCL.turns_of_length.items():
        expected = BFCL.n_turns * (1 - stay) * stay ** (length - 2)
        assert turns == pytest.approx(expected, abs=1.2)


def test_bfcls_turns_meet_what_was_not_used_for_them():
    # Table 8: a hand-written probe aside, 0.49 offline to 0.53 live per proposal, a_2 = 0.62
    first_acceptance = 0.38 / (1 - 0.26)  # q_1 over the rounds that propose (App. D.2)
    replay = exact_replay(BFCL.segments(), [first_acceptance, 0.62], [2], terminal="probe")
    assert replay.proposal_rates[0, 0] == pytest.approx(1 - 0.26, abs=0.02)
    assert replay.hit_rates[0] == pytest.approx([0.38, 0.07], abs=0.02)
    assert replay.commits[0] == pytest.approx(1.45, abs=0.02)
    # Sec. 4.3: f = 0.62
    assert 1 - BFCL.n_turns / BFCL.n_steps == pytest.approx(0.62, abs=0.005)
