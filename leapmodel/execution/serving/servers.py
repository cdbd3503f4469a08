"""Start servers for a target and a draft, wait until both answer, and leave neither behind.

Both are stopped when the work ends, fails or is interrupted, and when either of them dies.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from leapmodel.errors import EngineError, LeapModelError, UsageError
from leapmodel.execution.serving.config import ServerConfig, ServingConfig
from leapmodel.execution.serving.process import Server, ServerDied

Progress = Callable[[str], None]
"""Is told once a second how far the servers are."""


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
            " GPU, python -m leapmodel.execution.serving.cpu_engine on one without"
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
