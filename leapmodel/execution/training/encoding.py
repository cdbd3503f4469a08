"""Messages and answers as token ids, batched so that only the answer costs a loss.

The prompt is tokenized by itself and the answer by itself, as they are when a server is asked: a
token that spans both would be learned and never be met. An answer ends with the token at which a
server stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leapmodel.errors import UsageError
from leapmodel.execution.extras import require

EXTRA = "train"
"""What installs the libraries used here."""
NO_LOSS = -100
"""The label that transformers leaves out of a loss."""


@dataclass(frozen=True)
class Example:
    """One text to learn.

    Attributes
    ----------
    input_ids : list of int
        Prompt and answer.
    n_answer : int
        How many of them, at the end, are the answer.
    """

    input_ids: list[int]
    n_answer: int


def encode(
    tokenizer: Any, contexts: Iterable[tuple[Sequence[Mapping[str, str]], str]], *, longest: int
) -> list[Example]:
    """Turn (messages, answer) into token ids through the tokenizer's chat template.

    Parameters
    ----------
    tokenizer : transformers tokenizer
        With a chat template. A template that can leave reasoning out is told to.
    contexts : iterable of (messages, answer)
        What is asked, and what to learn to say.
    longest : int
        Tokens that a prompt and its answer may have together.

    Raises
    ------
    UsageError
        If the tokenizer has no chat template, or a text is too long.
    """
    if not tokenizer.chat_template:
        raise UsageError(f"{tokenizer.name_or_path}: its tokenizer has no chat template")
    examples = []
    for messages, answer in contexts:
        text = tokenizer.apply_chat_template(
            [dict(message) for message in messages],
            add_generation_prompt=True,
            tokenize=False,
            enable_thinking=False,
        )
        prompt = tokenizer(text, add_special_tokens=False).input_ids
        said = tokenizer(answer + tokenizer.eos_token, add_special_tokens=False).input_ids
        if len(prompt) + len(said) > longest:
            raise UsageError(
                f"a training pair has {len(prompt) + len(said):,} tokens, more than {longest:,}:"
                " raise --longest, or leave it out"
            )
        examples.append(Example(prompt + said, len(said)))
    return examples


class AnswerCollator:
    """Makes a batch in which a prefix that all its prompts share is computed once.

    Prompts of one agent begin alike: the instructions, and often the task. A batch is one row: the
    shared prefix, then the rest of each example, which sees the prefix and itself. The gradient is
    that of separate rows. Logits are computed only where an answer's token is to be said, because
    the last layer of a small model with a large vocabulary is a good part of its work, and logits
    of whole prompts are most of the memory.

    Where one row would be long (its attention grows with the square), the batch is padded on the
    left instead, so that the answers end together.

    Parameters
    ----------
    pad_token_id : int
        What to pad with.
    longest_row : int, default 4096
        Tokens of a packed row at most.
    """

    def __init__(self, pad_token_id: int, longest_row: int = 4096) -> None:
        self.pad_token_id = pad_token_id
        self.longest_row = longest_row

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the tensors of a batch; features have ``input_ids`` and ``n_answer``.

        ``shift_labels`` has the token to say at each position whose logits are kept, and
        ``labels`` is the same. The tokens of an answer stand together, with a position between two
        answers that counts for nothing.
        """
        examples = [Example(feature["input_ids"], feature["n_answer"]) for feature in features]
        shared = _shared_prefix(examples)
        packed = shared + sum(len(example.input_ids) - shared for example in examples)
        if packed <= self.longest_row:
            return _packed(examples, shared, packed)
        return self._padded(examples)

    def _padded(self, examples: Sequence[Example]) -> dict[str, Any]:
        torch = require("torch", EXTRA)
        width = max(len(example.input_ids) for example in examples)
        kept = min(width, 1 + max(example.n_answer for example in examples))
        input_ids = torch.full((len(examples), width), self.pad_token_id, dtype=torch.long)
        mask = torch.zeros_like(input_ids)
        labels = torch.full((len(examples), kept), NO_LOSS, dtype=torch.long)
        for row, example in enumerate(examples):
            ids = torch.tensor(example.input_ids, dtype=torch.long)
            input_ids[row, width - len(ids) :] = ids
            mask[row, width - len(ids) :] = 1
            labels[row, kept - 1 - example.n_answer : kept - 1] = ids[len(ids) - example.n_answer :]
        return {
            "input_ids": input_ids,
            "attention_mask": mask,
            "position_ids": (mask.cumsum(1) - 1).clamp(min=0),
            "labels": labels,
            "shift_labels": labels,
            "logits_to_keep": kept,
        }


def _shared_prefix(examples: Sequence[Example]) -> int:
    """Return how many first tokens all examples share, leaving each a token before its answer."""
    first = min(example.input_ids for example in examples)
    last = max(example.input_ids for example in examples)
    limit = min(len(example.input_ids) - example.n_answer - 1 for example in examples)
    shared = 0
    while shared < limit and first[shared] == last[shared]:
        shared += 1
    return max(0, shared)


def _packed(examples: Sequence[Example], shared: int, width: int) -> dict[str, Any]:
    torch = require("torch", EXTRA)
    input_ids = torch.empty((1, width), dtype=torch.long)
    positions = torch.empty_like(input_ids)
    owner = torch.zeros(width, dtype=torch.long)
    kept: list[int] = []
    labels: list[int] = []
    input_ids[0, :shared] = torch.tensor(examples[0].input_ids[:shared], dtype=torch.long)
    positions[0, :shared] = torch.arange(shared)
    at = shared
    for number, example in enumerate(examples, start=1):
        own = example.input_ids[shared:]
        end = at + len(own)
        input_ids[0, at:end] = torch.tensor(own, dtype=torch.long)
        positions[0, at:end] = torch.arange(shared, shared + len(own))
        owner[at:end] = number
        kept += range(end - example.n_answer - 1, end)
        labels += [*own[len(own) - example.n_answer :], NO_LOSS]
        at = end
    earlier = torch.ones((width, width), dtype=torch.bool).tril()
    visible = earlier & ((owner[:, None] == owner) | (owner == 0))
    to_say = torch.tensor([labels], dtype=torch.long)
    return {
        "input_ids": input_ids,
        "attention_mask": visible[None, None],
        "position_ids": positions,
        "labels": to_say,
        "shift_labels": to_say,
        "logits_to_keep": torch.tensor(kept, dtype=torch.long),
    }
