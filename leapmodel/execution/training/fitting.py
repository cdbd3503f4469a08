"""The training run itself: transformers' Trainer on encoded examples, the best epoch kept."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from leapmodel.execution.extras import require
from leapmodel.execution.precision import Precision, cpu_precision
from leapmodel.execution.training.encoding import EXTRA, NO_LOSS, AnswerCollator, Example

Selection = Literal["loss", "exact-match"]
Progress = Callable[[int, int], None]
"""Called with the optimizer steps done and all there will be."""


@dataclass(frozen=True)
class Fitting:
    """How the weights that require a gradient are fitted.

    Attributes
    ----------
    learning_rate : float
        Highest, after a warm-up over 3% of the steps; it falls to 0 as a cosine does.
    epochs : int
        Passes over the examples.
    batch_size : int
        Examples an optimizer step.
    select : {"loss", "exact-match"}
        What makes an epoch the best on the validation examples.
    seed : int
        Of the order of examples, and of any dropout.
    """

    learning_rate: float
    epochs: int
    batch_size: int = 16
    select: Selection = "loss"
    seed: int = 0


@dataclass(frozen=True)
class Epoch:
    """What one epoch came to; validation values are None where there is nothing to validate on."""

    epoch: int
    training_loss: float
    validation_loss: float | None = None
    validation_exact_match: float | None = None


@dataclass(frozen=True)
class Fitted:
    """The epochs of a run, and which of them the model now holds."""

    epochs: tuple[Epoch, ...]
    chosen: int


def fit(
    model: Any,
    tokenizer: Any,
    training: Sequence[Example],
    validation: Sequence[Example],
    how: Fitting,
    *,
    progress: Progress | None = None,
) -> Fitted:
    """Fit a model in place; it ends with the weights of its best epoch, or of its last one.

    Parameters
    ----------
    model : transformers or peft model
        Those of its weights that require a gradient are changed.
    tokenizer : transformers tokenizer
        Its own.
    training, validation : sequence of Example
        What to learn, and what to choose the epoch by; without validation the last epoch stays.
    how : Fitting
        The settings.
    progress : callable, optional
        Called after each optimizer step.

    Notes
    -----
    The greedy answer to a context is the wanted one exactly if each of its tokens is the most
    likely after the ones before; so one pass over the validation examples gives both the loss and
    the exact match, without generating.
    """
    transformers = require("transformers", EXTRA)
    require("accelerate", EXTRA)  # Trainer's own message about it speaks of another extra
    cuda = require("torch", EXTRA).cuda
    on_gpu = cuda.is_available()
    metric = {"loss": "loss", "exact-match": "exact_match"}[how.select]
    with tempfile.TemporaryDirectory(prefix="leapmodel-train-") as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder,
            learning_rate=how.learning_rate,
            num_train_epochs=how.epochs,
            per_device_train_batch_size=how.batch_size,
            per_device_eval_batch_size=how.batch_size,
            lr_scheduler_type="cosine",
            warmup_steps=0.03,
            weight_decay=0.0,
            seed=how.seed,
            use_cpu=not on_gpu,
            bf16=training_precision() == "bfloat16",
            train_sampling_strategy="group_by_length",
            length_column_name="length",
            remove_unused_columns=False,
            logging_strategy="epoch",
            eval_strategy="epoch" if validation else "no",
            save_strategy="epoch" if validation else "no",
            save_only_model=True,
            save_total_limit=1,
            load_best_model_at_end=bool(validation),
            metric_for_best_model=metric,
            greater_is_better=how.select == "exact-match",
            label_names=["labels"],
            disable_tqdm=True,
            report_to=[],
            dataloader_pin_memory=on_gpu,
        )
        trainer = transformers.Trainer(
            model=model,
            args=arguments,
            train_dataset=_Rows(training),
            eval_dataset=_Rows(validation) if validation else None,
            data_collator=AnswerCollator(tokenizer.pad_token_id),
            processing_class=tokenizer,
            compute_metrics=_exact_match,
            preprocess_logits_for_metrics=_most_likely,
            callbacks=[_progress_callback(transformers, progress)],
        )
        trainer.remove_callback(transformers.PrinterCallback)
        model.config.use_cache = False
        trainer.train()
        model.config.use_cache = True
        best = trainer.state.best_model_checkpoint
        per_epoch = max(1, trainer.state.max_steps // how.epochs)
        chosen = how.epochs if best is None else round(int(Path(best).name[11:]) / per_epoch)
    return Fitted(_epochs(trainer.state.log_history, how.epochs), chosen)


def training_precision() -> Precision:
    """Return the format that matrix products are computed in while a model is trained."""
    cuda = require("torch", EXTRA).cuda
    if cuda.is_available():
        return "bfloat16" if cuda.is_bf16_supported() else "float32"
    return cpu_precision()


class _Rows:
    """Examples as Trainer's data loader takes them."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, at: int) -> dict[str, Any]:
        example = self.examples[at]
        return {
            "input_ids": example.input_ids,
            "n_answer": example.n_answer,
            "length": len(example.input_ids),
        }


def _most_likely(logits: Any, labels: Any) -> Any:
    """Keep of the logits only what is needed, so that an evaluation's memory stays small."""
    return (logits[0] if isinstance(logits, tuple) else logits).argmax(dim=-1)


def _exact_match(evaluated: Any) -> dict[str, float]:
    """Return the share of answers of which every token is the most likely one."""
    wanted = np.asarray(evaluated.label_ids)
    # one row after another, with a position that counts for nothing between two answers
    wanted = np.pad(wanted, ((0, 0), (1, 1)), constant_values=NO_LOSS).ravel()
    said = np.pad(np.asarray(evaluated.predictions), ((0, 0), (1, 1))).ravel()
    counts = wanted != NO_LOSS
    answer = np.cumsum(counts & ~np.concatenate(([False], counts[:-1])))
    wrong = np.unique(answer[counts & (said != wanted)])
    return {"exact_match": float(1 - len(wrong) / answer[-1])}


def _epochs(log: list[dict[str, Any]], epochs: int) -> tuple[Epoch, ...]:
    found = []
    for number in range(1, epochs + 1):
        at = [entry for entry in log if round(entry.get("epoch", 0)) == number]
        training = [entry["loss"] for entry in at if "loss" in entry]
        validated = [entry for entry in at if "eval_loss" in entry]
        found.append(
            Epoch(
                number,
                float(training[-1]) if training else float("nan"),
                float(validated[-1]["eval_loss"]) if validated else None,
                float(validated[-1]["eval_exact_match"]) if validated else None,
            )
        )
    return tuple(found)


def _progress_callback(transformers: Any, progress: Progress | None) -> Any:
    class Steps(transformers.TrainerCallback):  # type: ignore[misc]  # loaded when needed
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if progress is not None:
                progress(state.global_step, state.max_steps)

    return Steps()
