"""Tiny drafts for machines without a GPU: Qwen3's architecture, a few million parameters.

They stand where the paper's untrained Qwen3-0.6B stands (Sec. 3.3): such a base reads the prompt,
answers in its form and has an idea of what a tool is for, but does not know what the target does
next. It is pretrained as a language model on prompts of the planning benchmark, each with some step
that is still to be done, in no order; the order, and the target's errors, are left to the adapter.
The tasks of the ``train`` and ``test`` splits are not among them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leapmodel.benchmarks import Split
from leapmodel.benchmarks.planning import PlanningBenchmark
from leapmodel.benchmarks.planning.prompts import WHOLE_WORDS
from leapmodel.benchmarks.planning.thoughts import reading
from leapmodel.benchmarks.planning.tools import TOOLS
from leapmodel.errors import UsageError
from leapmodel.execution.extras import require
from leapmodel.execution.training.encoding import EXTRA, Example, encode
from leapmodel.execution.training.fitting import Fitting, Progress, fit

VOCABULARY = 1024
CONTEXT = 1024
N_TEXTS = 12_000
QUICK_TEXTS = 400
PRETRAINING = Fitting(learning_rate=3e-3, epochs=1, batch_size=8)
_INITIAL_SPREAD = 0.08
"""Of the first weights: about one over the root of the width. The usual 0.02 is made for a hundred
times as many parameters; with it, and batches of 16, these models learned no reading."""
MORE_TASKS = 10_000
"""Added to the benchmark's seed, it gives other tasks of the same kind."""
_KEPT_APART: tuple[Split, ...] = ("train", "test")
_TEACHER: tuple[Split, ...] = ("teacher",)
_ALL: tuple[Split, ...] = (*_KEPT_APART, *_TEACHER)
_ASTRAY = 0.2
_CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


@dataclass(frozen=True)
class Shape:
    """The sizes of a model; attention heads are 64 wide."""

    hidden: int
    layers: int
    heads: int
    key_value_heads: int
    intermediate: int


SHAPES: dict[str, Shape] = {
    "1.7M": Shape(128, 6, 2, 1, 384),
    "5M": Shape(256, 6, 4, 2, 640),
    "15M": Shape(384, 8, 6, 2, 1024),
}
"""By their parameters, in millions."""


def make_tiny(
    folder: str | Path,
    size: str,
    *,
    seed: int = 0,
    n_texts: int = N_TEXTS,
    progress: Progress | None = None,
) -> None:
    """Make an untrained draft and save it as a model directory.

    Parameters
    ----------
    folder : str or Path
        Where to.
    size : str
        A key of :data:`SHAPES`.
    seed : int, default 0
        Of the weights and the texts.
    n_texts : int, default 12,000
        Texts it is pretrained on.
    progress : callable, optional
        Called after each optimizer step.

    Raises
    ------
    UsageError
        If there is no such size, or a library is missing.
    """
    if size not in SHAPES:
        raise UsageError(f"no tiny model of size {size!r}; there are {', '.join(SHAPES)}")
    torch, transformers = require("torch", EXTRA), require("transformers", EXTRA)
    rng = random.Random(seed)
    benchmark = PlanningBenchmark()
    texts = texts_to_read(benchmark, n_texts, rng)
    tokenizer = make_tokenizer(texts)
    torch.manual_seed(seed)
    shape = SHAPES[size]
    model = transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=shape.hidden,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.key_value_heads,
            intermediate_size=shape.intermediate,
            head_dim=64,
            initializer_range=_INITIAL_SPREAD,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    # Learning to write the tasks as well makes it a better reader than the answers alone do.
    examples = encode(tokenizer, texts, longest=CONTEXT)
    instructions = _shared(examples)
    whole = [Example(one.input_ids, len(one.input_ids) - instructions - 1) for one in examples]
    fit(model, tokenizer, whole, [], PRETRAINING, progress=progress)
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def measured_texts(benchmark: PlanningBenchmark) -> set[str]:
    """Return the tasks that a loop is measured on, which no base and no target is taught."""
    return {task.text for split in _KEPT_APART for task in benchmark.tasks(split)}


def texts_to_read(
    benchmark: PlanningBenchmark, n: int, rng: random.Random
) -> list[tuple[Sequence[Mapping[str, str]], str]]:
    """Return (messages, answer): half draft prompts with an action, half with a gloss.

    The action is drawn from those that are still to be done, in no order; it is the end only when
    nothing else is left. Some of the histories hold an action that nobody asked for. A gloss says
    what the words of a task mean. Together they stand for what a model of the size that the paper
    drafts with knows of English and of tools.
    """
    measured = measured_texts(benchmark)
    others = PlanningBenchmark(benchmark.seed + MORE_TASKS)
    tasks = [
        (task, assignment)
        for known, splits in ((others, _ALL), (benchmark, _TEACHER))
        for split in splits
        for task, assignment in known.assignments(split)
        if task.text not in measured
    ]
    found: list[tuple[Sequence[Mapping[str, str]], str]] = []
    for number in range(n):
        task, assignment = rng.choice(tasks)
        history = rng.sample(assignment.plan[:-1], rng.randrange(len(assignment.plan)))
        if rng.random() < _ASTRAY:
            history.insert(rng.randrange(len(history) + 1), rng.choice(list(TOOLS)))
        environment = benchmark.start(task)
        for action in history:
            environment.step(action)
        messages = environment.prompt("draft").messages
        if number % 2:
            left = assignment.remaining(history)
            found.append((messages, benchmark.answer("draft", rng.choice(left[:-1] or left))))
        else:
            asked = {"role": "user", "content": f"Task: {task.text}\nIn short:"}
            found.append(((*messages[:-1], asked), reading(assignment)))
    return found


def make_tokenizer(texts: Sequence[tuple[Sequence[Mapping[str, str]], str]]) -> Any:
    """Train a byte-level BPE tokenizer on prompts and answers, with a chat template.

    A tool's name is one token, as are the tags around it: an answer takes four steps of decoding
    instead of ten, and on a CPU a draft's call is little else than its steps.
    """
    tokenizers, transformers = require("tokenizers", EXTRA), require("transformers", EXTRA)
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(
        (
            text
            for messages, answer in texts
            for text in (*(message["content"] for message in messages), answer)
        ),
        trainer,
    )
    bpe.add_tokens([tokenizers.AddedToken(word, normalized=False) for word in WHOLE_WORDS])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=_CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=CONTEXT,
    )


def _shared(examples: Sequence[Example]) -> int:
    """Return how many first tokens all examples share: the instructions."""
    first, last = min(e.input_ids for e in examples), max(e.input_ids for e in examples)
    return next(i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
