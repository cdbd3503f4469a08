"""``leapmodel import``: a log becomes a trace."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from leapmodel.cli.options import report_dropped
from leapmodel.files import check_table_path
from leapmodel.importers import FORMATS, import_log, importer
from leapmodel.trace import write_trace

_FORMATS_HELP = "\n".join(f"{name}: {f.description}" for name, f in FORMATS.items())


@click.command(
    "import",
    short_help="Turn the log of an agent into a trace.",
    epilog=f"\b\nFormats:\n{_FORMATS_HELP}",
)
@click.argument("log_format", metavar="FORMAT")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o", "--output", required=True, metavar="TRACE", help="Where to write (.parquet, .jsonl)."
)
@click.option("--lenient", is_flag=True, help="Leave out bad tasks and report each.")
@click.option(
    "--drop-tool",
    "drop_tools",
    multiple=True,
    metavar="NAME",
    help="Leave out calls of this tool (harness noise such as ToolSearch); may be repeated.",
)
def command(
    log_format: str, paths: tuple[str, ...], output: str, lenient: bool, drop_tools: tuple[str, ...]
) -> None:
    """Read the log FILEs (or folders of them) of an agent and write a trace."""
    importer(log_format)  # refuses an unknown name before anything is read
    check_table_path(output)
    screen = Console(stderr=True)
    columns = (
        TextColumn("reading"),
        BarColumn(),
        TextColumn("{task.fields[what]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=None, what="")

        def show(task_runs: int, files_done: int, files_total: int) -> None:
            bar.update(
                task, completed=files_done, total=files_total, what=f"{task_runs} runs of tasks"
            )

        trace = import_log(
            log_format, list(paths), lenient=lenient, progress=show, drop_tools=drop_tools
        )
    report_dropped(trace)
    write_trace(trace, output)
    for warning in trace.metadata.get("warnings", ()):
        click.echo(f"leapmodel: note: {warning}", err=True)
    runs = f" in {trace.n_runs:,} runs" if trace.n_runs != trace.n_tasks else ""
    click.echo(
        f"{output}: {trace.n_tasks:,} tasks{runs}, {trace.n_segments:,} segments,"
        f" {trace.n_steps:,} steps"
    )
