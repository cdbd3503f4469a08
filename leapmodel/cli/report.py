"""``leapmodel report``: one page to hand on."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from leapmodel.cli.ask import ask_choice, choice_options
from leapmodel.cli.options import trace_argument
from leapmodel.errors import UsageError
from leapmodel.report import write_report


@click.command("report", short_help="Write one page to hand on, verdict first.")
@trace_argument
@choice_options
@click.option("-o", "--output", required=True, metavar="PAGE", help="Where to write (.html).")
def command(trace: str, output: str, **asked: object) -> None:
    """Write what ``choose`` finds on TRACE, with pictures, as one self-contained page.

    Without any --draft, those that need no GPU are learned from the trace itself.
    """
    if Path(output).suffix.lower() not in {".html", ".htm"}:
        raise UsageError(f"{output}: expected a name ending in .html")
    workload, answer = ask_choice(trace, **asked)  # type: ignore[arg-type]
    words = shlex.join(["leapmodel", *sys.argv[1:]])
    write_report(workload, answer, output, name=Path(trace).name, command=words)
    click.echo(f"{output}: {answer.verdict.title}, {answer.verdict.speedup:.2f}x")
