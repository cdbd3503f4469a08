"""Supervised fine-tuning of a draft on the target's canonical actions (Sec. 3.3).

The draft learns the action alone, never the reasoning. What is written is an adapter (peft's
format, which vLLM loads into a running server), or whole weights for full fine-tuning, and beside
it ``training.json``: what was learned from what, and how it went.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

from leapmodel.atomic import atomic_folder, write_json
from leapmodel.errors import UsageError
from leapmodel.execution.extras import require
from leapmodel.execution.precision import Precision
from leapmodel.execution.training.encoding import EXTRA, encode
from leapmodel.execution.training.fitting import (
    Epoch,
    Fitting,
    Progress,
    Selection,
    fit,
    training_precision,
)
from leapmodel.execution.training.pairs import Pairs

RANK, ALPHA = 64, 128
LEARNING_RATE = 3e-5
EPOCHS = 3
BATCH_SIZE = 16
LONGEST = 16_384
ADAPTED = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
"""The layers that get an adapter: all that vLLM serves one for in Llama's and Qwen3's kind."""
TRAINING_FILE = "training.json"
"""Written last: a folder that has it is complete."""
ADAPTER_FOLDER = "adapter"
"""Beside merged weights, what was merged into them."""
_RATE_BY_WIDTH, _HIGHEST_RATE = 0.384, 1e-3
"""Learning rate times width, for the small models of a CPU: Adam's steps act on all of a layer's
inputs at once, so that twice the width wants half the rate. And the rate at most: with 3e-3, as
widths of 128 had it, the loss on the validation pairs went up and down, and ended at 0.23 with 66%
of them exact; with 1e-3 at 0.10 with 87% (994 pairs, ten epochs). Twice that width is as good with
1.5e-3 as with 5e-4 (91 and 88%)."""
_EPOCHS_UP_TO = ((20e6, 10), (100e6, 5), (float("inf"), 1))
"""Bytes of the weights, and the epochs that so small a model gets: minutes, on two cores."""
_LIBRARIES = ("leapmodel", "torch", "transformers", "peft", "accelerate")


@dataclass(frozen=True)
class Recipe:
    """How a draft is trained; the defaults are the paper's.

    Attributes
    ----------
    rank, alpha : int
        Of the adapter.
    learning_rate : float
        3e-5 suits 0.6B parameters; smaller models want more (7e-4 at 135M, 3e-3 at two million).
    epochs, batch_size : int
        Passes over the pairs, and pairs an optimizer step.
    select : {"loss", "exact-match"}
        By which the epoch is chosen on the validation tasks.
    full : bool
        Train all weights instead of an adapter.
    seed : int
        Of the validation tasks, the adapter's first weights and the order of pairs.
    """

    rank: int = RANK
    alpha: int = ALPHA
    learning_rate: float = LEARNING_RATE
    epochs: int = EPOCHS
    batch_size: int = BATCH_SIZE
    select: Selection = "loss"
    full: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rank", "alpha", "epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}: expected at least 1, found {getattr(self, name)}")
        if not self.learning_rate > 0:
            raise UsageError(f"learning rate: expected above 0, found {self.learning_rate:g}")

    @property
    def fitting(self) -> Fitting:
        """What of it the fitting needs to know."""
        return Fitting(self.learning_rate, self.epochs, self.batch_size, self.select, self.seed)


PAPER = Recipe()
"""Sec. 3.3 and App. L."""


def recipe_for(base: str | Path, preset: str) -> dict[str, Any]:
    """Return the fields of a recipe that a preset sets.

    Parameters
    ----------
    base : str or Path
        The model directory.
    preset : {"paper", "cpu"}
        ``"cpu"`` has a learning rate for so narrow a model, and epochs that take a few minutes.

    Raises
    ------
    UsageError
        If it is no folder of weights and their configuration, and the preset needs the size.
    """
    if preset == "paper":
        return {}
    file, config = Path(base) / "model.safetensors", Path(base) / "config.json"
    try:
        size = file.stat().st_size
        width = int(json.loads(config.read_text("utf-8"))["hidden_size"])
        rate = min(_RATE_BY_WIDTH / width, _HIGHEST_RATE)
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
        raise UsageError(
            f"{base}: expected {file.name} and a {config.name} with a hidden_size; the cpu preset"
            " is for such as leapmodel prepare makes"
        ) from None
    epochs = next(epochs for largest, epochs in _EPOCHS_UP_TO if size <= largest)
    return {"learning_rate": rate, "epochs": epochs, "batch_size": 8}


@dataclass(frozen=True)
class Training:
    """A finished training run.

    Attributes
    ----------
    folder : str
        Where the adapter or the weights are.
    base, continued_from : str, str or None
        The model it started from, and the adapter it went on with.
    recipe : Recipe
        The settings.
    pairs, tasks, validation_pairs, validation_tasks : int
        What was learned from and chosen by.
    epochs : tuple of Epoch
        Losses and validation exact match of each.
    chosen : int
        The epoch whose weights were kept.
    seconds : float
        Of everything, loading included.
    device : str
        ``"cpu"`` or the GPU's name.
    precision : {"bfloat16", "float32"}
        What matrix products were computed in.
    merged : bool
        Whether the folder holds whole weights with the adapter merged into them.
    versions : mapping
        Of the libraries.
    data : mapping
        What the pairs say of their origin.
    """

    folder: str
    base: str
    continued_from: str | None
    recipe: Recipe
    pairs: int
    tasks: int
    validation_pairs: int
    validation_tasks: int
    epochs: tuple[Epoch, ...]
    chosen: int
    seconds: float
    device: str
    precision: Precision
    merged: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)

    def summary(self) -> str:
        """Return what came of it, in two sentences."""
        epoch = self.epochs[self.chosen - 1]
        said = f"loss {epoch.training_loss:.3f} in training"
        if epoch.validation_loss is not None and epoch.validation_exact_match is not None:
            said += (
                f", {epoch.validation_loss:.3f} on {self.validation_pairs} validation pairs"
                f" ({epoch.validation_exact_match:.1%} exact)"
            )
        what = "weights" if self.recipe.full or self.merged else "adapter"
        return (
            f"learned {self.pairs:,} pairs of {self.tasks:,} tasks in {self.seconds:.0f} s on"
            f" {self.device} ({self.precision}); kept epoch {self.chosen} of {len(self.epochs)}:"
            f" {said}\n"
            f"{what}: {self.folder}"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row an epoch.

        Columns: ``epoch``, ``training_loss``, ``validation_loss``, ``validation_exact_match`` (NaN
        without validation), ``chosen``.
        """
        frame = pd.DataFrame([asdict(epoch) for epoch in self.epochs])
        frame = frame.astype({"validation_loss": float, "validation_exact_match": float})
        return frame.assign(chosen=frame["epoch"] == self.chosen)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what ``training.json`` holds."""
        return {"leapmodel": "training", "version": 1, **asdict(self)}

    def _repr_html_(self) -> str:
        from html import escape

        table = self.to_frame().to_html(index=False, float_format="{:.3f}".format, na_rep="–")
        return f"<p>{escape(self.summary())}</p>{table}"


def train_draft(
    pairs: Pairs,
    base: str | Path,
    folder: str | Path,
    recipe: Recipe | None = None,
    *,
    adapter: str | Path | None = None,
    merge: bool = False,
    validation: Pairs | None = None,
    longest: int = LONGEST,
    progress: Progress | None = None,
) -> Training:
    """Train a draft on pairs and save it.

    Parameters
    ----------
    pairs : Pairs
        What to learn; duplicates are learned once.
    base : str or Path
        The model to adapt: a directory, or a name that transformers knows.
    folder : str or Path
        A new or empty folder. A server that has loaded an adapter once remembers its answers by
        its path, so every version gets a path of its own.
    recipe : Recipe, optional
        Default: the paper's.
    adapter : str or Path, optional
        Go on with this adapter; its own rank and alpha hold.
    merge : bool, default False
        Write whole weights, with the adapter merged into them; the adapter itself goes into
        ``adapter`` there, so that training can go on from it.
    validation : Pairs, optional
        To choose the epoch by; default: a tenth of the tasks, taken out of ``pairs``.
    longest : int, default 16,384
        Tokens of a pair at most.
    progress : callable, optional
        Called after each optimizer step with how many are done, and how many there will be.

    Returns
    -------
    Training

    Raises
    ------
    UsageError
        If a library or a model is missing, the base takes no adapter, the folder holds something
        or can't be made, or a combination makes no sense. Nothing is left in the folder then.
    """
    recipe = recipe or Recipe()
    if recipe.full and adapter is not None:
        raise UsageError("full fine-tuning trains all weights; it can't go on with an adapter")
    if recipe.full and merge:
        raise UsageError("full fine-tuning has no adapter to merge")
    if not len(pairs):
        raise UsageError("no pair to learn from")
    target = new_folder(folder)
    start = time.perf_counter()
    torch = require("torch", EXTRA)
    peft = None if recipe.full else require("peft", EXTRA)
    with atomic_folder(target) as new:  # made first: a training may take hours
        model, tokenizer = load_model(base, whole=recipe.full)
        torch.manual_seed(recipe.seed)
        if peft is not None:
            model, recipe = _adapted(peft, model, recipe, adapter)
        training = pairs.without_duplicates()
        if validation is None:
            training, validation = training.carve(seed=recipe.seed)
        fitted = fit(
            model,
            tokenizer,
            encode(tokenizer, training.contexts, longest=longest),
            encode(tokenizer, validation.contexts, longest=longest),
            recipe.fitting,
            progress=progress,
        )
        _save(model, tokenizer, new, merge=merge, whole=recipe.full)
        done = Training(
            folder=str(target),
            base=str(base),
            continued_from=None if adapter is None else str(adapter),
            recipe=recipe,
            merged=merge,
            pairs=len(training),
            tasks=training.n_tasks,
            validation_pairs=len(validation),
            validation_tasks=validation.n_tasks,
            epochs=fitted.epochs,
            chosen=fitted.chosen,
            seconds=time.perf_counter() - start,
            device=torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
            precision=training_precision(),
            versions=_versions(),
            data=pairs.metadata,
        )
        write_json(new / TRAINING_FILE, done.to_dict())
    return done


def _adapted(
    peft: Any, model: Any, recipe: Recipe, adapter: str | Path | None
) -> tuple[Any, Recipe]:
    """Return a model with an adapter to train, and the recipe with that adapter's own sizes."""
    if adapter is not None:
        model = _with_adapter(peft, model, adapter)
        config = model.peft_config["default"]
        return model, replace(recipe, rank=config.r, alpha=config.lora_alpha)
    config = peft.LoraConfig(
        r=recipe.rank, lora_alpha=recipe.alpha, target_modules=ADAPTED, task_type="CAUSAL_LM"
    )
    try:
        return peft.get_peft_model(model, config), recipe
    except ValueError as error:
        raise UsageError(f"this base can't take an adapter ({_first(error)})") from None


def _save(model: Any, tokenizer: Any, folder: Path, *, merge: bool, whole: bool) -> None:
    if merge:
        model.save_pretrained(folder / ADAPTER_FOLDER)
        model = model.merge_and_unload()
    if whole or merge:
        model.to(require("torch", EXTRA).bfloat16)
        tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)


def load_model(base: str | Path, *, whole: bool) -> tuple[Any, Any]:
    """Return a model and its tokenizer.

    Parameters
    ----------
    base : str or Path
        A directory, or a name that transformers knows.
    whole : bool
        Whether all weights are to be trained: these need float32; frozen ones stay in bfloat16,
        where that is fast.

    Raises
    ------
    UsageError
        If there is no such model.
    """
    torch, transformers = require("torch", EXTRA), require("transformers", EXTRA)
    transformers.utils.logging.disable_progress_bar()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(base))
        model = transformers.AutoModelForCausalLM.from_pretrained(
            str(base), dtype=torch.float32 if whole else getattr(torch, training_precision())
        )
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{base}: not a model that transformers can load ({_first(error)})"
        ) from None
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer


def new_folder(folder: str | Path) -> Path:
    """Return a folder that is new or empty.

    Raises
    ------
    UsageError
        If it holds something, or is a file.
    """
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(
            f"{folder}: exists already; a trained draft needs a new folder (servers remember"
            " an adapter by its path)"
        )
    return path


def _with_adapter(peft: Any, model: Any, adapter: str | Path) -> Any:
    if not (Path(adapter) / "adapter_config.json").is_file():
        raise UsageError(f"{adapter}: no adapter_config.json there, so it is no adapter")
    try:
        return peft.PeftModel.from_pretrained(model, str(adapter), is_trainable=True)
    except (RuntimeError, ValueError, OSError) as error:
        raise UsageError(f"{adapter}: does not fit the base model ({_first(error)})") from None


def _first(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _versions() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
