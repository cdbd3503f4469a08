"""What a planning task asks for, apart from its words, and the plan that does it.

The experts work in English, so foreign text is translated before anything else is done with it, and
an answer wanted in another language is translated last. Pictures are repaired before they are
looked at, always in one order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leapmodel.actions import TERMINATE
from leapmodel.benchmarks.planning import tools

Defect = Literal["small", "grainy", "blurry", "grey"]
Wanted = Literal["picture", "class", "objects", "caption", "answer", "mood", "summary", "text"]

REPAIRS: dict[Defect, str] = {
    "small": tools.SUPER_RESOLUTION,
    "grainy": tools.DENOISING,
    "blurry": tools.DEBLURRING,
    "grey": tools.COLORIZATION,
}
"""What is done about each defect, in the order in which it is done."""

_FROM_PICTURE: dict[Wanted, str] = {
    "class": tools.CLASSIFICATION,
    "objects": tools.DETECTION,
    "caption": tools.CAPTIONING,
    "answer": tools.VISUAL_QUESTION,
}
_FROM_TEXT: dict[Wanted, str] = {
    "picture": tools.TEXT_TO_IMAGE,
    "mood": tools.SENTIMENT,
    "summary": tools.SUMMARIZATION,
    "answer": tools.QUESTION,
}


@dataclass(frozen=True)
class Assignment:
    """A planning task without its words.

    Attributes
    ----------
    source : {"picture", "text"}
        What is given.
    wanted : str
        What is to come out.
    defects : tuple of str
        What is wrong with the picture, in the order of :data:`REPAIRS`.
    source_language, wanted_language : str
        Of a given text (or a question about a picture), and of a text that is to come out.
    has_gaps : bool
        Whether the given text (or question) has words missing.
    """

    source: Literal["picture", "text"]
    wanted: Wanted
    defects: tuple[Defect, ...] = ()
    source_language: str = "English"
    wanted_language: str = "English"
    has_gaps: bool = False

    @property
    def plan(self) -> tuple[str, ...]:
        """The canonical actions that do it, the terminal one included.

        Examples
        --------
        >>> Assignment("picture", "caption", ("grainy",), wanted_language="German").plan
        ('Image Denoising', 'Image Captioning', 'Machine Translation', '<terminate/>')
        """
        actions = [REPAIRS[defect] for defect in self.defects]
        if self.source_language != "English":
            actions.append(tools.TRANSLATION)
        if self.has_gaps:
            actions.append(tools.FILL_MASK)
        maker = (_FROM_PICTURE if self.source == "picture" else _FROM_TEXT).get(self.wanted)
        if maker is not None:
            actions.append(maker)
        if self.wanted != "picture" and self.wanted_language != "English":
            actions.append(tools.TRANSLATION)
        return (*actions, TERMINATE)

    def remaining(self, committed: Sequence[str | None]) -> tuple[str, ...]:
        """Return what of the plan is left after some actions, whether they belong to it or not.

        Each action does the first step of the plan that asks for it and is not done yet.

        Examples
        --------
        >>> task = Assignment("picture", "caption", ("grainy", "grey"))
        >>> task.remaining(["Colorization", "Fill Mask"])
        ('Image Denoising', 'Image Captioning', '<terminate/>')
        """
        left = list(self.plan)
        for action in committed:
            if action in left:
                left.remove(action)
        return tuple(left)
