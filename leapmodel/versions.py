"""The versions of a draft that learns while it serves, as a file lists them (Sec. 4.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from leapmodel.atomic import write_json
from leapmodel.errors import DataError, shown
from leapmodel.jsonlines import read_json

VERSIONS_NAME = "versions.json"
VERSIONS_ENDING = f".{VERSIONS_NAME}"
"""Of a file among others, behind the method that made the versions."""


@dataclass(frozen=True)
class Version:
    """One state of the draft.

    Attributes
    ----------
    number : int
        0 is the untrained base; version b serves batch b.
    adapter : str or None
        Its folder's name; None for the base.
    pairs : int
        What its adapter was trained on.
    update_s : float
        From the end of the batch before it to the loaded adapter.
    agreement, agreement_se : float or None
        Share of the held-out contexts on which it names the target's action, and the standard
        error over tasks.
    """

    number: int
    adapter: str | None
    pairs: int
    update_s: float
    agreement: float | None
    agreement_se: float | None


def write_versions(path: str | Path, versions: Sequence[Version]) -> None:
    """Write versions as a JSON array, all or nothing."""
    write_json(path, [asdict(version) for version in versions])


def read_versions(path: str | Path) -> list[Version]:
    """Read what :func:`write_versions` wrote.

    Raises
    ------
    DataError
        If it is missing or something else, naming the version and its field.
    """
    said = read_json(path, kind="a list of versions", shape="a JSON array")
    if not isinstance(said, list):
        raise DataError(path, expected="a JSON array of versions", found=shown(said))
    return [_version(path, number, one) for number, one in enumerate(said)]


def _version(path: str | Path, number: int, said: object) -> Version:
    """Return a version that a file lists, or say in which of its fields it is none."""
    if not isinstance(said, dict):
        raise DataError(path, row=number + 1, expected="a JSON object", found=shown(said))
    numbers = "a number or null"
    wanted: dict[str, tuple[str, bool]] = {
        "number": (str(number), type(said.get("number")) is int and said["number"] == number),
        "adapter": ("a folder's name or null", _is_folder_name(said.get("adapter"))),
        "pairs": ("a whole number", type(said.get("pairs")) is int),
        "update_s": ("a number", _is_number(said.get("update_s"))),
        "agreement": (numbers, said.get("agreement") is None or _is_number(said["agreement"])),
        "agreement_se": (
            numbers,
            said.get("agreement_se") is None or _is_number(said["agreement_se"]),
        ),
    }
    for name, (expected, fits) in wanted.items():
        if not fits:
            raise DataError(
                path, row=number + 1, column=name, expected=expected, found=shown(said.get(name))
            )
    return Version(*(said.get(name) for name in wanted))  # type: ignore[arg-type]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_folder_name(value: object) -> bool:
    return value is None or (isinstance(value, str) and value == Path(value).name != "")
