"""Write a file or a folder all or nothing, and know beforehand whether it can be written."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leapmodel.errors import UsageError


def check_place(path: str | Path) -> None:
    """Refuse a place where no file can be written, before any work is done for it.

    Raises
    ------
    UsageError
        If its folder does not exist or can't be written, or it is a folder itself.
    """
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise UsageError(f"{path}: its folder does not exist")
    if os.path.isdir(path):  # unlike Path.is_dir it bears a name that is too long
        raise UsageError(f"{path}: can't write it (Is a directory)")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{path}: its folder can't be written")


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary file beside ``path`` that takes its name only if the block succeeds.

    Raises
    ------
    UsageError
        If the file can't be written there.
    """
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent or Path()
        )
        os.close(handle)
    except OSError as error:
        raise UsageError(f"{path}: can't write there ({error.strerror})") from None
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # mkstemp's 0600 would surprise whoever shares the file
        temporary.replace(target)
    except OSError as error:
        raise UsageError(f"{path}: can't write it ({error.strerror or error})") from None
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Give a temporary folder beside ``path`` that takes its name only if the block succeeds.

    If another process has filled one of that name meanwhile, that one stays.

    Raises
    ------
    UsageError
        If no folder can be made there.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise UsageError(f"{path}: can't make this folder ({error.strerror})") from None
    try:
        yield new
        new.chmod(0o755)  # mkdtemp's 0700 would surprise whoever shares the folder
        if not (target.is_dir() and any(target.iterdir())):
            new.rename(target)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def write_json(path: str | Path, value: object) -> None:
    """Write a value as JSON.

    Raises
    ------
    UsageError
        If the file can't be written there.
    """
    with atomic_path(path) as place:
        place.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
