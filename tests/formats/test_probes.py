"""Probe files: what is written is read again, and what is not a probe is said to be none."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from leapmodel.errors import DataError, UsageError
from leapmodel.probes import Probe, TokenTime, read_probe, what_was_probed

PROBE = {
    "leapmodel": "probe",
    "version": 1,
    "draft": "tiny",
    "target": "large",
    "draft_latency_s": 0.05,
    "draft_latency_se": 0.001,
    "calls": 20,
    "token_times": [
        {"requests": 1, "ms_per_token": 30.0, "se": 0.1, "batches": 4},
        {"requests": 3, "ms_per_token": 36.0, "se": 0.2, "batches": 4},
    ],
}


def test_what_is_written_is_read_again(tmp_path: Path):
    times = (TokenTime(1, 30.0, math.nan, 1), TokenTime(2, 33.0, 0.5, 4))
    probe = Probe("tiny", "large", 0.05, math.nan, 1, times)
    (tmp_path / "probe.json").write_text(json.dumps(probe.to_dict(), allow_nan=False))
    again = read_probe(tmp_path / "probe.json")
    assert again.slowdown == probe.slowdown == (1.0, 1.1)
    assert math.isnan(again.draft_latency_se)
    assert "nan" not in again.summary()
    assert "30.00 ms per token" in again.summary()


def test_a_level_that_was_not_probed_takes_the_next_lower_one(tmp_path: Path):
    (tmp_path / "probe.json").write_text(json.dumps(PROBE))
    assert read_probe(tmp_path / "probe.json").slowdown == (1.0, 1.0, 1.2)


@pytest.mark.parametrize(
    ("changed", "column"),
    [
        ({"draft_latency_s": None}, "draft_latency_s"),
        ({"draft_latency_s": 0}, "draft_latency_s"),
        ({"draft_latency_s": math.inf}, "draft_latency_s"),
        ({"draft_latency_s": 10**400}, "draft_latency_s"),
        ({"draft_latency_se": "x"}, "draft_latency_se"),
        ({"draft_latency_se": -1}, "draft_latency_se"),
        ({"calls": [1]}, "calls"),
        ({"calls": math.inf}, "calls"),
        ({"draft": 7}, "draft"),
        ({"version": 99}, "version"),
        ({"version": 0}, "version"),
        ({"version": False}, "version"),
        ({"token_times": "x"}, "token_times"),
        ({"token_times": ""}, "token_times"),
        ({"token_times": {}}, "token_times"),
        ({"token_times": False}, "token_times"),
        ({"token_times": 0}, "token_times"),
        ({"token_times": [1]}, "token_times"),
        ({"token_times": [{"requests": 2, "ms_per_token": 40.0}]}, "requests"),
        ({"token_times": [{"requests": 1, "ms_per_token": 40.0}] * 2}, "requests"),
        ({"token_times": [{"requests": 1.5, "ms_per_token": 40.0}]}, "requests"),
        ({"token_times": [{"requests": 2 * 10**9, "ms_per_token": 40.0}]}, "requests"),
        ({"token_times": [{"requests": 1, "ms_per_token": "x"}]}, "ms_per_token"),
        ({"token_times": [{"requests": 1, "ms_per_token": 40.0, "se": "x"}]}, "se"),
        ({"token_times": [{"requests": 1, "ms_per_token": 40.0, "batches": "x"}]}, "batches"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, changed: dict, column: str):
    (tmp_path / "probe.json").write_text(json.dumps({**PROBE, **changed}))
    with pytest.raises(DataError, match=f"probe.json: column {column}: expected .+, found "):
        read_probe(tmp_path / "probe.json")


@pytest.mark.parametrize("left_out", [{"token_times": None}, {"token_times": []}, {"version": 1}])
def test_what_is_left_out_is_not_known(tmp_path: Path, left_out: dict):
    said = {"leapmodel": "probe", "draft_latency_s": 0.05, **left_out}
    (tmp_path / "probe.json").write_text(json.dumps(said))
    assert read_probe(tmp_path / "probe.json").token_times == ()


def test_a_byte_order_mark_is_left_out(tmp_path: Path):
    (tmp_path / "probe.json").write_text(json.dumps(PROBE), encoding="utf-8-sig")
    assert read_probe(tmp_path / "probe.json").draft == "tiny"


def test_probes_of_one_draft_name_their_files(tmp_path: Path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(PROBE))
    a, b = (read_probe(tmp_path / name) for name in ("a.json", "b.json"))
    assert a == b
    assert "source" not in a.to_dict()
    said = f"^{a.source} and {b.source}: expected one probe of each draft, found 2 of 'tiny'$"
    with pytest.raises(UsageError, match=said):
        what_was_probed([a, b])


@pytest.mark.parametrize("text", ["", "[" * 100_000, "7", '{"leapmodel": "trace"}'])
def test_what_is_no_probe_is_said_to_be_none(tmp_path: Path, text: str):
    (tmp_path / "probe.json").write_text(text)
    with pytest.raises(DataError, match=r"probe.json: expected a (probe file|JSON object), found"):
        read_probe(tmp_path / "probe.json")
