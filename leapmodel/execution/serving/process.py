"""One vLLM server, as a process group that ends when told to, or when this process does.

A watchdog ends it also when this process is killed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

from leapmodel.errors import EngineError
from leapmodel.execution.serving.command import server_command, server_environment
from leapmodel.execution.serving.config import ServerConfig

_TERMINATE_S = 10.0
_TELLING = re.compile(r"\b\w*(?:Error|Exception)\b: .+|\berror: .+")
_ANYWHERE = ("0.0.0.0", "::")


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
