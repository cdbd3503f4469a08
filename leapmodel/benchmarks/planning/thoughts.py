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
    >>> task = Assignment("picture", "picture", ("grainy", "grey"))
    >>> print(taught_answer(task, ["Image Denoising"]))
    A picture is given: grainy, grey. Wanted: picture. Steps: remove the grain, add color. Done:
    remove the grain. Next: add color.
    <tool>Colorization</tool>
    """
    left = assignment.remaining(committed)
    action = left[0]
    steps = ", ".join(_DO[name] for name in assignment.plan[:-1])
    done = ", ".join(_DO.get(str(name), "something else") for name in committed) or "nothing"
    following = "the end" if action == TERMINATE else _DO[action]
    # The plan and what was done stand side by side before they are compared: a small model can't
    # subtract what it does not see.
    thought = f"{reading(assignment)} Steps: {steps}. Done: {done}. Next: {following}."
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


def reading(assignment: Assignment) -> str:
    """Return what an assignment's words mean, and nothing of what is to be done about it.

    Examples
    --------
    >>> reading(Assignment("picture", "caption", ("grainy",), wanted_language="German"))
    'A picture is given: grainy. Wanted: caption in German.'
    """
    return f"{_given(assignment)} Wanted: {_wanted(assignment)}."
