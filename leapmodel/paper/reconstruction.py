"""Reconstructed predictions of drafts on a reconstructed trace, placed by the paper's counts.

The paper's traces are not public. These are made so that the numbers it prints about them come
out: lengths of the tasks, step times, and where each draft was right. Use them to see the paper's
tables come out of the replay, and to try the package; learn nothing from them that the paper does
not say. ``python -m leapmodel.paper.reconstruct -o traces/reconstructed`` writes the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from leapmodel.actions import TERMINATE, canonical_call
from leapmodel.errors import UsageError
from leapmodel.paper.hit_placement import HIT, MISS, Placement, count_rounds, place_hits
from leapmodel.paper.invented_actions import OPENAGI_TOOLS
from leapmodel.paper.reconstructed_traces import SEED, provenance, reconstruct_trace
from leapmodel.paper.step_times import StepTimes
from leapmodel.paper.workloads import DraftRun, Workload, openagi
from leapmodel.predictions import Predictions, write_predictions
from leapmodel.trace import Trace, write_trace

WORKLOADS = {"OpenAGI": openagi}


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """A reconstructed trace and the reconstructed predictions of drafts on it.

    Attributes
    ----------
    workload : Workload
        What it was fitted to.
    trace : Trace
        The sequential trace.
    predictions : Predictions
        What each draft proposes at every step.
    placements : dict of str to Placement
        By draft: the outcomes behind its predictions, and the counts aimed at and reached.
    """

    workload: Workload
    trace: Trace
    predictions: Predictions
    placements: dict[str, Placement]


def reconstruct(benchmark: str = "OpenAGI", seed: int = SEED) -> Reconstruction:
    """Build the trace of one benchmark and the drafts' predictions on it.

    Parameters
    ----------
    benchmark : str, default "OpenAGI"
        A key of ``WORKLOADS``. For the other benchmarks the paper prints too little to place
        single hits by; their trace alone is
        :func:`~leapmodel.paper.reconstructed_traces.reconstruct_trace`'s.
    seed : int
        Seed of everything drawn: the order of tasks, plans, step times, hits, latencies. The files
        in ``traces/reconstructed`` have the default one.

    Raises
    ------
    UsageError
        If that benchmark's predictions are not reconstructed.

    Examples
    --------
    >>> made = reconstruct("OpenAGI")
    >>> made.trace.n_tasks, made.trace.n_steps, made.trace.metadata["origin"]
    (63, 263, 'reconstructed')
    """
    if benchmark not in WORKLOADS:
        raise UsageError(
            f"no reconstructed predictions on {benchmark!r}; there are {', '.join(WORKLOADS)}"
        )
    workload = WORKLOADS[benchmark]()
    trace = reconstruct_trace(benchmark, seed)
    milliseconds = [round(1000 * seconds) for seconds in trace.gen_s]
    lengths = trace.segments.lengths
    ends = np.cumsum(lengths)
    gen_ms = [tuple(milliseconds[a:b]) for a, b in zip(ends - lengths, ends, strict=True)]
    placements = {
        draft.name: place_hits(gen_ms, draft.aims, seed=seed, stop_at_last=draft.stop_is_invalid)
        for draft in workload.drafts
    }
    predicted = pd.concat(
        [_predicted(trace, draft, placements[draft.name], seed) for draft in workload.drafts],
        ignore_index=True,
    )
    predictions = Predictions.from_frame(
        predicted, provenance(benchmark, "teacher-forced predictions", _HOW)
    )
    return Reconstruction(workload, trace, predictions, placements)


def write_reconstruction(made: Reconstruction, folder: str | Path) -> list[Path]:
    """Write ``<benchmark>.parquet`` and ``<benchmark>_predictions.parquet``; return their paths.

    Raises
    ------
    UsageError
        If the folder does not exist or can't be written.
    """
    name = made.workload.benchmark.lower()
    paths = [Path(folder) / f"{name}.parquet", Path(folder) / f"{name}_predictions.parquet"]
    write_trace(made.trace, paths[0])
    write_predictions(made.predictions, paths[1])
    return paths


def _predicted(trace: Trace, draft: DraftRun, placement: Placement, seed: int) -> pd.DataFrame:
    outcomes = np.concatenate([np.array(task) for task in placement.outcomes])
    calls: list[str | None] = [canonical_call(tool, None) for tool in OPENAGI_TOOLS]

    def proposed(action: str, outcome: int) -> str | None:
        if outcome == HIT:
            return action
        if outcome == MISS:  # some other tool: the next one in the list
            at = calls.index(action) if action in calls else -1
            return calls[(at + 1) % len(calls)]
        return None if draft.stop_is_invalid else TERMINATE

    actions = [proposed(a, int(o)) for a, o in zip(trace.actions, outcomes, strict=True)]
    return trace.frame[["task", "run", "step"]].assign(
        draft=draft.name,
        repeat=0,
        action=np.array(actions, dtype=object),
        latency_s=_latencies(trace, draft, placement, seed),
    )


def _latencies(trace: Trace, draft: DraftRun, placement: Placement, seed: int) -> np.ndarray:
    """Return latencies that vary by a tenth, whose mean gives D with the calls a round makes."""
    walks = [count_rounds(task, draft.depth) for task in placement.outcomes]
    calls_per_round = sum(w["calls", 0] for w in walks) / sum(w["rounds", 0] for w in walks)
    mean_s = draft.draft_term / calls_per_round * float(trace.gen_s.mean())
    spread = StepTimes(mean_s, slope=0.0, step_sd=0.1)
    return spread.draw(np.ones(trace.n_steps, dtype=np.intp), seed).round(4)


_HOW = (
    "Hits placed by a seeded search so that rounds of a teacher-forced replay count up to "
    "what Tables 2, 8, 10, 16 and 18, Sec. 4.2, App. C.1 and App. D.3 print; latencies so that "
    "D is Table 10's. Assumed: where the untrained draft stops proposing, its output is "
    "invalid, where another does it ends the task too early; every other miss is some other "
    "tool; an untrained call takes as long as a trained one, a 32B-direct call 3.3 times as "
    "long; which task of a given length a draft does well on is arbitrary, and independent "
    "from draft to draft."
)
