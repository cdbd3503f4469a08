"""What a reconstruction gives, beside what the paper prints."""

from __future__ import annotations

import numpy as np
import pandas as pd

from leapmodel import equations
from leapmodel.hits import compare_predictions
from leapmodel.paper.comparison import Comparison, Origin
from leapmodel.paper.reconstruction import Reconstruction
from leapmodel.paper.tables import load
from leapmodel.replay import exact_replay, teacher_forced_replay

_Q = ("q1", "q2", "q3", "q4", "q5")


def compare(made: Reconstruction) -> Comparison:
    """Put every control run of Table 10 beside the reconstruction's replay of it.

    Returns
    -------
    Comparison
        One row a draft and k; each quantity without suffix as published, with ``_rec`` as
        reconstructed: c, q_1 … q_5 and e from a teacher-forced replay of the predictions; beta
        from App. H's replay at the published q_1, as the paper predicts it; ``beta_forced`` from
        the teacher-forced replay; D = calls per round times the mean latency over t_gen; S by
        Eq. 4 from c, beta and D. ``speedup_measured`` is the paper's. What is empty is not
        printed.
    """
    published = load("table10").frame
    published = published[published["benchmark"] == made.workload.benchmark]
    more = load("table16").frame.query("study == 'main'")
    keys = ["benchmark", "draft", "k"]
    published = published.merge(more[[*keys, "q4", "q5", "e"]], on=keys, how="left")
    names = {draft.table10_draft: draft.name for draft in made.workload.drafts}
    segments, rows = made.trace.segments, []
    mean_latency_s = made.predictions.frame.groupby("draft")["latency_s"].mean()
    for _, row in published[published["draft"].isin(list(names))].iterrows():
        name, depth = names[row["draft"]], int(row["k"])
        hits = compare_predictions(made.trace, made.predictions.select(name))
        (outcomes,) = hits.outcomes(unknown=0.0)  # one repeat, and every step is known
        forced = teacher_forced_replay(segments, outcomes, [depth])
        replayed = exact_replay(segments, float(row["q1"]), [depth])
        commits, beta = float(forced.commits[0]), float(replayed.wait_inflation[0])
        draft_term = float(
            equations.draft_term(
                forced.calls_per_round, float(mean_latency_s[name]) / forced.mean_gen_s
            )
        )
        hit_rates = dict(zip(_Q, forced.hit_rates[0], strict=False))
        rows.append(
            {
                "draft": row["draft"],
                "k": depth,
                "c": row["commits_per_round"],
                "c_rec": commits,
                "beta": row["beta_predicted"],
                "beta_rec": beta,
                "beta_forced_rec": float(forced.wait_inflation[0]),
                **{
                    key: value
                    for q in _Q
                    for key, value in [(q, row[q]), (f"{q}_rec", hit_rates.get(q, np.nan))]
                },
                "e": row["e"],
                "e_rec": float(forced.bonus_loss[0]),
                "D": row["draft_term_D"],
                "D_rec": draft_term,
                "S": row["speedup_predicted"],
                "S_rec": float(equations.speedup(commits, beta, draft_term)),
                "S_forced_rec": float(
                    equations.speedup(commits, forced.wait_inflation[0], draft_term)
                ),
                "speedup_measured": row["speedup_measured"],
            }
        )
    frame = pd.DataFrame(rows)
    origins: dict[str, Origin] = {
        name: "reconstructed" if name.endswith("_rec") else "published"
        for name in frame.columns
        if name not in ("draft", "k")
    }
    return Comparison(
        f"{made.workload.benchmark}, reconstructed, beside Tables 10 and 16", frame, origins
    )


def compare_counts(made: Reconstruction) -> Comparison:
    """Put every count the hits were placed by beside the count reached.

    Returns
    -------
    Comparison
        One row an aim: ``draft``, ``k``, ``statistic``, ``position``, ``length`` (as in
        :class:`~leapmodel.paper.hit_placement.Aim`), ``aim`` (recomputed: a published rate times
        rounds or steps, rounded) and ``reached``.
    """
    rows = [
        {
            "draft": draft,
            "k": str(aim.depth or "–"),
            "statistic": aim.statistic,
            "position": str(aim.position or "–"),
            "length": str(aim.length or "any"),
            "aim": aim.count,
            "reached": reached,
        }
        for draft, placement in made.placements.items()
        for aim, reached in zip(placement.aims, placement.reached, strict=True)
    ]
    return Comparison(
        f"{made.workload.benchmark}: counts aimed at and reached",
        pd.DataFrame(rows),
        {"aim": "recomputed", "reached": "reconstructed"},
    )
