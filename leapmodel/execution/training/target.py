"""The CPU preset's target: SmolLM2, taught to write a short thought and then the action.

A large model reasons by itself; SmolLM2 does not, and plans 2% of its steps right. What it is
taught is the planning benchmark's ``teacher`` split, which is neither trained a draft on nor
measured on. Its steps are then long because it thinks, as the paper's are.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leapmodel.benchmarks.planning import PlanningBenchmark
from leapmodel.benchmarks.planning.thoughts import histories, taught_answer
from leapmodel.execution.extras import require
from leapmodel.execution.training.encoding import EXTRA, Example, encode
from leapmodel.execution.training.fitting import Fitting, Progress, fit
from leapmodel.execution.training.pruning import LAYERS, prune
from leapmodel.execution.training.sft import ADAPTED, load_model
from leapmodel.execution.training.tiny import MORE_TASKS, measured_texts

N_TASKS = 480
N_VALIDATION = 20
RANK, ALPHA = 64, 128
DIRECT_SHARE = 0.3
"""Of the lessons, those also taught without a thought, so that it can be its own draft."""
TEACHING = Fitting(learning_rate=5e-4, epochs=1, batch_size=8, select="exact-match")
PRUNED_TEACHING = Fitting(learning_rate=1e-3, epochs=1, batch_size=8, select="exact-match")
QUICK_TASKS = 120
QUICK_TEACHING = Fitting(learning_rate=3e-3, epochs=4, batch_size=8)
_LONGEST = 1024
Lesson = tuple[Sequence[Mapping[str, str]], str]
"""Messages, and what is to be said to them."""


def make_target(base: str | Path, folder: str | Path, *, progress: Progress | None = None) -> None:
    """Teach a base model to think before it acts, and save it whole.

    Parameters
    ----------
    base : str or Path
        SmolLM2.
    folder : str or Path
        Where to.
    progress : callable, optional
        Called after each optimizer step.
    """
    torch, peft = require("torch", EXTRA), require("peft", EXTRA)
    model, tokenizer = load_model(base, whole=False)
    torch.manual_seed(TEACHING.seed)
    config = peft.LoraConfig(
        r=RANK, lora_alpha=ALPHA, target_modules=ADAPTED, task_type="CAUSAL_LM"
    )
    model = peft.get_peft_model(model, config)
    training = encode(tokenizer, _lessons(PlanningBenchmark(), N_TASKS), longest=_LONGEST)
    fit(model, tokenizer, training, _validation(tokenizer), TEACHING, progress=progress)
    _save(model.merge_and_unload(), tokenizer, folder)


def make_quick_target(
    base: str | Path, folder: str | Path, *, progress: Progress | None = None
) -> None:
    """Teach a tiny model what :func:`make_target` teaches SmolLM2; it learns the form, not more.

    It thinks and acts in a fifth of SmolLM2's time, so that a loop around it is tried in minutes on
    any machine. Parameters as there.
    """
    torch = require("torch", EXTRA)
    model, tokenizer = load_model(base, whole=True)
    torch.manual_seed(QUICK_TEACHING.seed)
    training = encode(tokenizer, _lessons(PlanningBenchmark(), QUICK_TASKS), longest=_LONGEST)
    fit(model, tokenizer, training, [], QUICK_TEACHING, progress=progress)
    _save(model, tokenizer, folder)


def make_pruned_target(
    base: str | Path, folder: str | Path, *, progress: Progress | None = None
) -> None:
    """Prune SmolLM2, then teach it what :func:`make_target` teaches the whole, on more tasks.

    Its layers have to learn again to work together. After the first pass it reads and plans right,
    and does not look at what is done (30% of steps right); a second one is about that alone.
    Parameters as there.
    """
    torch = require("torch", EXTRA)
    model, tokenizer = load_model(base, whole=True)
    others = PlanningBenchmark(PlanningBenchmark().seed + MORE_TASKS)
    lessons = [*_lessons(PlanningBenchmark(), N_TASKS), *_lessons(others, N_TASKS)]
    torch.manual_seed(PRUNED_TEACHING.seed)
    tokenizer = prune(model, tokenizer, _texts(tokenizer, lessons), LAYERS)
    again = [
        lesson
        for benchmark in (PlanningBenchmark(), others)
        for lesson in _lessons(benchmark, N_TASKS, seed=PRUNED_TEACHING.seed + 1, under_way=True)
    ]
    validation = _validation(tokenizer)
    for taught in (lessons, again):
        training = encode(tokenizer, taught, longest=_LONGEST)
        fit(model, tokenizer, training, validation, PRUNED_TEACHING, progress=progress)
    _save(model, tokenizer, folder)


def _texts(tokenizer: Any, lessons: Sequence[Lesson]) -> list[str]:
    """Return the texts of lessons, as a model meets them."""
    return [
        tokenizer.apply_chat_template(
            [*map(dict, messages)], add_generation_prompt=True, tokenize=False
        )
        + answer
        for messages, answer in lessons
    ]


def _validation(tokenizer: Any) -> list[Example]:
    """Return the last tasks of the ``teacher`` split, which are taught to nobody."""
    lessons = _lessons(PlanningBenchmark(), N_VALIDATION, last=True)
    return encode(tokenizer, lessons, longest=_LONGEST)


def _lessons(
    benchmark: PlanningBenchmark,
    n_tasks: int,
    *,
    last: bool = False,
    seed: int = TEACHING.seed,
    under_way: bool = False,
) -> list[Lesson]:
    """Return what is taught on the first tasks of a ``teacher`` split, or on its last ones.

    ``under_way`` leaves out the first steps, of which nothing is done yet.
    """
    measured = measured_texts(PlanningBenchmark())
    assignments = [one for one in benchmark.assignments("teacher") if one[0].text not in measured]
    rng = random.Random(seed)
    found: list[Lesson] = []
    for task, assignment in assignments[-n_tasks:] if last else assignments[:n_tasks]:
        for history in histories(assignment, rng)[under_way:]:
            environment = benchmark.start(task)
            for action in history:
                environment.step(action)
            answer = taught_answer(assignment, history)
            found.append((environment.prompt("target").messages, answer))
            if rng.random() < DIRECT_SHARE:
                action = assignment.remaining(history)[0]
                direct = benchmark.answer("draft", action)
                found.append((environment.prompt("draft").messages, direct))
    return found


def _save(model: Any, tokenizer: Any, folder: str | Path) -> None:
    model.to(require("torch", EXTRA).bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
