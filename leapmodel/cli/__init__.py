"""The command line: a log in, a decision out.

Each command reads files, asks one Python call and shows its result, as tables and sentences for a
person or as one JSON object. Exit status 0: answered; 1: the data is not what it should be; 2:
the question is not. An error is one line.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import warnings
from importlib.metadata import version
from typing import Any

import click

from leapmodel.errors import LeapModelError, LeapModelWarning, UsageError

_COMMANDS = {
    "import": "leapmodel.cli.import_log",
    "describe": "leapmodel.cli.describe",
    "predict": "leapmodel.cli.predict",
    "choose": "leapmodel.cli.choose",
    "drafts": "leapmodel.cli.learned",
    "report": "leapmodel.cli.report",
    "compare": "leapmodel.cli.compare",
    "validate": "leapmodel.cli.validate",
    "identity": "leapmodel.cli.identity",
    "audit": "leapmodel.cli.audit",
    "reproduce": "leapmodel.cli.reproduce",
    "predictions-template": "leapmodel.cli.template",
    "serve": "leapmodel.cli.serve",
    "prepare": "leapmodel.cli.prepare",
    "collect": "leapmodel.cli.collect",
    "train": "leapmodel.cli.train",
    "agreement": "leapmodel.cli.agreement",
    "run": "leapmodel.cli.run",
    "probe": "leapmodel.cli.probe",
    "online": "leapmodel.cli.online",
}


class _Commands(click.Group):
    """Loads a command's module when it is asked for, and turns known errors into one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        module = _COMMANDS.get(name)
        if module is None:
            return None
        from importlib import import_module

        command: click.Command = import_module(module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], _COMMANDS, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(_COMMANDS)}"
            raise UsageError(f"no command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs.update(standalone_mode=False, prog_name="leapmodel")
        _make_streams_safe()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", LeapModelWarning)
                warnings.showwarning = _show_warning
                super().main(*args, **kwargs)
                sys.stdout.flush()  # a full disk shows here, and not in an exit handler
        except UsageError as error:
            _fail(str(error), 2)
        except LeapModelError as error:
            _fail(str(error), 1)
        except click.exceptions.Exit as stop:
            sys.exit(stop.exit_code)
        except click.Abort:
            _fail("stopped", 130)
        except click.UsageError as error:
            if error.ctx is not None and error.format_message() == error.ctx.get_help():
                click.echo(error.format_message())  # asked nothing: the help is the answer
                sys.exit(0)
            where = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
            _fail(" ".join(error.format_message().split()) + where, 2)
        except click.ClickException as error:
            _fail(" ".join(error.format_message().split()), 2)
        except BrokenPipeError:  # the reader of a pipe has seen enough
            sys.stderr.close()
            sys.exit(0)
        except MemoryError:
            _fail("not enough memory for this trace", 1)
        except OSError as error:  # a full disk, a path too long, a device that can't be read
            where = f"{error.filename}: " if error.filename else ""
            _fail(f"{where}{(error.strerror or str(error)).lower()}", 1)


@click.group("leapmodel", cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("leapmodel"), prog_name="leapmodel")
def main() -> None:
    """Predict whether action speculation makes an agent faster: with what, and how sure.

    A usual session: import a log, describe the trace, then predict one draft or choose among
    several.
    """


def _make_streams_safe() -> None:
    """Let no letter, closed stream or kill signal end in a traceback or a file left behind."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  (lives as long as we do)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def _fail(message: str, status: int) -> None:
    one_line = " ".join(message.splitlines())
    click.echo(f"leapmodel: error: {one_line}", err=True)
    sys.exit(status)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, LeapModelWarning):
        click.echo(f"leapmodel: warning: {message}", err=True)
