"""How a vLLM server is called: its command line and its environment, from its settings."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from leapmodel.execution.serving.config import LORA_RANKS, ServerConfig
from leapmodel.execution.talking.endpoint import API_KEY_VARIABLE

# Not the command `vllm`: that looks for a distribution of this name, which builds for CPUs lack.
_MODULE = "vllm.entrypoints.openai.api_server"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def server_command(config: ServerConfig, *, host: str, port: int) -> list[str]:
    """Return the command line of a vLLM server; no secret is ever part of it.

    Examples
    --------
    >>> from leapmodel.execution.serving.presets import preset
    >>> command = server_command(preset("openagi").draft, host="127.0.0.1", port=8001)
    >>> " ".join(command[3:11])
    '--model Qwen/Qwen3-0.6B --served-model-name Qwen/Qwen3-0.6B --host 127.0.0.1 --port 8001'
    """
    model = str(Path(config.model).expanduser()) if config.is_folder else config.model
    command = [config.python or sys.executable, "-m", _MODULE]
    command += ["--model", model, "--served-model-name", config.served_name]
    command += ["--host", host, "--port", str(port), "--dtype", config.dtype]
    command += ["--seed", str(config.seed)]
    # vLLM's own sampling defaults: what a model's folder recommends would change the requests.
    command += ["--generation-config", "vllm"]
    # Without it a response does not say how much of the prompt was cached.
    command += ["--enable-prompt-tokens-details", "--disable-uvicorn-access-log"]
    command += [
        "--enable-prefix-caching" if config.prefix_caching else "--no-enable-prefix-caching"
    ]
    if config.enforce_eager:
        command += ["--enforce-eager"]
    if config.core_set:
        # As two processes, one spins while the other computes, on a core that somebody else needs.
        command += ["--distributed-executor-backend", "uni"]
    if config.tensor_parallel_size > 1:
        command += ["--tensor-parallel-size", str(config.tensor_parallel_size)]
    for option in (
        "max_model_len", "max_num_seqs", "gpu_memory_utilization", "kv_cache_memory_bytes",
        "block_size", "reasoning_parser", "quantization", "chat_template",
    ):  # fmt: skip
        value = getattr(config, option)
        if value is not None:
            command += [f"--{option.replace('_', '-')}", str(value)]
    if config.tool_call_parser is not None:
        command += ["--enable-auto-tool-choice", "--tool-call-parser", config.tool_call_parser]
    if config.structured_outputs is not None:
        settings: dict[str, object] = {"backend": config.structured_outputs}
        if config.structured_outputs in ("xgrammar", "guidance"):
            # White space between JSON's parts is where a small model loses itself.
            settings["disable_any_whitespace"] = True
        command += ["--structured-outputs-config", json.dumps(settings, separators=(",", ":"))]
    if config.max_lora_rank is not None:
        rank = next(rank for rank in LORA_RANKS if rank >= config.max_lora_rank)
        command += ["--enable-lora", "--max-lora-rank", str(rank)]
        command += ["--max-loras", str(config.max_loras)]
    if config.adapters:
        command += ["--lora-modules"]
        command += [f"{name}={Path(p).expanduser()}" for name, p in config.adapters.items()]
    return command + config.extra_arguments


def server_environment(
    config: ServerConfig, *, host: str = "127.0.0.1", base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of a vLLM server: this one's, and what the settings need.

    An API key in ``LEAPMODEL_API_KEY`` becomes the one that the server asks for.
    """
    environment = dict(os.environ if base is None else base)
    environment |= {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_SERVER_DEV_MODE": "1",  # /reset_prefix_cache
        "VLLM_LOGGING_COLOR": "0",
        "PYTHONUNBUFFERED": "1",
    }
    if host in _LOOPBACK:
        environment["VLLM_HOST_IP"] = "127.0.0.1"  # of its processes among themselves
    if config.max_lora_rank is not None:
        environment["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "True"
    if config.is_folder if config.offline is None else config.offline:
        environment["HF_HUB_OFFLINE"] = "1"
    if cores := config.core_set:
        # The process is confined as a whole (see Server), so its threads need no places of their
        # own. vLLM allows one process for all of it only where this says so.
        environment["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
        environment["OMP_NUM_THREADS"] = str(len(cores))
        environment["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    if key := environment.get(API_KEY_VARIABLE):
        environment["VLLM_API_KEY"] = key
    return environment | config.environment
