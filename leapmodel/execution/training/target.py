"""The CPU preset's target: SmolLM2, taught to write a short thought and then the action.

A large model reasons by itself; SmolLM2 does not, and plans 2% of its steps right. What it is
taught is the planning benchmark's ``teacher`` split, which is neither trained a draft on nor
measured on. Its steps are then long because it thinks, as the paper's are.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leapmodel.benchmarks import Prompt, Task
from leapmodel.benchmarks.planning import PlanningBenchmark
from leapmodel.benchmarks.planning.assignment import Assignment
from leapmodel.benchmarks.planning.thoughts import histories, taught_answer
from leapmodel.execution.extras import require
from leapmodel.execution.training.encoding import EXTRA, Example, encode
from leapmodel.execution.training.fitting import Fitting, Progress, fit
from leapmodel.execution.training.sft import ADAPTED, load_model

N_TASKS = 480
N_VALIDATION = 20
RANK, ALPHA = 64, 128
DIRECT_SHARE = 0.3
"""Of the lessons, those also taught without a thought, so that it can be its own draft."""
TEACHING = Fitting(learning_rate=5e-4, epochs=1, batch_size=8, select="exact-match")
QUICK_TASKS = 120
QUICK_TEACHING = Fitting(learning_rate=3e-3, epochs=4, batch_size=8)
_LONGEST = 1024


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
    training, validation = _lessons(tokenizer, N_TASKS)
    fit(model, tokenizer, training, validation, TEACHING, progress=progress)
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
    training, _ = _lessons(tokenizer, QUICK_TASKS)
    fit(model, tokenizer, training, [], QUICK_TEACHING, progress=progress)
    _save(model, tokenizer, folder)


def _lessons(tokenizer: Any, n_tasks: int) -> tuple[list[Example], list[Example]]:
    """Return what is taught on the first tasks of the ``teacher`` split, and on its last ones."""
    benchmark = PlanningBenchmark()
    assignments = benchmark.assignments("teacher")
    rng = random.Random(TEACHING.seed)

    def lessons(of: Sequence[tuple[Task, Assignment]]) -> list[tuple[Prompt, str]]:
        found = []
        for task, assignment in of:
            for history in histories(assignment, rng):
                environment = benchmark.start(task)
                for action in history:
                    environment.step(action)
                answer = taught_answer(assignment, history)
                found.append((environment.prompt("target"), answer))
                if rng.random() < DIRECT_SHARE:
                    action = assignment.remaining(history)[0]
                    direct = benchmark.answer("draft", action)
                    found.append((environment.prompt("draft"), direct))
        return found

    training, validation = (
        encode(tokenizer, ((p.messages, answer) for p, answer in lessons(of)), longest=_LONGEST)
        for of in (assignments[:n_tasks], assignments[-N_VALIDATION:])
    )
    return training, validation


def _save(model: Any, tokenizer: Any, folder: str | Path) -> None:
    model.to(require("torch", EXTRA).bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
