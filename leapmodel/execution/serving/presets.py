"""Settings of target and draft servers, as data: the paper's (Table 17, App. I), and a CPU's."""

from __future__ import annotations

import os
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from leapmodel.errors import UsageError
from leapmodel.execution.precision import cpu_precision
from leapmodel.execution.serving.config import ServerConfig, ServingConfig

_TARGET = ServerConfig(model="Qwen/Qwen3-32B")
_DRAFT = ServerConfig(model="Qwen/Qwen3-0.6B", max_lora_rank=64)

# Columns of Table 17: context in tokens, then (target, draft) of memory fraction and of sequences
# decoded at once. The last: whether decoding is constrained and the target reasons.
_TABLE_17: dict[str, tuple[int, tuple[float, float], tuple[int, int], bool]] = {
    "openagi": (2048, (0.82, 0.10), (8, 2), False),
    "taskbench": (4096, (0.85, 0.10), (4, 2), False),
    "tau2": (16384, (0.88, 0.08), (4, 4), True),
    "bfcl": (24576, (0.88, 0.06), (4, 1), True),
}

# The size study serves three drafts in one configuration that fits the largest; what App. I does
# not give there is as in Table 17.
_STUDY: dict[str, tuple[int, tuple[float, float]]] = {
    "openagi": (2048, (0.82, 0.14)),
    "taskbench": (4096, (0.82, 0.14)),
    "tau2": (12288, (0.83, 0.13)),
    "bfcl": (15360, (0.84, 0.135)),
}


def _on_a_gpu(
    context: int, shares: tuple[float, float], sequences: tuple[int, int], constrained: bool
) -> ServingConfig:
    common: dict[str, Any] = {
        "max_model_len": context,
        "structured_outputs": "xgrammar" if constrained else None,
    }
    return ServingConfig(
        replace(
            _TARGET,
            gpu_memory_utilization=shares[0],
            max_num_seqs=sequences[0],
            # The draft does not reason (Table 15), and behind a reasoning parser its grammar would
            # wait for the end of a thought that never comes.
            reasoning_parser="qwen3" if constrained else None,
            **common,
        ),
        replace(
            _DRAFT,
            gpu_memory_utilization=shares[1],
            max_num_seqs=sequences[1],
            **common,
        ),
    )


def _two_cores() -> tuple[str, str]:
    """Return the first two cores that this process may use; the one there is twice."""
    known = hasattr(os, "sched_getaffinity")
    usable = sorted(os.sched_getaffinity(0)) if known else range(os.cpu_count() or 1)
    return str(usable[0]), str(usable[min(1, len(usable) - 1)])


def _on_a_cpu() -> ServingConfig:
    first, second = _two_cores()
    target = ServerConfig(
        dtype=cpu_precision(),
        max_model_len=2048,
        max_num_seqs=4,
        kv_cache_memory_bytes=512 * 2**20,
        block_size=32,
        enforce_eager=True,
        structured_outputs="xgrammar",
        cores=first,
        offline=True,
    )
    return ServingConfig(target, replace(target, cores=second, max_lora_rank=64))


PRESETS = MappingProxyType(
    {
        **{name: _on_a_gpu(*row) for name, row in _TABLE_17.items()},
        **{
            f"{name}-study": _on_a_gpu(context, shares, *_TABLE_17[name][2:])
            for name, (context, shares) in _STUDY.items()
        },
        "cpu": _on_a_cpu(),
    }
)
"""Settings by name: ``openagi``, ``taskbench``, ``tau2``, ``bfcl`` (Table 17, one 80 GB GPU), each
with ``-study`` for the draft-size study, and ``cpu`` (two cores; the models are yours to name)."""


def preset(name: str) -> ServingConfig:
    """Return settings by name.

    Raises
    ------
    UsageError
        If there are none of that name.

    Examples
    --------
    >>> config = preset("openagi")
    >>> config.target.gpu_memory_utilization, config.draft.gpu_memory_utilization
    (0.82, 0.1)
    """
    if name not in PRESETS:
        near = get_close_matches(name, PRESETS, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(PRESETS)}"
        raise UsageError(f"no preset {name!r}{hint}")
    return PRESETS[name]
