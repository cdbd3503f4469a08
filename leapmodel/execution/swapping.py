"""How a version of the draft gets into the running server: as an adapter, or merged in place."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from leapmodel.execution.endpoint import Endpoint

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
    name = served if folder is None else folder.name
    if folder is not None and name not in await draft.models():
        await draft.load_adapter(name, path)
    draft.model = name
