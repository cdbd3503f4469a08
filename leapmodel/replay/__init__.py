"""Replay a sequential trace as if its steps ran in speculative rounds (App. H).

Three replays with one interface, each taking :class:`~leapmodel.segments.Segments` and giving
:class:`ReplaySums`:

- :func:`exact_replay`: expected sums for a constant acceptance or one per position, linear in
  steps x depth;
- :func:`teacher_forced_replay`: the same for what a draft does at each step (Prop. 1, Table 11),
  and so for any acceptance that varies by step;
- :func:`sampled_replay`: the paper's own averaging over random rounds, kept as the reference.
"""

from leapmodel.replay.exact import exact_replay
from leapmodel.replay.sampled import SampledReplay, sampled_replay
from leapmodel.replay.sums import ReplaySums, Terminal, average_sums
from leapmodel.replay.teacher_forced import (
    StepOutcomes,
    VerificationWork,
    average_work,
    teacher_forced_replay,
    verification_work,
)

__all__ = [
    "ReplaySums",
    "SampledReplay",
    "StepOutcomes",
    "Terminal",
    "VerificationWork",
    "average_sums",
    "average_work",
    "exact_replay",
    "sampled_replay",
    "teacher_forced_replay",
    "verification_work",
]
