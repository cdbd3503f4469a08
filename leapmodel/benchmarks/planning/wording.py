"""Words for an assignment: many ways to say one thing, as people have.

A large model reads a word it has never been trained on here; a tiny draft knows only those of its
own training tasks. That is what makes some decisions hard to propose.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from leapmodel.benchmarks.planning.assignment import Assignment, Defect

_DEFECTS: dict[Defect, tuple[str, ...]] = {
    "small": (
        "tiny",
        "low-resolution",
        "thumbnail-sized",
        "pixelated",
        "low-res",
        "very small",
    ),
    "grainy": (
        "grainy",
        "noisy",
        "speckled",
        "full of grain",
        "dotted with noise",
        "full of static",
    ),
    "blurry": (
        "blurry",
        "out-of-focus",
        "smeared",
        "unsharp",
        "fuzzy",
        "motion-blurred",
    ),
    "grey": (
        "black-and-white",
        "grayscale",
        "monochrome",
        "colorless",
        "gray",
        "uncolored",
    ),
}
_PICTURES = ("picture", "photo", "image", "snapshot", "photograph", "scan", "frame", "shot")
_TEXTS = ("text", "paragraph", "note", "passage", "letter", "article", "message", "document")
_QUESTIONS = ("question", "query", "inquiry")
_GAPS = (
    "with words missing",
    "with gaps",
    "with blanks in it",
    "with masked words",
    "with holes in the wording",
    "that has blanked-out words",
)
_WANTED = {
    "class": (
        "the class label",
        "its category",
        "what kind of scene it is",
        "the type of image",
        "the class it belongs to",
        "which category fits it",
    ),
    "objects": (
        "the object names",
        "a list of the things in it",
        "every object in view",
        "which items can be seen",
        "the objects it shows",
        "an inventory of what is there",
    ),
    "caption": (
        "the caption",
        "a description",
        "a one-line description",
        "a sentence about it",
        "what it depicts",
        "a short account of the scene",
    ),
    "answer": (
        "the answer",
        "a reply to the {question}",
        "an answer to the {question}",
        "what the answer is",
        "a response to the {question}",
    ),
    "mood": (
        "the sentiment",
        "its mood",
        "whether it sounds happy",
        "the tone of the author",
        "how positive it is",
        "the feeling behind it",
    ),
    "summary": (
        "the summary",
        "a shorter version",
        "the gist",
        "a digest",
        "its main points",
        "a brief of it",
    ),
}
_REPAIRED = (
    "the regular {picture}",
    "a clean {picture}",
    "a proper {picture}",
    "the {picture} as it should be",
    "a restored {picture}",
)
_PAINTED = (
    "a picture of it",
    "an illustration",
    "an image that shows it",
    "a drawing to go with it",
    "a painting of what it says",
)
_FRAMES = (
    "Given {given}, how to get {wanted} step by step?",
    "Given {given}, how do I obtain {wanted} step by step?",
    "I have {given} and need {wanted}. Which steps lead there?",
    "Starting from {given}, plan the way to {wanted}.",
    "From {given}, produce {wanted}.",
    "{wanted}, please, from {given}.",
    "Take {given} and give me {wanted}.",
    "My client sent {given}; what they want back is {wanted}.",
)


def task_text(assignment: Assignment, rng: random.Random) -> str:
    """Return one way to say an assignment.

    Examples
    --------
    >>> task_text(Assignment("picture", "caption", ("grainy",)), random.Random(3))
    'My client sent a speckled image; what they want back is what it depicts in English.'
    """
    question = rng.choice(_QUESTIONS)
    picture = rng.choice(_PICTURES)
    if assignment.source == "picture":
        flaws = [rng.choice(_DEFECTS[defect]) for defect in assignment.defects]
        rng.shuffle(flaws)  # people do not list them in the order of repair
        given = _with_article(f"{_listed(flaws)} {picture}".strip())
        if assignment.wanted == "answer":
            given += f" and {_with_article(_written(question, assignment, rng))} about it"
    else:
        given = _with_article(_written(rng.choice(_TEXTS), assignment, rng))
        if assignment.wanted == "answer":
            given += f" and a {question} about it"
    if assignment.wanted == "picture":
        choices = _REPAIRED if assignment.source == "picture" else _PAINTED
        wanted = rng.choice(choices).format(picture=picture)
    elif assignment.wanted == "text":
        wanted = f"the same in {assignment.wanted_language}"
    else:
        wanted = rng.choice(_WANTED[assignment.wanted]).format(question=question)
        wanted += f" in {assignment.wanted_language}"
    text = rng.choice(_FRAMES).format(given=given, wanted=wanted)
    return text[0].upper() + text[1:]


def _written(noun: str, assignment: Assignment, rng: random.Random) -> str:
    gaps = f" {rng.choice(_GAPS)}" if assignment.has_gaps else ""
    return f"{assignment.source_language} {noun}{gaps}"


def _with_article(words: str) -> str:
    return f"{'an' if words[0].lower() in 'aeiou' else 'a'} {words}"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words)
