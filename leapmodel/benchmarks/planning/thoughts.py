"""Short thoughts for a target that has none of its own.

The machines that test this project can load no large model. Their target is a small one, taught to
write a thought and then the action; what it is taught is made here. A model that reasons by itself
is never shown this.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from leapmodel.benchmarks.planning import tools
from leapmodel.benchmarks.planning.assignment import Assignment
from leapmodel.benchmarks.planning.prompts import answer

_ASTRAY = 1 / 3
_DO = {
    tools.SUPER_RESOLUTION: "enlarge",
    tools.DENOISING: "denoise",
    tools.DEBLURRING: "sharpen",
    tools.COLORIZATION: "color",
    tools.CLASSIFICATION: "classify",
    tools.DETECTION: "detect",
    tools.CAPTIONING: "caption",
    tools.VISUAL_QUESTION: "look",
    tools.TEXT_TO_IMAGE: "paint",
    tools.TRANSLATION: "translate",
    tools.SENTIMENT: "judge",
    tools.SUMMARIZATION: "summarize",
    tools.QUESTION: "answer",
    tools.FILL_MASK: "fill",
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
    Picture, grainy, grey. Wanted: picture. Steps: denoise, color. Done: denoise.
    <tool>Colorization</tool>
    """
    action = assignment.remaining(committed)[0]
    steps = ", ".join(_DO[name] for name in assignment.plan[:-1])
    done = ", ".join(_DO.get(str(name), "other") for name in committed) or "nothing"
    # The plan and what was done stand side by side before they are compared: a small model can't
    # subtract what it does not see.
    thought = f"{reading(assignment)} Steps: {steps}. Done: {done}."
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


def reading(assignment: Assignment) -> str:
    """Return what an assignment's words mean, and nothing of what is to be done about it.

    Examples
    --------
    >>> reading(Assignment("picture", "caption", ("grainy",), wanted_language="German"))
    'Picture, grainy. Wanted: caption in German.'
    >>> reading(Assignment("text", "summary", source_language="French", has_gaps=True))
    'Text in French, gaps. Wanted: summary.'
    """
    given = ", ".join((assignment.source.capitalize(), *assignment.defects))
    words = _language(assignment.source_language) + (", gaps" if assignment.has_gaps else "")
    if assignment.source == "picture" and assignment.wanted == "answer":
        given += ", question"
    return f"{given}{words}. Wanted: {assignment.wanted}{_language(assignment.wanted_language)}."


def _language(language: str) -> str:
    return "" if language == "English" else f" in {language}"
