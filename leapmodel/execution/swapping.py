"""How a version of the draft gets into the running server: as an adapter, or merged in place."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

from leapmodel.execution.talking.endpoint import Endpoint

Swap = Literal["adapter", "merged"]
"""``adapter``: loaded beside the base, under a name of its own. ``merged``: the base's weights are
replaced in place; nothing is added to a call, where an engine is slow with adapters."""


async def serve_version(
    draft: Endpoint, swap: Swap, served: str, base: str, folder: Path | None
) -> None:
    """Make a draft's server answer as a version.

    Parameters
    ----------
    draft : Endpoint
        Its ``model`` is the name that is asked from now on.
    swap : {"adapter", "merged"}
    served : str
        The name the server has for the base.
    base : str
        The base's weights, as the server finds them.
    folder : Path or None
        The version's adapter or merged weights; None for the base.

    Raises
    ------
    EngineError
        If the server refuses.
    """
    path = base if folder is None else str(folder.resolve())
    if swap == "merged":
        # Always: whoever asked last may have left other weights there.
        await draft.load_weights(path)
        return
    name = served if folder is None else _adapter_name(folder)
    if folder is not None and name not in await draft.models():
        await draft.load_adapter(name, path)
    draft.model = name


async def retire_version(draft: Endpoint, swap: Swap, folder: Path | None) -> None:
    """Unload a version that serves no longer; merged weights were replaced by the next ones.

    Raises
    ------
    EngineError
        If the server refuses.
    """
    if swap == "adapter" and folder is not None:
        await draft.unload_adapter(_adapter_name(folder))


def _adapter_name(folder: Path) -> str:
    """Return a name that no other adapter has: a server may still hold those of another stream."""
    digest = hashlib.sha256()
    for file in sorted(one for one in folder.rglob("*") if one.is_file()):
        digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return f"{folder.name}-{digest.hexdigest()[:8]}"
