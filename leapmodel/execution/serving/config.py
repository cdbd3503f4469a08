"""What is to be served, and how: the settings of a target's and a draft's server."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from leapmodel.errors import UsageError, shown

LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # what vLLM takes as --max-lora-rank


@dataclass(frozen=True)
class ServerConfig:
    """One vLLM server; None leaves a setting to vLLM.

    Attributes
    ----------
    model : str
        A name at the model hub, or a folder.
    name : str, optional
        What requests call it; by default the hub's name, or the folder's last part.
    port : int, optional
        A free one by default.
    dtype : str
        Of the weights: ``bfloat16``, or ``float32`` where two runs must agree to the token.
    max_model_len : int, optional
        Prompt and completion, in tokens.
    max_num_seqs : int, optional
        Requests decoded at once; the others wait.
    gpu_memory_utilization : float, optional
        Share of the GPU's memory.
    kv_cache_memory_bytes : int, optional
        Memory of the KV cache, where a share can't be given (on a CPU).
    block_size : int, optional
        Tokens in a block of the KV cache.
    enforce_eager : bool
        No compilation: starts sooner, and a small model on a CPU gains nothing from it.
    prefix_caching : bool
        Reuse of the KV cache between requests (App. I).
    structured_outputs : str, optional
        The backend that constrains decoding.
    reasoning_parser : str, optional
        What tells thoughts from answers, such as ``qwen3``.
    tool_call_parser : str, optional
        What tells calls of tools from text, such as ``hermes``; without it requests name no tools.
    quantization : str, optional
        Such as ``fp8``.
    tensor_parallel_size : int
        GPUs it is spread over.
    max_lora_rank : int, optional
        Serve adapters of at most this rank (taken up to the next that vLLM knows); none without.
    max_loras : int
        Adapters in use at once: 2, so that a new version loads while the old one serves.
    adapters : dict of str to str
        Adapters loaded at the start: name and folder.
    cores : str, optional
        The cores that a CPU engine keeps to, such as ``"0"`` or ``"0-3,6"``.
    offline : bool, optional
        Never ask the model hub; by default when the model is a folder.
    chat_template : str, optional
        File of a chat template, for a model that has none.
    seed : int
        Of the engine.
    python : str, optional
        The interpreter that has vLLM; by default the one that runs this.
    environment : dict of str to str
        More environment variables.
    extra_arguments : list of str
        More of vLLM's own options, as they are.
    """

    model: str = ""
    name: str | None = None
    port: int | None = None
    dtype: str = "bfloat16"
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_memory_bytes: int | None = None
    block_size: int | None = None
    enforce_eager: bool = False
    prefix_caching: bool = True
    structured_outputs: str | None = None
    reasoning_parser: str | None = None
    tool_call_parser: str | None = None
    quantization: str | None = None
    tensor_parallel_size: int = 1
    max_lora_rank: int | None = None
    max_loras: int = 2
    adapters: dict[str, str] = field(default_factory=dict)
    cores: str | None = None
    offline: bool | None = None
    chat_template: str | None = None
    seed: int = 0
    python: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    extra_arguments: list[str] = field(default_factory=list)

    @property
    def core_set(self) -> set[int]:
        """The numbers of the cores; empty without any.

        Raises
        ------
        UsageError
            If they are no such list.

        Examples
        --------
        >>> sorted(ServerConfig(cores="0-2,5").core_set)
        [0, 1, 2, 5]
        """
        found: set[int] = set()
        for part in (self.cores or "").split(",") if self.cores else ():
            first, dash, last = part.partition("-")
            if not (first.isdecimal() and (last.isdecimal() or not dash)):
                raise UsageError(f"cores: expected such as 0 or 0-3,6, found {shown(self.cores)}")
            found |= set(range(int(first), int(last or first) + 1))
        return found

    @property
    def served_name(self) -> str:
        """What requests call the model.

        Examples
        --------
        >>> ServerConfig(model="Qwen/Qwen3-0.6B").served_name
        'Qwen/Qwen3-0.6B'
        >>> ServerConfig(model="/models/tiny-draft/").served_name
        'tiny-draft'
        """
        return self.name or (Path(self.model).name if self.is_folder else self.model)

    @property
    def is_folder(self) -> bool:
        """Whether the model is named by a path."""
        return self.model.startswith(("/", ".", "~")) or Path(self.model).is_dir()

    def check(self, role: str) -> None:
        """Refuse what can't be started, before it is tried.

        Raises
        ------
        UsageError
            If there is no model, a path is missing, or a number makes no sense.
        """
        if not self.model:
            raise UsageError(
                f"{role}: expected a model (a hub's name, or a folder such as leapmodel prepare"
                " makes), found none"
            )
        if self.is_folder and not (Path(self.model).expanduser() / "config.json").is_file():
            raise UsageError(f"{role}: {self.model}: expected a model's folder with a config.json")
        share = self.gpu_memory_utilization
        if share is not None and not 0 < share <= 1:
            raise UsageError(f"{role}: gpu_memory_utilization: expected 0 to 1, found {share}")
        if self.port is not None and not 0 < self.port < 65536:
            raise UsageError(f"{role}: port: expected 1 to 65535, found {self.port}")
        for name in (
            "max_model_len", "max_num_seqs", "kv_cache_memory_bytes", "block_size",
            "tensor_parallel_size", "max_lora_rank", "max_loras",
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{role}: {name}: expected at least 1, found {value}")
        if self.max_lora_rank is not None and self.max_lora_rank > LORA_RANKS[-1]:
            raise UsageError(
                f"{role}: max_lora_rank: vLLM serves adapters of rank {LORA_RANKS[-1]} at most,"
                f" found {self.max_lora_rank}"
            )
        if self.chat_template is not None and not Path(self.chat_template).expanduser().is_file():
            raise UsageError(f"{role}: chat_template: no file {self.chat_template}")
        if self.adapters and self.max_lora_rank is None:
            raise UsageError(f"{role}: adapters need max_lora_rank, the highest rank to serve")
        if cores := self.core_set:
            known = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
            if not cores <= known:
                raise UsageError(
                    f"{role}: cores: expected some of {shown(sorted(known))}, found {self.cores}"
                )
        for name, path in self.adapters.items():
            self._check_adapter(role, name, path)

    def _check_adapter(self, role: str, name: str, path: str) -> None:
        settings = Path(path).expanduser() / "adapter_config.json"
        if not settings.is_file():
            raise UsageError(f"{role}: adapter {name}: {path}: has no adapter_config.json")
        try:
            rank = json.loads(settings.read_text()).get("r")
        except (ValueError, AttributeError):
            raise UsageError(f"{role}: adapter {name}: {settings}: expected JSON") from None
        if isinstance(rank, int) and rank > (self.max_lora_rank or 0):
            raise UsageError(
                f"{role}: adapter {name}: has rank {rank}, above max_lora_rank {self.max_lora_rank}"
            )


@dataclass(frozen=True)
class ServingConfig:
    """A target's and a draft's server.

    Attributes
    ----------
    target : ServerConfig
    draft : ServerConfig, optional
        None: no draft is served, or the target is its own.
    host : str
        The address to listen on; only this machine by default.
    logs : str
        The folder of ``target.log`` and ``draft.log``.
    start_timeout_s : float
        How long a server may take to be ready (loading weights from a slow disk takes minutes).
    """

    target: ServerConfig
    draft: ServerConfig | None = None
    host: str = "127.0.0.1"
    logs: str = "serve-logs"
    start_timeout_s: float = 900.0

    def check(self) -> None:
        """Refuse what can't be started; see :meth:`ServerConfig.check`.

        Raises
        ------
        UsageError
            Also if both want the same port, or more memory than a GPU has.
        """
        self.target.check("target")
        if self.draft is None:
            return
        self.draft.check("draft")
        if self.target.port is not None and self.target.port == self.draft.port:
            raise UsageError(f"target and draft can't both have port {self.target.port}")
        shares = [self.target.gpu_memory_utilization, self.draft.gpu_memory_utilization]
        total = math.fsum(share for share in shares if share is not None)
        if total > 1 and self.draft.environment == self.target.environment:
            raise UsageError(
                f"gpu_memory_utilization: target and draft share a GPU and want {total:g} of it"
            )

    @property
    def one_after_the_other(self) -> bool:
        """Whether the draft must wait for the target: two that measure one GPU's free memory."""
        return self.target.gpu_memory_utilization is not None

    def replacing(self, *, target: Mapping[str, Any], draft: Mapping[str, Any]) -> Self:
        """Return a copy with some settings of the servers changed.

        Examples
        --------
        >>> config = ServingConfig(ServerConfig(model="big"), ServerConfig(model="small"))
        >>> config.replacing(target={}, draft={"model": "smaller"}).draft.model
        'smaller'
        """
        new_draft = self.draft
        if draft:
            new_draft = dataclasses.replace(self.draft or ServerConfig(), **draft)
        return dataclasses.replace(
            self, target=dataclasses.replace(self.target, **target), draft=new_draft
        )
