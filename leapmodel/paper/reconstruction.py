"""Build traces that fit what the paper prints about its own. Reconstructions, not measurements.

The paper's traces are not public. These are made so that the numbers it prints about them come
out: lengths of the tasks, step times, and where each draft was right. Use them to see the paper's
tables come out of the replay, and to try the package; learn nothing from them that the paper does
not say. ``python -m leapmodel.paper.reconstruct -o traces/reconstructed`` writes the files.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from leapmodel.actions import TERMINATE, canonical_call
from leapmodel.errors import UsageError
from leapmodel.paper.hit_placement import HIT, MISS, Placement, count_rounds, place_hits
from leapmodel.paper.step_times import StepTimes
from leapmodel.paper.tables import PAPER
from leapmodel.paper.workloads import DraftRun, Workload, openagi
from leapmodel.predictions import Predictions, write_predictions
from leapmodel.trace import Trace, write_trace

WARNING = (
    "a reconstruction fitted to numbers printed in a paper, not a measurement: "
    "actions, step times and hits are made up"
)
_SEED = 2026
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


def reconstruct(benchmark: str = "OpenAGI", seed: int = _SEED) -> Reconstruction:
    """Build the reconstruction of one benchmark.

    Parameters
    ----------
    benchmark : str, default "OpenAGI"
        A key of ``WORKLOADS``.
    seed : int
        Seed of everything drawn: the order of tasks, plans, step times, hits, latencies. The files
        in ``traces/reconstructed`` have the default one.

    Raises
    ------
    UsageError
        If that benchmark is not reconstructed.

    Examples
    --------
    >>> made = reconstruct("OpenAGI")
    >>> made.trace.n_tasks, made.trace.n_steps, made.trace.metadata["origin"]
    (63, 263, 'reconstructed')
    """
    if benchmark not in WORKLOADS:
        raise UsageError(f"no reconstruction of {benchmark!r}; there are {', '.join(WORKLOADS)}")
    workload = WORKLOADS[benchmark]()
    # random() of the standard library gives the same numbers in every version
    rng = random.Random(seed)
    lengths = np.array(_shuffled(workload.lengths.lengths.tolist(), rng))
    actions = [action for n in lengths for action in _plan(workload.tools, int(n), rng)]
    width = len(str(len(lengths)))
    frame = pd.DataFrame(
        {
            "task": np.repeat(
                [f"{benchmark.lower()}-{i:0{width}d}" for i in range(1, len(lengths) + 1)], lengths
            ),
            "run": 0,
            "segment": 0,
            "step": np.concatenate([np.arange(n) for n in lengths]),
            # rounded to what a clock would give, and so the same on every processor
            "gen_s": workload.times.draw(lengths, seed).round(3),
            "tool_s": 0.0,
            "action": actions,
        }
    )
    trace = Trace.from_frame(frame, _about(workload, "sequential trace", _how_trace(workload)))
    milliseconds = [round(1000 * seconds) for seconds in trace.gen_s]
    ends = np.cumsum(lengths)
    gen_ms = [tuple(milliseconds[a:b]) for a, b in zip(ends - lengths, ends, strict=True)]
    placements = {
        draft.name: place_hits(gen_ms, draft.aims, seed=seed, stop_at_last=draft.stop_is_invalid)
        for draft in workload.drafts
    }
    predicted = pd.concat(
        [
            _predicted(trace, draft, placements[draft.name], workload, seed)
            for draft in workload.drafts
        ],
        ignore_index=True,
    )
    predictions = Predictions.from_frame(
        predicted, _about(workload, "teacher-forced predictions", _how_predictions(workload))
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


def _shuffled(values: list[int], rng: random.Random) -> list[int]:
    keys = [rng.random() for _ in values]
    return [values[i] for i in sorted(range(len(values)), key=keys.__getitem__)]


def _plan(tools: Sequence[str], n_steps: int, rng: random.Random) -> list[str | None]:
    """Return different tools, in the order given, then the end of the plan."""
    chosen = sorted(_shuffled(list(range(len(tools))), rng)[: n_steps - 1])
    return [*(canonical_call(tools[i], None) for i in chosen), TERMINATE]


def _predicted(
    trace: Trace, draft: DraftRun, placement: Placement, workload: Workload, seed: int
) -> pd.DataFrame:
    outcomes = np.concatenate([np.array(task) for task in placement.outcomes])
    calls: list[str | None] = [canonical_call(tool, None) for tool in workload.tools]

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


def _about(workload: Workload, what: str, how: str) -> dict[str, object]:
    return {
        "origin": "reconstructed",
        "source": f"{what} reconstructed from {PAPER}",
        "benchmark": workload.benchmark,
        "target_model": f"none ran; stands for {workload.target_model}",
        "how": how,
        "made_by": "python -m leapmodel.paper.reconstruct",
        "warnings": [WARNING],
    }


def _how_trace(workload: Workload) -> str:
    times = workload.times
    return (
        " ".join(workload.lengths.reasoning)
        + f" Step times: lognormal, mean {times.mean_s} s (Table 9), log slope {times.slope} a "
        f"step, log sd {times.step_sd}; slope and sd fitted so that App. H's replay gives Table "
        "10's beta on the trained draft's rows. Actions: invented names, drawn at random."
    )


def _how_predictions(workload: Workload) -> str:
    return (
        "Hits placed by a seeded search so that rounds of a teacher-forced replay count up to "
        "what Tables 2, 8, 10, 16 and 18, Sec. 4.2, App. C.1 and App. D.3 print; latencies so that "
        "D is Table 10's. Assumed: where the untrained draft stops proposing, its output is "
        "invalid, where another does it ends the task too early; every other miss is some other "
        "tool; an untrained call takes as long as a trained one, a 32B-direct call 3.3 times as "
        "long; which task of a given length a draft does well on is arbitrary, and independent "
        "from draft to draft."
    )
