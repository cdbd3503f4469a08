"""What the planning benchmark asks its models, and how it reads their answers (App. G).

Both see the task and the committed actions, nothing else: no tool output, no earlier thought. The
target is asked for a thought and then the action; the draft for the action alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from leapmodel.actions import TERMINATE
from leapmodel.benchmarks.interface import Prompt
from leapmodel.benchmarks.planning.tools import TOOLS

STOP_WORD = "TERMINATE"
"""What a model writes between the tags when the plan is complete."""
_OPEN, _CLOSE = "<tool>", "</tool>"
WHOLE_WORDS = (_OPEN, _CLOSE, STOP_WORD, *TOOLS)
"""What answers are made of, for a model whose tokenizer is made for them."""

_TARGET_SYSTEM = (
    "You plan work with expert tools, one tool at a time. They work in English. Tools: "
    + ", ".join(TOOLS)
    + f".\nThink briefly, then write the next tool as <tool>name</tool>,"
    f" or <tool>{STOP_WORD}</tool> when the plan is complete."
)
_DRAFT_SYSTEM = (
    "Next tool as <tool>name</tool>, one of: "
    + ", ".join(TOOLS)
    + f"; <tool>{STOP_WORD}</tool> when done."
)


def target_prompt(text: str, committed: Sequence[str | None], max_tokens: int) -> Prompt:
    """Return the target's request: a thought, then the next tool."""
    return _prompt(_TARGET_SYSTEM, text, committed, max_tokens)


def draft_prompt(text: str, committed: Sequence[str | None], max_tokens: int) -> Prompt:
    """Return the draft's request: the next tool, directly."""
    return _prompt(_DRAFT_SYSTEM, text, committed, max_tokens)


def parse_tool(text: str) -> str | None:
    """Return the canonical action in an answer: the last tag pair's tool.

    Text before it may name other tools, and text behind it is ignored. An unknown tool, an empty
    pair or no pair at all is no action.

    Examples
    --------
    >>> parse_tool("Not <tool>Fill Mask</tool> but <tool>Colorization</tool>")
    'Colorization'
    >>> parse_tool("<tool>TERMINATE</tool>"), parse_tool("<tool>Teleport</tool>")
    ('<terminate/>', None)
    """
    # From the end, so that an answer of a thousand opening tags takes no longer than any other.
    end = text.rfind(_CLOSE)
    begin = text.rfind(_OPEN, 0, max(end, 0))
    if begin < 0:
        return None
    name = " ".join(text[begin + len(_OPEN) : end].split())
    if name == STOP_WORD:
        return TERMINATE
    return name if name in TOOLS else None


def answer(action: str) -> str:
    """Return a canonical action as a model writes it.

    Examples
    --------
    >>> answer("<terminate/>")
    '<tool>TERMINATE</tool>'
    """
    return f"<tool>{STOP_WORD if action == TERMINATE else action}</tool>"


def _prompt(system: str, text: str, committed: Sequence[str | None], max_tokens: int) -> Prompt:
    done = ", ".join(str(action) for action in committed) or "nothing yet"
    return Prompt(
        (
            {"role": "system", "content": system},
            {"role": "user", "content": f"Task: {text}\nDone: {done}"},
        ),
        max_tokens,
    )
