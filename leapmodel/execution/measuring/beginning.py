"""What both measurements begin with: places, weights, servers, and who runs the commands."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leapmodel.atomic import write_json
from leapmodel.errors import DataError, LeapModelError, UsageError, shown
from leapmodel.execution.about import about_machine, about_versions
from leapmodel.execution.measuring.commands import Commands
from leapmodel.execution.records.recording import TRACE_NAME, made_folder
from leapmodel.execution.serving.config import ServingConfig
from leapmodel.execution.serving.presets import preset
from leapmodel.execution.training.weights import (
    Weights,
    cache_folder,
    cpu_weights,
    identity_of,
    suited_target,
)
from leapmodel.rounds import read_rounds, write_rounds
from leapmodel.trace import read_trace, write_trace

ABOUT_NAME = "about.json"
_OWN_VERSIONS = {"leapmodel", "commit"}
"""A measurement may go on with a newer one of this project, not with another engine."""
TARGET_TOKENS = 128
"""The CPU target's thoughts are short; one that goes on is cut."""
CONTEXT = 1024
"""What the tiny models were made for; a prompt and an answer take a third of it."""


@dataclass(frozen=True)
class Places:
    """Where things go: what is kept, and what is too heavy for that."""

    kept: Path
    work: Path

    def trained(self, base: str) -> Path:
        """Return the folder of a base's trained weights."""
        return self.work / f"trained-{base}"


def begun(
    places: Places, bases: Sequence[str], quick: bool, cores: set[int] | None
) -> tuple[Weights, Commands]:
    """Make the weights that are missing, write what is measured on what, and say who runs commands.

    Parameters
    ----------
    places : Places
    bases : sequence of str
        Of the drafts.
    quick : bool
        With barely trained weights.
    cores : set of int or None
        What the commands keep to; None for all.

    Raises
    ------
    UsageError
        If what is kept there was measured on another machine, or with other weights or another
        engine; or there is no C++ compiler.
    """
    _require_compiler(not quick)
    for folder in (places.kept, places.work):
        made_folder(folder)
    weights = cpu_weights([suited_target(), *dict.fromkeys(bases)], quick=quick, say=say)
    hashes = weights.to_dict()
    used = {name: hashes[name] for name in (weights.target_name, *dict.fromkeys(bases))}
    about = {"machine": about_machine(), "versions": about_versions(), "weights": used}
    _state(places, about)
    aliases = {str(cache_folder()): "$LEAPMODEL_CACHE", str(places.work): "$WORK"}
    return weights, Commands(places.kept / "commands.jsonl", say, cores, aliases)


def measured_with(places: Places, name: str, folder: Path) -> None:
    """State weights that were made in between, such as a trained draft's.

    Parameters
    ----------
    places : Places
    name : str
        What to call them.
    folder : Path
        The model's.

    Raises
    ------
    UsageError
        If what is kept there was measured with others of that name.
    """
    _state(places, {"weights": {name: identity_of(folder)}})


def _state(places: Places, about: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what is measured on what, beside what was known, unless the two contradict.

    In both places: what is begun in one would otherwise be finished in the other.
    """
    files = [folder / ABOUT_NAME for folder in (places.kept, places.work)]
    before = [_refuse_others(file, about) for file in files]
    for file, theirs in zip(files, before, strict=True):
        write_json(file, {**theirs, **about, "weights": theirs["weights"] | about["weights"]})


def _refuse_others(file: Path, about: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Refuse to add to what another machine measured, or the same with other weights or engine.

    Returns what it says.
    """
    if not file.exists():
        return {"weights": {}}
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
        theirs = {name: dict(before[name]) for name in ("machine", "versions", "weights")}
    except (ValueError, RecursionError, KeyError, TypeError):
        raise DataError(
            file, expected="what a measurement was made on", found="something else"
        ) from None
    for what, ours in about.items():
        for name in sorted(theirs[what].keys() & ours.keys() - _OWN_VERSIONS):
            if theirs[what][name] != ours[name]:
                raise UsageError(
                    f"{file}: measured with {name} {shown(theirs[what][name])}, here it is"
                    f" {shown(ours[name])}: give folders of its own (-o, --work)"
                )
    return theirs


def client_cores() -> set[int]:
    """Return the cores for whoever asks: the target has the first one for itself."""
    cores = os.sched_getaffinity(0)
    return cores - {min(cores)} or cores


def servers_for(
    places: Places, target: Path, draft: Path | None = None, *, compiled: bool
) -> ServingConfig:
    """Return the settings of a target's server, and of a draft's that loads no adapters.

    Compiled models start a minute or two later, the first time, and need a C++ compiler. Without it
    half the time of so small a model is Python's, and the more so the more requests there are.

    Raises
    ------
    UsageError
        If there is no compiler.
    """
    _require_compiler(compiled)
    config = preset("cpu")
    assert config.draft is not None
    common: dict[str, Any] = {"max_model_len": CONTEXT, "enforce_eager": not compiled}
    served = replace(
        config.target,
        model=str(target),
        max_num_seqs=8,  # as on OpenAGI (Table 17); six requests at k = 5 must not queue
        **common,
    )
    if draft is None:
        return replace(config, target=served, draft=None, logs=str(places.work / "logs"))
    beside = replace(config.draft, model=str(draft), max_lora_rank=None, **common)
    return replace(config, target=served, draft=beside, logs=str(places.work / "logs"))


def _require_compiler(compiled: bool) -> None:
    compiler = os.environ.get("CXX", "g++")
    if compiled and shutil.which(compiler) is None:
        raise UsageError(f"no C++ compiler {compiler}: vLLM compiles the models with it")


def keep(source: Path, kept: Path) -> None:
    """Turn a journal into Parquet, all or nothing."""
    if kept.exists():
        return
    if source.name == TRACE_NAME:
        write_trace(read_trace(source), kept)
    else:
        write_rounds(read_rounds(source), kept)


def limit(tasks: int | None) -> list[str]:
    """Return the option that takes the first tasks alone."""
    return [] if tasks is None else ["--limit", str(tasks)]


def say(text: str) -> None:
    """Tell a person how far it is."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def told_to_the_end() -> Iterator[None]:
    """End this program as a measurement ends that failed or was stopped: with one line."""
    try:
        yield
    except LeapModelError as error:
        say(f"error: {error}")
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except OSError as error:
        say(f"error: {error.filename or 'writing'}: {error.strerror or error}")
        sys.exit(1)
    except KeyboardInterrupt:
        say("stopped; the same command goes on from here")
        sys.exit(130)
