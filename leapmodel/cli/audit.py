"""``leapmodel audit``: is every recorded round what the loop may do."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from leapmodel.cli.options import json_option
from leapmodel.cli.screen import clean, console, print_json
from leapmodel.errors import UsageError

MOST_SHOWN = 50


@click.command("audit", short_help="Rebuild every request and check every commit of a run.")
@click.argument("files", metavar="ROUNDS…", nargs=-1, required=True, type=click.Path())
@click.option(
    "--benchmark", metavar="NAME", help="The benchmark, if not the one that the file names."
)
@click.option(
    "--setting",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the benchmark to change, such as where its tasks lie; repeat it.",
)
@json_option
def command(
    files: tuple[str, ...], benchmark: str | None, settings: tuple[str, ...], as_json: bool
) -> None:
    """Run the tasks in ROUNDS again in their environment, and compare.

    Every request is built anew and its hash compared, every raw output parsed again, every round
    derived a second time. The exit status is 1 if anything is not as it must be.
    """
    from leapmodel.benchmarks.recorded import benchmark_of
    from leapmodel.execution.auditing.audit import audit
    from leapmodel.files import read_table

    changed = _parse_settings(settings)
    results = []
    for path in files:
        known = None
        if benchmark is not None or changed:
            metadata = read_table(path, kind="rounds", lenient=True).metadata
            known = benchmark_of(metadata, path, name=benchmark, settings=changed)
        results.append((path, audit(path, known)))
    if as_json:
        print_json(
            {
                "schema_version": 1,
                "passed": all(result.passed for _, result in results),
                "files": [{"file": path, **result.to_dict()} for path, result in results],
            }
        )
    else:
        out = console()
        for path, result in results:
            out.print(f"{path}: {result.summary().splitlines()[0]}", soft_wrap=True)
            for violation in result.violations[:MOST_SHOWN]:
                out.print(f"  {clean(str(violation), 1000)}", soft_wrap=True)
            if (more := len(result.violations) - MOST_SHOWN) > 0:
                out.print(f"  … and {more:,} more (--json lists them)")
    if not all(result.passed for _, result in results):
        sys.stdout.flush()
        sys.exit(1)


def _parse_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """Return settings as JSON values where they are, and as text otherwise.

    Examples
    --------
    >>> _parse_settings(("seed=3", "tasks_file=tasks.txt"))
    {'seed': 3, 'tasks_file': 'tasks.txt'}
    """
    parsed: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key or not equals:
            raise UsageError(f"--setting: expected KEY=VALUE, found {setting!r}")
        try:
            parsed[key] = json.loads(value)
        except (ValueError, RecursionError):
            parsed[key] = value
    return parsed
