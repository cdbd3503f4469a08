"""Table 10's i.i.d. column from task lengths alone."""

from __future__ import annotations

import numpy as np

from leapmodel import equations
from leapmodel.paper.comparison import Comparison
from leapmodel.paper.lengths import BENCHMARKS
from leapmodel.paper.table10 import NAMES
from leapmodel.paper.tables import load
from leapmodel.replay import exact_replay
from leapmodel.segments import Floats


def iid_commits(benchmark: str, first_hit_rate: float, depth: int) -> float:
    """Return c if every proposal hits independently at rate q_1 and rounds stop at task ends.

    This is App. H's replay with its own A instead of the measured hit rates; only the lengths of
    the tasks enter. q_1 stands for the acceptance, which is right where every round makes a first
    proposal.

    Parameters
    ----------
    benchmark : str
        One of Table 18's.
    first_hit_rate : float
        q_1 of the run.
    depth : int
        k.

    Examples
    --------
    >>> round(iid_commits("OpenAGI", 0.71, 3), 2)
    2.06
    """
    segments = BENCHMARKS[benchmark].segments()
    return float(exact_replay(segments, first_hit_rate, [depth]).commits[0])


def iid_column() -> Comparison:
    """Recompute Table 10's i.i.d. predictions: S = c_iid / (beta + D) (Fig. 7(c)).

    Returns
    -------
    Comparison
        The 13 OpenAGI, TaskBench and tau2-bench rows: ``q1``, ``wait_inflation`` (beta) and
        ``draft_term`` (D) as published, ``commits_iid`` from the task lengths, ``speedup_iid`` as
        published, ``speedup_recomputed`` and their ``difference``.

    Notes
    -----
    The printed q_1, beta and D are rounded, which alone moves S by up to 0.02. Most lengths are
    printed too; those chosen inside open buckets are in :mod:`leapmodel.paper.lengths`.

    Examples
    --------
    >>> column = iid_column().frame
    >>> len(column), bool((column["difference"].abs() < 0.03).all())
    (13, True)
    """
    table = load("table10").frame
    rows = table[table["benchmark"].isin(list(BENCHMARKS))].reset_index(drop=True)
    commits: Floats = np.array(
        [
            iid_commits(benchmark, q1, k)
            for benchmark, q1, k in zip(rows["benchmark"], rows["q1"], rows["k"], strict=True)
        ]
    )
    recomputed = equations.speedup(commits, rows["beta_predicted"], rows["draft_term_D"])
    frame = rows[NAMES].assign(
        q1=rows["q1"],
        wait_inflation=rows["beta_predicted"],
        draft_term=rows["draft_term_D"],
        commits_iid=commits,
        speedup_iid=rows["speedup_iid"],
        speedup_recomputed=recomputed,
        difference=recomputed - rows["speedup_iid"],
    )
    return Comparison(
        "Table 10's i.i.d. column from task lengths",
        frame,
        {
            "q1": "published",
            "wait_inflation": "published",
            "draft_term": "published",
            "commits_iid": "recomputed",
            "speedup_iid": "published",
            "speedup_recomputed": "recomputed",
            "difference": "recomputed",
        },
        ("BFCL is left out: its rounds end in probes at user turns, and Table 18 omits it.",),
    )
