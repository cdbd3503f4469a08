"""``leapmodel serve``: a target's and a draft's vLLM server, until Ctrl-C."""

from __future__ import annotations

import shlex
import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from leapmodel.errors import LeapModelWarning, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leapmodel.execution.serving.config import ServingConfig
    from leapmodel.execution.serving.servers import Progress


@click.command("serve", short_help="Start a target's and a draft's vLLM server.")
@click.option("--config", "config_path", type=click.Path(), help="Settings, a TOML file.")
@click.option("--preset", "preset_name", help="Settings by name: openagi, tau2, …, cpu.")
@click.option("--target-model", help="A hub's name or a folder.")
@click.option("--draft-model", help="A hub's name or a folder.")
@click.option("--adapter", "adapters", multiple=True, metavar="NAME=FOLDER", help="For the draft.")
@click.option("--no-draft", is_flag=True, help="Serve the target alone.")
@click.option("--target-port", type=int, help="A free one by default.")
@click.option("--draft-port", type=int, help="A free one by default.")
@click.option("--host", help="Where to listen; only this machine (127.0.0.1) by default.")
@click.option("--python", help="The interpreter that has vLLM; this one by default.")
@click.option("--logs", help="The folder of the logs (serve-logs).")
@click.option("--dry-run", is_flag=True, help="Print the command lines and start nothing.")
def command(
    config_path: str | None,
    preset_name: str | None,
    adapters: tuple[str, ...],
    no_draft: bool,
    dry_run: bool,
    **changes: Any,
) -> None:
    """Start vLLM for a target and a draft, print their addresses, and stop both on Ctrl-C.

    Settings come from a file or a preset (the paper's Table 17, or cpu), and the options change
    them. If either server dies, the other is stopped and the end of its log is shown. An API key in
    LEAPMODEL_API_KEY is the one that clients must give.
    """
    config = _config(config_path, preset_name, adapters, no_draft, changes)
    config.check()
    if config.host not in ("127.0.0.1", "localhost", "::1"):
        _warn_of_strangers(config.host)
    if dry_run:
        _print_commands(config)
        return
    from leapmodel.execution.serving.process import ServerDied
    from leapmodel.execution.serving.servers import serving

    try:
        with _progress() as progress, serving(config, progress) as servers:
            for role, server in (("target", servers.target), ("draft", servers.draft)):
                if server is not None:
                    names = [server.config.served_name, *server.config.adapters]
                    click.echo(f"{role:7} {server.url}  {', '.join(names)}  (log: {server.log})")
            click.echo("serving; Ctrl-C stops it")
            sys.stdout.flush()
            servers.wait()
    except ServerDied as died:
        for line in died.tail:
            click.echo(f"  {died.role} | {line}", err=True)
        raise
    except KeyboardInterrupt:
        click.echo("stopped", err=True)


def _config(
    path: str | None,
    preset_name: str | None,
    adapters: tuple[str, ...],
    no_draft: bool,
    changes: dict[str, Any],
) -> ServingConfig:
    from dataclasses import replace

    from leapmodel.execution.serving.presets import PRESETS, preset
    from leapmodel.execution.serving.settings_file import read_serving_config

    if (path is None) == (preset_name is None):
        raise UsageError(f"expected --config FILE or --preset NAME (one of {', '.join(PRESETS)})")
    config = read_serving_config(path) if path is not None else preset(str(preset_name))
    both = {"python": changes["python"]} if changes["python"] else {}
    target, draft = dict(both), dict(both)
    for role, settings in (("target", target), ("draft", draft)):
        for name in ("model", "port"):
            if changes[f"{role}_{name}"] is not None:
                settings[name] = changes[f"{role}_{name}"]
    if adapters:
        draft["adapters"] = {**(config.draft.adapters if config.draft else {}), **_named(adapters)}
    if no_draft:
        if changes["draft_model"] or changes["draft_port"] or adapters:
            raise UsageError("--no-draft leaves nothing for the draft's other options")
        config, draft = replace(config, draft=None), {}
    elif config.draft is None and not changes["draft_model"]:
        if changes["draft_port"] or adapters:
            raise UsageError(
                "there is no draft for --draft-port or --adapter: name one with --draft-model"
            )
        draft = {}
    config = config.replacing(target=target, draft=draft)
    top = {name: changes[name] for name in ("host", "logs") if changes[name]}
    return replace(config, **top)


def _named(adapters: tuple[str, ...]) -> dict[str, str]:
    named = {}
    for text in adapters:
        name, equals, folder = text.partition("=")
        if not (name and equals and folder):
            raise UsageError(f"--adapter: expected NAME=FOLDER, found {text!r}")
        named[name] = folder
    return named


def _warn_of_strangers(host: str) -> None:
    import os

    from leapmodel.execution.talking.endpoint import API_KEY_VARIABLE

    key = "" if os.environ.get(API_KEY_VARIABLE) else f" and no {API_KEY_VARIABLE} is set"
    warnings.warn(
        f"--host {host}: other machines can use these servers, their development calls too{key}",
        LeapModelWarning,
        stacklevel=2,
    )


def _print_commands(config: ServingConfig) -> None:
    from leapmodel.execution.serving.command import server_command, server_environment

    taken = {server.port for server in (config.target, config.draft) if server is not None}
    for role, server in (("target", config.target), ("draft", config.draft)):
        if server is None:
            continue
        ours = server_environment(server, host=config.host, base={})
        port = server.port or next(port for port in (8000, 8001) if port not in taken)
        taken.add(port)
        words = [f"{name}={shlex.quote(value)}" for name, value in ours.items()]
        words.append(shlex.join(server_command(server, host=config.host, port=port)))
        click.echo(f"# {role}\n{' '.join(words)}")


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show where the servers are: one line that changes on a terminal, only news elsewhere."""
    if not sys.stderr.isatty():
        yield lambda text: click.echo(text, err=True) if "starting" not in text else None
        return
    from rich.console import Console

    console = Console(stderr=True)
    status = console.status("starting")

    def show(text: str) -> None:
        if "starting" in text:
            status.start()
            status.update(text)
        else:
            status.stop()
            console.print(text)

    try:
        yield show
    finally:
        status.stop()
