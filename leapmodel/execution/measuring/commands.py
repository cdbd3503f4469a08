"""Run this program's own commands one after another, and keep account of them.

A measurement is made of the same commands a person would type, so its record says how to make it
again: each command with how long it took.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from leapmodel.errors import EngineError


class Commands:
    """Runs ``leapmodel`` commands, and logs them in a file.

    Parameters
    ----------
    log : Path
        JSON Lines: what was run, how long it took, how it ended.
    say : callable
        Shown each command before it runs.
    cores : set of int, optional
        The processor cores the commands may use; all by default.
    aliases : mapping of str to str, optional
        What the log writes for a place on this machine, such as ``$LEAPMODEL_CACHE``.
    """

    def __init__(
        self,
        log: Path,
        say: Callable[[str], None],
        cores: set[int] | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self._log = log
        self._say = say
        self._cores = cores
        self._aliases = dict(aliases or {})

    def run(self, *arguments: str, unless: Path | None = None, own_cores: bool = True) -> None:
        """Run one command; its output goes to this program's.

        Parameters
        ----------
        *arguments : str
            As after ``leapmodel`` in a shell.
        unless : Path, optional
            Do nothing if this exists: the command ran in an earlier attempt.
        own_cores : bool, default True
            Whether it keeps to the cores set for all; training wants every core.

        Raises
        ------
        EngineError
            If it fails.
        """
        if unless is not None and unless.exists():
            return
        line = shlex.join(("leapmodel", *arguments))
        self._say(f"$ {line}")
        began_s = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "leapmodel", *arguments],
            preexec_fn=self._keep_to_cores if own_cores and self._cores else None,
        )
        seconds = round(time.monotonic() - began_s, 1)
        for place, alias in self._aliases.items():
            line = line.replace(place, alias)
        with open(self._log, "a", encoding="utf-8") as log:
            said = {"command": line, "seconds": seconds, "exit_status": done.returncode}
            log.write(json.dumps(said) + "\n")
        if done.returncode:
            raise EngineError(f"{line}: ended with exit status {done.returncode}")

    def _keep_to_cores(self) -> None:
        assert self._cores is not None
        os.sched_setaffinity(0, self._cores)
