"""JupyterLab for the tests of this folder: on loopback, over copies, with settings of its own."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat

REPOSITORY = Path(__file__).resolve().parents[2]
START_S = 60
STOP_S = 15

SETTINGS = {
    # every cell is on the page, not only those in view: the tests look at all of them
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    # no question about news over the notebook, and nothing asked of the network
    "@jupyterlab/apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
}


def copies(home: Path) -> None:
    """Copy the notebooks and what they read, without outputs: what is seen was then run here."""
    (home / "notebooks").mkdir(parents=True)
    for path in sorted((REPOSITORY / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(notebook, home / "notebooks" / path.name)
    shutil.copytree(REPOSITORY / "traces" / "reconstructed", home / "traces" / "reconstructed")


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment in which a person's own settings and servers play no part."""
    names = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    for name, value in SETTINGS.items():
        path = folder / "settings" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), encoding="utf-8")
    return os.environ | {name: str(folder / value) for name, value in names.items()}


def _address(folder: Path, server: subprocess.Popen[bytes], log: Path) -> str:
    """Wait for the server's note of where it listens, which it writes once it does."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        for note in folder.glob("runtime/jpserver-*.json"):
            try:
                return json.loads(note.read_text(encoding="utf-8"))["url"]
            except json.JSONDecodeError:  # half written
                pass
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-4000:]}")


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve copies of the notebooks from ``folder``; yield the address, with ``{path}`` to fill."""
    copies(folder / "home")
    token, log = secrets.token_hex(16), folder / "jupyterlab.log"
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=0",
        f"--ServerApp.root_dir={folder / 'home'}",
        f"--IdentityProvider.token={token}",
    ]
    with log.open("wb") as out:
        server = subprocess.Popen(
            command, cwd=folder, env=_environment(folder), stdout=out, stderr=subprocess.STDOUT
        )
        try:
            yield f"{_address(folder, server, log)}lab/tree/{{path}}?token={token}&reset"
        finally:
            # asked to end, it ends its kernels too
            server.terminate()
            try:
                server.wait(STOP_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
