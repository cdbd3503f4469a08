"""``leapmodel predictions-template``: the keys to fill in with a draft's outputs."""

from __future__ import annotations

from pathlib import Path

import click

from leapmodel.cli.options import refuse_own_input, report_dropped
from leapmodel.errors import UsageError
from leapmodel.files import check_table_path, write_table
from leapmodel.predictions import predictions_template
from leapmodel.trace import read_trace


@click.command("predictions-template", short_help="Write the keys for a draft's answers.")
@click.argument("trace", metavar="TRACE", type=click.Path())
@click.option("-o", "--output", required=True, help="Where to write (.parquet, .jsonl).")
@click.option("--force", is_flag=True, help="Write over a file that is already there.")
@click.option("--lenient", is_flag=True, help="Leave out tasks with bad rows and report each.")
def command(trace: str, output: str, force: bool, lenient: bool) -> None:
    """Write one row per step of TRACE, to fill in with a draft's action and latency.

    Ask the draft for its action on each step's context (the task and the target's actions and
    observations before it), put the canonical action (null if it did not parse) and the seconds of
    the call in, and give the file to predict --predictions.
    """
    check_table_path(output)
    refuse_own_input(output, [trace])
    if Path(output).exists() and not force:
        raise UsageError(f"{output}: is there already, maybe filled in; --force writes over it")
    workload = read_trace(trace, lenient=lenient)
    report_dropped(workload)
    frame = predictions_template(workload)
    write_table(frame, output, kind="predictions", metadata={"template_for": workload.metadata})
    click.echo(f"{output}: {len(frame):,} rows to fill in")
