"""What reconstructed predictions are placed by: the paper's numbers about a benchmark's drafts.

Numbers in a table are taken from :mod:`leapmodel.paper.tables`; those that stand in running text
only are written here, each with its place.
"""

from __future__ import annotations

from dataclasses import dataclass

from leapmodel.paper.fits import plan_of
from leapmodel.paper.hit_placement import Aim, aim_of_wait, aims_of_run
from leapmodel.paper.lengths import OPENAGI
from leapmodel.paper.tables import load

_Q = ("q1", "q2", "q3", "q4", "q5")


@dataclass(frozen=True)
class DraftRun:
    """A draft of Table 10 whose predictions are reconstructed.

    Attributes
    ----------
    name : str
        Its name in the predictions file.
    table10_draft : str
        Its name in Tables 10 and 16.
    aims : tuple of Aim
        The published numbers its hits are placed by.
    depth : int
        k of the run whose D sets its latency.
    draft_term : float
        D of that run.
    stop_is_invalid : bool
        Whether a call that stops proposing gave an invalid output (null action) or ended the task
        too early.
    """

    name: str
    table10_draft: str
    aims: tuple[Aim, ...]
    depth: int
    draft_term: float
    stop_is_invalid: bool


@dataclass(frozen=True)
class Workload:
    """The drafts to reconstruct on a benchmark.

    Attributes
    ----------
    benchmark : str
        The paper's name.
    drafts : tuple of DraftRun
        The drafts.
    """

    benchmark: str
    drafts: tuple[DraftRun, ...]


def openagi() -> Workload:
    """Return the drafts whose predictions on OpenAGI are in ``traces/reconstructed``.

    Examples
    --------
    >>> [draft.name for draft in openagi().drafts]
    ['trained-0.6B', 'untrained-0.6B', '32B-direct']
    """
    trained_d = _draft_term("trained 0.6B", 3)
    # Sec. 4.2: a second and third proposal are made in 81 % and 62 % of the rounds.
    calls_of_trained = 1 + 0.81 + 0.62
    trained_cost = trained_d / calls_of_trained
    return Workload(
        benchmark="OpenAGI",
        drafts=(
            DraftRun(
                "trained-0.6B",
                "trained 0.6B",
                tuple(_aims_of_trained()),
                depth=3,
                draft_term=trained_d,
                stop_is_invalid=False,
            ),
            DraftRun(
                "untrained-0.6B",
                "untrained 0.6B",
                tuple(_aims_of_untrained(trained_cost)),
                depth=3,
                draft_term=_draft_term("untrained 0.6B", 3),
                stop_is_invalid=True,
            ),
            DraftRun(
                "32B-direct",
                "32B-direct",
                tuple(_aims_of_direct(trained_cost)),
                depth=3,
                draft_term=_draft_term("32B-direct", 3),
                stop_is_invalid=False,
            ),
        ),
    )


def _aims_of_trained() -> list[Aim]:
    main = _run("trained 0.6B", 3, weight=4)
    rounds, *accepted = (aim.count for aim in main[:4])  # q_1, q_2, q_3
    table8 = load("table08").frame.set_index("benchmark")
    live = {name: float(table8[name].loc["OpenAGI"]) for name in ("a2", "a3", "per_proposal")}
    # Where a proposal was made and the earlier ones accepted, it was accepted at a_2 and a_3; the
    # rest of the rounds that got so far had reached the end of the task.
    ended = [accepted[j - 1] - accepted[j] / live[f"a{j + 1}"] for j in (1, 2)]
    by_length = []
    table = load("table18").frame
    for row in table[table["benchmark"] == "OpenAGI"].itertuples():
        length, n_tasks = int(str(row.steps_bucket).removeprefix(">=")), int(str(row.tasks))
        of_bucket = round(length * n_tasks / float(str(row.c)))
        by_length += [
            Aim("rounds", of_bucket, 3, length=length, weight=8),
            Aim("ended", round(float(str(row.e)) * of_bucket), 3, length=length, weight=8),
        ]
    deepest = _run("trained 0.6B", 5, weight=2)
    return [
        *main,
        *_run("trained 0.6B", 1, weight=2),
        *deepest,
        *by_length,
        *(Aim("ended", round(count), 3, j, weight=2) for j, count in enumerate(ended, start=1)),
        Aim("compared", round(sum(accepted) / live["per_proposal"]), 3),
        # Sec. 4.2: proposals 2 and 3 exist in 81 % and 62 % of rounds at k = 3
        Aim("called", round(0.81 * rounds), 3, 2),
        Aim("called", round(0.62 * rounds), 3, 3),
        # App. C.1: pi_4 = 0.41 and pi_5 = 0.15 at k = 5
        Aim("called", round(0.41 * deepest[0].count), 5, 4),
        Aim("called", round(0.15 * deepest[0].count), 5, 5),
        _agreement("0.6B trained"),
    ]


def _aims_of_untrained(call_cost: float) -> list[Aim]:
    main = _run("untrained 0.6B", 3, weight=4)
    # An untrained draft of the same size is as fast, so its lower D means fewer calls a round.
    calls = _draft_term("untrained 0.6B", 3) / call_cost * main[0].count
    return [*main, Aim("calls", round(calls), 3), _agreement("0.6B base")]


def _aims_of_direct(call_cost: float) -> list[Aim]:
    main = _run("32B-direct", 3, weight=4)
    rounds, *accepted = (aim.count for aim in main[:4])  # q_1, q_2, q_3
    # Sec. 4.3: a call takes 3.3 (OpenAGI) to 4.0 (TaskBench) times as long as the 0.6B draft's
    calls = _draft_term("32B-direct", 3) / (3.3 * call_cost) * rounds
    return [
        *main,
        Aim("calls", round(calls), 3),
        Aim("compared", round(sum(accepted) / 0.78), 3),  # App. D.3: acceptance 0.78
        _agreement("32B direct"),
    ]


def _run(draft: str, depth: int, weight: float) -> list[Aim]:
    table = load("table16").frame
    row = table[
        (table["study"] == "main")
        & (table["benchmark"] == "OpenAGI")
        & (table["draft"] == draft)
        & (table["k"] == depth)
    ].iloc[0]
    hit_rates = [float(row[name]) for name in _Q[:depth]]
    aims = aims_of_run(
        depth, hit_rates, float(row["e"]), float(row["c"]), OPENAGI.n_steps, weight=weight
    )
    beta = _table10_value(draft, depth, "beta_predicted")
    # counts come first: what the paper prints is beta of its own replay, not of these hits
    wait = aim_of_wait(
        depth, beta, aims[0].count, plan_of("OpenAGI").times.mean_s, weight=weight / 4
    )
    return [*aims, wait]


def _draft_term(draft: str, depth: int) -> float:
    return _table10_value(draft, depth, "draft_term_D")


def _table10_value(draft: str, depth: int, column: str) -> float:
    table = load("table10").frame
    row = table[
        (table["benchmark"] == "OpenAGI") & (table["draft"] == draft) & (table["k"] == depth)
    ]
    return float(row[column].iloc[0])


def _agreement(draft: str) -> Aim:
    table = load("table02").frame
    row = table[(table["benchmark"] == "OpenAGI") & (table["draft"] == draft)]
    return Aim("hits", round(float(row["agreement_pct"].iloc[0]) / 100 * OPENAGI.n_steps))
