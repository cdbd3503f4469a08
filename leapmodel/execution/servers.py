"""Start vLLM for a target and a draft, wait until both answer, and leave neither behind.

Each server is a process group of its own. Both are stopped when the work ends, fails or is
interrupted, when either of them dies, and (by a watchdog) when this process itself is killed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from leapmodel.errors import EngineError, LeapModelError, UsageError
from leapmodel.execution.endpoint import API_KEY_VARIABLE
from leapmodel.execution.serving import LORA_RANKS, ServerConfig, ServingConfig

# Not the command `vllm`: that looks for a distribution of this name, which builds for CPUs lack.
_MODULE = "vllm.entrypoints.openai.api_server"
_TERMINATE_S = 10.0
_TELLING = re.compile(r"\b\w*(?:Error|Exception)\b: .+|\berror: .+")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANYWHERE = ("0.0.0.0", "::")

Progress = Callable[[str], None]
"""Is told once a second how far the servers are."""


def server_command(config: ServerConfig, *, host: str, port: int) -> list[str]:
    """Return the command line of a vLLM server; no secret is ever part of it.

    Examples
    --------
    >>> from leapmodel.execution.presets import preset
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


class ServerDied(EngineError):
    """A server that this process started has ended by itself.

    Attributes
    ----------
    role : str
        Which one.
    tail : list of str
        The last lines of its log.
    """

    def __init__(self, role: str, message: str, tail: list[str]) -> None:
        super().__init__(message)
        self.role = role
        self.tail = tail


class Server:
    """A vLLM server that runs as a process group of its own.

    Attributes
    ----------
    role : str
        ``"target"`` or ``"draft"``.
    config : ServerConfig
    url : str
        Its address, for clients on this machine.
    log : Path
        What it says.
    pid : int
        Of its first process, and of the group.
    """

    def __init__(self, role: str, config: ServerConfig, host: str, port: int, log: Path) -> None:
        self.role = role
        self.config = config
        self.log = log
        reached = "127.0.0.1" if host in _ANYWHERE else host
        self.url = f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"
        self.began_s = time.monotonic()
        self.ready = False
        with open(log, "wb") as out:
            self._process = subprocess.Popen(
                server_command(config, host=host, port=port),
                env=server_environment(config, host=host),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a group to stop as one, which Ctrl-C does not reach
            )
        self.pid = self._process.pid
        if cores := config.core_set:
            os.sched_setaffinity(self.pid, cores)  # before it has started a thread
        # Reads from us until we end, however we do; then it ends the server.
        self._watchdog = subprocess.Popen(
            [
                "/bin/sh",
                "-c",
                'cat > /dev/null; kill -s TERM -- "-$1"; sleep 10; kill -s KILL -- "-$1"',
                "watchdog",
                str(self.pid),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def status(self) -> int | None:
        """Return its exit status (negative: the signal that ended it), or None while it runs."""
        if self._process.returncode is not None:
            return self._process.returncode
        # Left unreaped, so that its number, which is the group's, is not given to another.
        try:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:  # another thread is just reaping it
            return self._process.returncode
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def answers(self) -> bool:
        """Return whether ``/health`` does."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(self.url + "/health", timeout=2) as response:
                return bool(response.status == 200)
        except (OSError, urllib.error.URLError, ValueError):
            return False

    def tail(self, lines: int = 20) -> list[str]:
        """Return the last lines of its log."""
        try:
            with open(self.log, "rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - 65536))
                return log.read().decode(errors="replace").splitlines()[-lines:]
        except OSError:
            return []

    def died(self) -> ServerDied:
        """Return the error that says how it ended, and the likeliest reason in its log."""
        status = self.status() or 0
        if status < 0:
            how = f"was killed by {signal.Signals(-status).name}"
            how += " (out of memory?)" if -status == signal.SIGKILL else ""
        else:
            how = f"ended with exit status {status}"
        found = [m.group() for line in self.tail(400) if (m := _TELLING.search(line))]
        # vLLM's last word is that its engine failed; the cause stands above it.
        causes = [text for text in found if "root cause" not in text and "EngineDead" not in text]
        reason = f": {(causes or found)[-1][:300]}" if found else ""
        when = "" if self.ready else " before it was ready"
        return ServerDied(
            self.role,
            f"the {self.role}'s server {how}{when}{reason} (see {self.log})",
            self.tail(),
        )

    def interrupt(self) -> None:
        """Ask the whole group to end."""
        self._signal(signal.SIGTERM)

    def stop(self, patience_s: float = _TERMINATE_S) -> None:
        """End the group: asked first, then killed; returns when nothing of it runs."""
        if self._process.returncode is None:
            try:
                self.interrupt()
                deadline = time.monotonic() + patience_s
                while self.status() is None and time.monotonic() < deadline:
                    time.sleep(0.02)
            finally:  # also when interrupted again: at once
                self._signal(signal.SIGKILL)
                self._process.wait()
                self._wait_for_group()
        self._watchdog.kill()
        self._watchdog.wait()
        if self._watchdog.stdin is not None:
            self._watchdog.stdin.close()

    def _wait_for_group(self) -> None:
        """Wait until the first process's children are gone too; a large one takes its time."""
        deadline = time.monotonic() + _TERMINATE_S
        while time.monotonic() < deadline:
            try:
                os.killpg(self.pid, 0)
            except (ProcessLookupError, PermissionError):
                return
            time.sleep(0.02)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


class Servers:
    """The servers of a target and a draft, running. Made by :func:`serving`.

    Attributes
    ----------
    target, draft : Server
        The draft's is None where none is served.
    failure : ServerDied or None
        Set when one of them has died; the other is stopped then.
    """

    def __init__(self, config: ServingConfig) -> None:
        self.config = config
        self.failure: ServerDied | None = None
        self._running: dict[str, Server] = {}
        self._ended = threading.Event()
        self._monitor = threading.Thread(target=self._watch, name="servers", daemon=True)

    @property
    def target(self) -> Server:
        """The target's server."""
        return self._running["target"]

    @property
    def draft(self) -> Server | None:
        """The draft's server, if one is served."""
        return self._running.get("draft")

    @property
    def target_url(self) -> str:
        """Where the target answers."""
        return self.target.url

    @property
    def target_model(self) -> str:
        """What requests call the target."""
        return self.target.config.served_name

    @property
    def draft_url(self) -> str:
        """Where the draft answers; the target's where none is served apart."""
        return (self.draft or self.target).url

    @property
    def draft_model(self) -> str:
        """What requests call the draft's base model; adapters have names of their own."""
        return (self.draft or self.target).config.served_name

    def check(self, patience_s: float = 0.0) -> None:
        """Raise :class:`ServerDied` if a server has ended, now or within ``patience_s``."""
        deadline = time.monotonic() + patience_s
        while True:
            if self.failure is not None:
                raise self.failure
            for server in self._running.values():
                if server.status() is not None:
                    raise server.died()
            if time.monotonic() >= deadline:
                return
            time.sleep(0.02)

    def wait(self) -> None:
        """Wait until a server dies, and raise that."""
        while not self._ended.wait(0.2):
            self.check()
        self.check()

    def start(self, progress: Progress) -> None:
        """Start both and return when both answer."""
        draft = self.config.draft
        ports = _ports(self.config)
        logs = Path(self.config.logs)
        try:
            logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{logs}: can't make this folder ({error.strerror})") from None

        def begin(role: str, config: ServerConfig) -> None:
            log = logs / f"{role}.log"
            try:
                self._running[role] = Server(role, config, self.config.host, ports[role], log)
            except OSError as error:
                raise UsageError(f"{role}: can't start it ({error})") from None

        begin("target", self.config.target)
        if draft is not None and self.config.one_after_the_other:
            self._until_ready(progress)
        if draft is not None:
            begin("draft", draft)
        self._until_ready(progress)
        self._monitor.start()

    def stop(self) -> None:
        """Stop both."""
        self._ended.set()
        for server in self._running.values():
            server.interrupt()  # both at once: each may take its time
        try:
            for server in self._running.values():
                server.stop()
        except KeyboardInterrupt:  # asked twice: at once
            for server in self._running.values():
                server.stop(patience_s=0.0)
            raise
        if self._monitor.is_alive() and self._monitor is not threading.current_thread():
            self._monitor.join()

    def _until_ready(self, progress: Progress) -> None:
        told = 0.0
        while waiting := [server for server in self._running.values() if not server.ready]:
            self.check()
            for server in waiting:
                server.ready = server.answers()
                seconds = time.monotonic() - server.began_s
                if not server.ready and seconds > self.config.start_timeout_s:
                    raise EngineError(
                        f"the {server.role}'s server was not ready after {seconds:.0f} s"
                        f" (see {server.log})"
                    )
                if server.ready:
                    progress(f"{server.role} ready after {seconds:.0f} s")
            if time.monotonic() - told >= 1:
                told = time.monotonic()
                starting = [s for s in waiting if not s.ready]
                if starting:
                    progress(
                        ", ".join(f"{s.role} starting, {told - s.began_s:.0f} s" for s in starting)
                    )
            time.sleep(0.1)

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            for server in self._running.values():
                if server.status() is not None and not self._ended.is_set():
                    self.failure = server.died()
                    for other in self._running.values():
                        if other is not server:
                            other.interrupt()
                    self._ended.set()
                    return


@contextmanager
def serving(config: ServingConfig, progress: Progress | None = None) -> Iterator[Servers]:
    """Serve a target and a draft while the body runs.

    Parameters
    ----------
    config : ServingConfig
        Such as ``preset("openagi")``, or from ``read_serving_config``.
    progress : callable, optional
        Told once a second how far the servers are.

    Yields
    ------
    Servers
        With ``target_url``, ``draft_url``, ``target_model``, ``draft_model``.

    Raises
    ------
    UsageError
        If the settings make no sense, or vLLM is not installed.
    ServerDied
        If one ends before it is ready, or an engine error in the body comes from one that died.
    EngineError
        If one is not ready in time.
    """
    config.check()
    for role, server in (("target", config.target), ("draft", config.draft)):
        if server is not None:
            _require_vllm(role, server.python)
    servers = Servers(config)
    try:
        servers.start(progress or (lambda text: None))
        try:
            yield servers
        except LeapModelError as error:
            # A connection breaks a moment before the process that held it is seen to be gone.
            if isinstance(error, EngineError) and not isinstance(error, ServerDied):
                try:
                    servers.check(patience_s=1.0)
                except ServerDied as died:
                    raise died from error
            raise
    finally:
        servers.stop()


def _require_vllm(role: str, python: str | None) -> None:
    program = python or sys.executable
    if shutil.which(program) is None:
        raise UsageError(f"{role}: no interpreter {program}")
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
    if subprocess.run([program, "-c", look], capture_output=True).returncode:
        raise UsageError(
            f"{role}: {program} has no vLLM: pip install 'leapmodel[serve]' on a machine with a"
            " GPU, python -m leapmodel.execution.cpu_engine on one without"
        )


def _ports(config: ServingConfig) -> dict[str, int]:
    """Return a port for each role, held together for a moment so that they differ."""
    ports, held = {}, []
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        for role, server in (("target", config.target), ("draft", config.draft)):
            if server is None:
                continue
            listener = socket.socket(family)
            held.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((config.host, server.port or 0))
            except OSError as error:
                where = f"{config.host}:{server.port or 'any port'}"
                raise UsageError(f"{role}: can't listen on {where} ({error.strerror})") from None
            ports[role] = int(listener.getsockname()[1])
    finally:
        for listener in held:
            listener.close()
    return ports
