"""Stands for vLLM's process where only starting and stopping is tested: health, and set ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def wait_for_the_other(patience_s: float = 10) -> None:
    """Wait until the other server has started its child too: a test looks whether that is gone."""
    logs = Path(os.readlink("/proc/self/fd/1")).parent
    deadline = time.monotonic() + patience_s
    while sum("child:" in log.read_text() for log in logs.glob("*.log")) < 2:
        if time.monotonic() > deadline:
            return
        time.sleep(0.02)


def main() -> None:
    doing = os.environ.get("STUB", "")
    print("arguments:", *sys.argv[1:])
    print("key:", os.environ.get("VLLM_API_KEY"))
    child = subprocess.Popen(["sleep", "1000"])  # the engine's own process
    print("child:", child.pid, flush=True)
    if doing == "die":
        wait_for_the_other()
        print("(EngineCore) ValueError: no memory for the KV cache")
        print("RuntimeError: Engine core initialization failed. See root cause above.")
        sys.exit(3)
    if doing == "never ready":
        time.sleep(1000)
    if doing == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    HTTPServer(("127.0.0.1", port), Health).serve_forever()


if __name__ == "__main__":
    main()
