"""Short thoughts for a target that has none of its own.

The machines that test this project can load no large model. Their target is a small one, taught to
write a thought and then the action; what it is taught is made here. A model that reasons by itself
is never shown this.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from leapmodel.actions import TERMINATE
from leapmodel.benchmarks.planning import tools
from leapmodel.benchmarks.planning.assignment import Assignment
from leapmodel.benchmarks.planning.prompts import answer

_ASTRAY = 1 / 3
_DO = {
    tools.SUPER_RESOLUTION: "enlarge it",
    tools.DENOISING: "remove the grain",
    tools.DEBLURRING: "sharpen it",
    tools.COLORIZATION: "add color",
    tools.CLASSIFICATION: "name the class",
    tools.DETECTION: "list the objects",
    tools.CAPTIONING: "write the caption",
    tools.VISUAL_QUESTION: "answer about the picture",
    tools.TEXT_TO_IMAGE: "paint the picture",
    tools.TRANSLATION: "translate",
    tools.SENTIMENT: "judge the mood",
    tools.SUMMARIZATION: "write the summary",
    tools.QUESTION: "answer from the text",
    tools.FILL_MASK: "fill the gaps",
}


def taught_answer(assignment: Assignment, committed: Sequence[str | None]) -> str:
    """Return thought and action for the next step of an assignment.

    Parameters
    ----------
    assignment : Assignment
    committed : sequence of str or None
        What was done before, also where it was not what the plan says.

    Examples
    --------
    >>> print(taught_answer(Assignment("picture", "picture", ("grainy",)), []))
    A picture is given: grainy. Wanted: picture. To do: remove the grain. First, remove the grain.
    <tool>Image Denoising</tool>
    """
    left = assignment.remaining(committed)
    action = left[0]
    if action == TERMINATE:
        thought = f"Wanted: {_wanted(assignment)}. Nothing of it is left to do, so the plan ends."
    else:
        rest = [_DO[name] for name in left[:-1]]
        order = "First" if not committed else "Next" if len(rest) > 1 else "Last"
        thought = (
            f"{_given(assignment)} Wanted: {_wanted(assignment)}."
            f" To do: {', '.join(rest)}. {order}, {rest[0]}."
        )
    return f"{thought}\n{answer(action)}"


def histories(assignment: Assignment, rng: random.Random) -> list[list[str]]:
    """Return histories to teach an assignment on: those of its plan, and some gone astray.

    A model that has only seen good histories does not know how to go on from its own mistakes. One
    of three histories of the plan gets a wrong action put in, or one of its actions left out.
    """
    found: list[list[str]] = []
    for step in range(len(assignment.plan)):
        history = list(assignment.plan[:step])
        if history and rng.random() < _ASTRAY:
            at = rng.randrange(len(history))
            if rng.random() < 0.5:
                history.insert(at, rng.choice(list(_DO)))
            else:
                del history[at]
        found.append(history)
    return found


def _given(assignment: Assignment) -> str:
    flaws = ", ".join(assignment.defects) or "nothing wrong with it"
    language = assignment.source_language
    gaps = ", with gaps" if assignment.has_gaps else ""
    if assignment.source == "text":
        return f"A text is given: {language}{gaps}."
    asked = f"; the question is {language}{gaps}" if assignment.wanted == "answer" else ""
    return f"A picture is given: {flaws}{asked}."


def _wanted(assignment: Assignment) -> str:
    if assignment.wanted == "picture":
        return "picture"
    return f"{assignment.wanted} in {assignment.wanted_language}"
