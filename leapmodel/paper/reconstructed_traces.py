"""Sequential traces that fit what the paper prints about its own. Reconstructions.

Lengths are the paper's where it prints them, step times are drawn from a law fitted to Table 10
(:mod:`leapmodel.paper.fits`), actions are invented. Nobody measured such a trace.
"""

from __future__ import annotations

import random

import numpy as np
import pandas as pd

from leapmodel.paper.fits import PLANS, Plan, plan_of
from leapmodel.paper.invented_actions import invent_actions
from leapmodel.paper.tables import PAPER
from leapmodel.trace import Trace

BENCHMARKS = tuple(PLANS)
SEED = 2026
WARNING = (
    "a reconstruction fitted to numbers printed in a paper, not a measurement: "
    "actions, step times and hits are made up"
)


def reconstruct_trace(benchmark: str, seed: int = SEED) -> Trace:
    """Build the sequential trace of one benchmark with Qwen3-32B as target. A reconstruction.

    Parameters
    ----------
    benchmark : str
        ``"OpenAGI"``, ``"TaskBench"``, ``"tau2-bench"`` or ``"BFCL"``.
    seed : int
        Seed of everything drawn: the order of tasks or turns, actions, step times. The files in
        ``traces/reconstructed`` have the default one.

    Raises
    ------
    UsageError
        If that benchmark is not reconstructed.

    Examples
    --------
    >>> made = reconstruct_trace("BFCL")
    >>> made.n_tasks, made.n_segments, made.n_steps, made.metadata["origin"]
    (60, 233, 606, 'reconstructed')
    """
    plan = plan_of(benchmark)
    # random() of the standard library gives the same numbers in every version
    rng = random.Random(seed)
    layout = plan.lengths.layout(rng)
    actions = invent_actions(benchmark, layout, rng)
    lengths = layout.task_lengths
    width = len(str(len(lengths)))
    names = [f"{benchmark.lower()}-{i:0{width}d}" for i in range(1, len(lengths) + 1)]
    frame = pd.DataFrame(
        {
            "task": np.repeat(names, lengths),
            "run": 0,
            "segment": layout.step_segments,
            "step": np.concatenate([np.arange(n) for n in lengths]),
            # rounded to what a clock would give, and so the same on every processor
            "gen_s": plan.times.draw(lengths, seed).round(3),
            "tool_s": 0.0,
            "action": actions,
        }
    )
    return Trace.from_frame(frame, provenance(benchmark, "sequential trace", _how(plan)))


def provenance(benchmark: str, what: str, how: str) -> dict[str, object]:
    """Return the metadata of a reconstructed file: that it is one, of what, and how it was made."""
    return {
        "origin": "reconstructed",
        "source": f"{what} reconstructed from {PAPER}",
        "benchmark": benchmark,
        "target_model": "none ran; stands for Qwen3-32B",
        "how": how,
        "made_by": "python -m leapmodel.paper.reconstruct",
        "warnings": [WARNING],
    }


def _how(plan: Plan) -> str:
    times = plan.times
    law = [f"mean {times.mean_s} s (Table 9)"]
    if times.slope:
        law.append(f"log slope {times.slope} a step")
    law.append(f"log sd {times.step_sd} from step to step")
    if times.task_sd:
        law.append(f"log sd {times.task_sd} from task to task")
    targets = "Table 10's beta on the trained draft's rows"
    if plan.fit_variation:
        targets += f" and the stated coefficient of variation {plan.stated_variation[0]}"
    return (
        " ".join(plan.lengths.reasoning)
        + f" Step times: lognormal, {', '.join(law)}; {' and '.join(plan.free)} fitted so that "
        f"App. H's replay gives {targets}. Tool times: none (the paper's are 0.07 s or less). "
        "Actions: invented names, drawn at random."
    )
