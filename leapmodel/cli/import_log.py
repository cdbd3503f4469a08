"""``leapmodel import``: a log becomes a trace."""

from __future__ import annotations

import os
from typing import Any

import click
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

from leapmodel.cli.options import note, refuse_own_input, report_dropped
from leapmodel.cli.progress import progress
from leapmodel.errors import UsageError
from leapmodel.files import check_table_path
from leapmodel.importers import (
    AUTO,
    FORMATS,
    import_log,
    import_predictions,
    importer,
)
from leapmodel.predictions import write_predictions
from leapmodel.trace import write_trace

_WIDTH = max(map(len, FORMATS))
_FORMATS_HELP = "\n".join(f"{name:<{_WIDTH}}  {f.description}" for name, f in FORMATS.items())


@click.command(
    "import",
    short_help="Turn the log of an agent into a trace.",
    epilog=f"\b\nFormats:\n{AUTO:<{_WIDTH}}  whichever recognises the files\n{_FORMATS_HELP}",
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
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="For tables: which column holds a field, such as gen_s=latency_ms; may be repeated.",
)
@click.option("--time-unit", metavar="UNIT", help="For tables: s, ms, us or ns.")
@click.option(
    "--export-contexts",
    "contexts",
    metavar="FILE",
    help="Also write the messages before each step (JSON Lines), to ask a draft the same.",
)
@click.option(
    "--predictions-out",
    metavar="FILE",
    help="Also write what a draft proposed in the log, where the format has that.",
)
def command(
    log_format: str,
    paths: tuple[str, ...],
    output: str,
    lenient: bool,
    drop_tools: tuple[str, ...],
    columns: tuple[str, ...],
    time_unit: str | None,
    contexts: str | None,
    predictions_out: str | None,
) -> None:
    """Read the log FILEs (or folders of them) of an agent and write a trace."""
    if log_format != AUTO:
        importer(log_format)  # refuses an unknown name before anything is read
    for path in (output, predictions_out):
        if path is not None:
            check_table_path(path)
    for path in (output, contexts, predictions_out):
        refuse_own_input(path, paths)
    named = [name for name in (output, contexts, predictions_out) if name is not None]
    if len(set(map(os.path.realpath, named))) < len(named):
        raise UsageError(f"each output needs a file of its own, found {', '.join(named)}")
    options: dict[str, Any] = {
        "drop_tools": drop_tools,
        "columns": columns,
        "time_unit": time_unit,
    }
    said = TextColumn("{task.fields[said]}")
    with progress(TextColumn("reading"), BarColumn(), said, TimeElapsedColumn()) as bar:
        task = bar.add_task("reading", total=None, said="")

        def show(task_runs: int, files_done: int, files_total: int) -> None:
            runs = f"{task_runs} runs of tasks"
            bar.update(task, completed=files_done, total=files_total, said=runs)

        trace = import_log(
            log_format, list(paths), lenient=lenient, progress=show, contexts=contexts, **options
        )
        predictions = None
        if predictions_out is not None:
            predictions = import_predictions(log_format, list(paths), lenient=lenient, **options)
    report_dropped(trace)
    write_trace(trace, output)
    if predictions is not None and predictions_out is not None:
        write_predictions(predictions, predictions_out)
    for warning in trace.metadata.get("warnings", ()):
        note(warning)
    runs = f" in {trace.n_runs:,} runs" if trace.n_runs != trace.n_tasks else ""
    told = f" ({trace.metadata['format']})" if log_format == AUTO else ""
    click.echo(
        f"{output}{told}: {trace.n_tasks:,} tasks{runs}, {trace.n_segments:,} segments,"
        f" {trace.n_steps:,} steps"
    )
    if predictions is not None:
        drafts = ", ".join(predictions.draft_names)
        click.echo(f"{predictions_out}: {len(predictions.frame):,} predictions of {drafts}")
    if contexts is not None:
        click.echo(f"{contexts}: the contexts of {trace.n_steps:,} steps")
