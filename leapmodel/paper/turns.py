"""How long BFCL's user turns are: the paper prints only their mean.

BFCL is a conversation: a round never crosses a user turn, so turns and not tasks are the segments.
Table 18 leaves BFCL out; what the paper says of its turns is that they average 2.6 steps.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from leapmodel.paper.layout import Layout
from leapmodel.paper.shuffling import shuffled
from leapmodel.segments import Segments


@dataclass(frozen=True)
class TurnLengths:
    """Steps of each user turn of one benchmark, and how many turns its tasks have.

    Attributes
    ----------
    benchmark : str
        The paper's name of it.
    turns_of_length : dict of int to int
        How many turns have so many steps, the reply that ends the turn included.
    n_tasks : int
        Tasks; their numbers of turns differ by at most one.
    reasoning : tuple of str
        What is printed, what was chosen, and why.

    Examples
    --------
    >>> BFCL.n_turns, BFCL.n_steps, round(BFCL.n_steps / BFCL.n_turns, 1)
    (233, 606, 2.6)
    """

    benchmark: str
    turns_of_length: dict[int, int]
    n_tasks: int
    reasoning: tuple[str, ...]

    @property
    def n_turns(self) -> int:
        """Number of user turns, over all tasks."""
        return sum(self.turns_of_length.values())

    @property
    def n_steps(self) -> int:
        """Number of steps, over all tasks."""
        return sum(steps * turns for steps, turns in self.turns_of_length.items())

    def layout(self, rng: random.Random | None = None) -> Layout:
        """Deal the turns to the tasks, so that each has short and long ones.

        Parameters
        ----------
        rng : random.Random, optional
            Draws the order of the tasks, and of the turns in each; default: shortest first.

        Examples
        --------
        >>> layout = BFCL.layout()
        >>> layout.task_lengths.min() >= 6, round(layout.task_lengths.mean(), 1)
        (np.True_, np.float64(10.1))
        """
        turns = [n for n, count in sorted(self.turns_of_length.items()) for _ in range(count)]
        dealt = [turns[task :: self.n_tasks] for task in range(self.n_tasks)]
        if rng is not None:
            dealt = [shuffled(of_task, rng) for of_task in shuffled(dealt, rng)]
        tasks = np.repeat(np.arange(self.n_tasks), [len(of_task) for of_task in dealt])
        return Layout(np.array([n for of_task in dealt for n in of_task]), tasks)

    def segments(self) -> Segments:
        """Return segments of these lengths whose steps all take one second."""
        return self.layout().segments()


BFCL = TurnLengths(
    "BFCL",
    {2: 146, 3: 54, 4: 20, 5: 8, 6: 3, 7: 2},
    60,
    (
        "Table 9: 60 tasks of 10.1 steps, so 606 steps; Sec. 4.1: a turn averages 2.6 of them, so "
        "233 turns (606/233 = 2.60). Sec. 4.3's f = 0.62 says the same: every turn ends in one "
        "step that runs no tool, and 1 - 233/606 = 0.62.",
        "Chosen: a turn has at least one group of calls and the reply that ends it, and whether "
        "another group follows does not depend on how many there were: 2 steps plus a geometric "
        "number with mean 0.6. The stated mean is the only parameter.",
        "Not used for it, and met: a quarter of the rounds are hand-off probes (App. D.2: 26 %), "
        "c = 1.45 at k = 2 with Table 8's acceptances, and Table 10's i.i.d. column.",
    ),
)
