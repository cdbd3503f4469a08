from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from leapmodel.segments import Segments

from .traces import random_segments


def test_lengths_positions_and_remaining_steps() -> None:
    segments = Segments(np.ones(6), starts=[0, 1, 4], groups=[1, 0, 1])
    assert segments.n_steps == 6
    assert segments.n_groups == 2
    assert segments.lengths.tolist() == [1, 3, 2]
    assert segments.positions.tolist() == [0, 0, 1, 2, 0, 1]
    assert segments.remaining.tolist() == [1, 3, 2, 1, 2, 1]
    assert segments.step_groups.tolist() == [1, 0, 0, 0, 1, 1]
    assert segments.steps_by_group.tolist() == [3, 3]
    assert segments.sum_by_group(np.arange(6)).tolist() == [1 + 2 + 3, 0 + 4 + 5]


def test_by_length_holds_every_step_once_in_order() -> None:
    segments = random_segments(np.random.default_rng(0), n_segments=80, longest=9)
    seen = []
    for which, steps, gen_s in segments.by_length:
        assert steps.shape == (len(steps), len(which))
        assert (segments.lengths[which] == len(steps)).all()
        assert_array_equal(steps[0], segments.starts[which])
        assert (np.diff(steps, axis=0) == 1).all()
        assert_array_equal(gen_s, segments.gen_s[steps])
        seen.append(steps.ravel())
    assert_array_equal(np.sort(np.concatenate(seen)), np.arange(segments.n_steps))
    lengths = [len(block.steps) for block in segments.by_length]
    assert lengths == sorted(set(segments.lengths.tolist()))


def test_defaults_are_no_tools_one_group_no_boundary() -> None:
    segments = Segments([1, 2], starts=[0])
    assert segments.gen_s.dtype == np.float64
    assert segments.tool_s.tolist() == [0, 0]
    assert segments.groups.tolist() == [0]
    assert segments.n_groups == 1
    assert segments.is_boundary.tolist() == [False, False]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gen_s": []}, r"^gen_s must be a non-empty array of finite seconds > 0$"),
        ({"gen_s": [1.0, 0.0]}, r"^gen_s must be a non-empty array of finite seconds > 0$"),
        ({"gen_s": [1.0, -1.0]}, r"^gen_s must be a non-empty array of finite seconds > 0$"),
        ({"gen_s": [1.0, np.nan]}, r"^gen_s must be a non-empty array of finite seconds > 0$"),
        ({"gen_s": [1.0, np.inf]}, r"^gen_s must be a non-empty array of finite seconds > 0$"),
        ({"gen_s": [[1.0, 2.0]]}, r"^gen_s must be a non-empty array of finite seconds > 0$"),
        ({"tool_s": [1.0]}, r"^tool_s must hold 2 finite seconds >= 0$"),
        ({"tool_s": [1.0, -0.5]}, r"^tool_s must hold 2 finite seconds >= 0$"),
        ({"tool_s": [1.0, np.nan]}, r"^tool_s must hold 2 finite seconds >= 0$"),
        ({"is_boundary": [True]}, r"^is_boundary must hold 2 booleans$"),
        ({"starts": []}, r"^starts must increase from 0 and stay below the number of steps$"),
        ({"starts": [1]}, r"^starts must increase from 0 and stay below the number of steps$"),
        ({"starts": [0, 0]}, r"^starts must increase from 0 and stay below the number of steps$"),
        ({"starts": [0, 2]}, r"^starts must increase from 0 and stay below the number of steps$"),
        ({"groups": [0, 1]}, r"^groups must hold 1 indices >= 0$"),
        ({"groups": [-1]}, r"^groups must hold 1 indices >= 0$"),
        ({"groups": [3], "n_groups": 3}, r"^groups must be below n_groups = 3$"),
    ],
)
def test_bad_arrays(changes: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"gen_s": [1.0, 2.0], "starts": [0], **changes}
    with pytest.raises(ValueError, match=message):
        Segments(**arguments)  # type: ignore[arg-type]
