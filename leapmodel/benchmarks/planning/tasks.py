"""The planning benchmark's tasks: made by a seed, or read from a file of descriptions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from leapmodel.benchmarks.interface import Split, Task
from leapmodel.benchmarks.planning.assignment import REPAIRS, Assignment, Wanted
from leapmodel.benchmarks.planning.wording import task_text
from leapmodel.errors import DataError

SIZES: dict[Split, int] = {"train": 250, "test": 63, "teacher": 500}
"""Tasks of each split; 250 and 63 are the paper's (Table 15)."""
_LANGUAGES = ("German", "French", "Spanish", "Chinese", "Italian", "Japanese")
_DEFECT_RATE = 0.5
_FOREIGN = 0.5
_GAPS = 0.4
_SHORTEST = 3
_PICTURES = 0.65
_PICTURE_WANTED: tuple[Wanted, ...] = ("picture", "class", "objects", "caption", "answer")
_TEXT_WANTED: tuple[Wanted, ...] = ("picture", "mood", "summary", "answer", "text")


def made_tasks(seed: int) -> dict[Split, list[tuple[Task, Assignment]]]:
    """Make the tasks of every split, all texts different.

    Parameters
    ----------
    seed : int
        The same seed gives the same tasks on any machine.

    Returns
    -------
    dict
        By split: each task with the assignment behind its words.

    Examples
    --------
    >>> made = made_tasks(42)
    >>> [len(made[split]) for split in ("train", "test")], made["test"][0][0].name
    ([250, 63], 'plan-0251')
    """
    rng = random.Random(seed)
    known: set[str] = set()
    found: dict[Split, list[tuple[Task, Assignment]]] = {}
    number = 0
    for split, size in SIZES.items():
        chosen: list[tuple[Task, Assignment]] = []
        while len(chosen) < size:
            assignment = _assignment(rng)
            text = task_text(assignment, rng)
            if text not in known:
                known.add(text)
                number += 1
                chosen.append((Task(f"plan-{number:04d}", text, assignment.plan), assignment))
        found[split] = chosen
    return found


def read_tasks(path: str | Path, seed: int) -> dict[Split, list[Task]]:
    """Read task descriptions, one a line, and split them as the paper splits its 313.

    Parameters
    ----------
    path : str or Path
        A text file; blank lines are left out, and so is a byte order mark; a repeated line counts
        once.
    seed : int
        Of the split.

    Raises
    ------
    DataError
        If the file is missing, not text, or has fewer than five descriptions.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise DataError(path, expected="a text file", found=str(error.strerror)) from None
    except UnicodeDecodeError:
        raise DataError(path, expected="task descriptions as UTF-8 text", found="bytes") from None
    texts = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if len(texts) < 5:
        raise DataError(path, expected="at least five task descriptions", found=str(len(texts)))
    order = list(range(len(texts)))
    random.Random(seed).shuffle(order)
    n_test = round(len(texts) * SIZES["test"] / (SIZES["test"] + SIZES["train"]))
    tasks = [Task(f"line-{i + 1:04d}", texts[i]) for i in order]
    return {"train": tasks[n_test:], "test": tasks[:n_test], "teacher": []}


def _assignment(rng: random.Random) -> Assignment:
    return next(drawn for drawn in _drawn(rng) if len(drawn.plan) >= _SHORTEST)


def _drawn(rng: random.Random) -> Iterator[Assignment]:
    while True:
        foreign = rng.choice(_LANGUAGES) if rng.random() < _FOREIGN else "English"
        into = rng.choice(_LANGUAGES) if rng.random() < _FOREIGN else "English"
        gaps = rng.random() < _GAPS
        if rng.random() < _PICTURES:
            wanted = rng.choice(_PICTURE_WANTED)
            defects = tuple(defect for defect in REPAIRS if rng.random() < _DEFECT_RATE)
            asks = wanted == "answer"
            yield Assignment(
                "picture", wanted, defects, foreign if asks else "English", into, asks and gaps
            )
        else:
            wanted = rng.choice(_TEXT_WANTED)
            yield Assignment("text", wanted, (), foreign, into, gaps)


assert set(_PICTURE_WANTED) | set(_TEXT_WANTED) == set(get_args(Wanted))
