"""What a person writes about a draft on the command line, turned into evidence."""

from __future__ import annotations

from pathlib import Path

from leapmodel.cli.options import parse_numbers, report_dropped
from leapmodel.draft import Draft, Pool, draft_from_predictions, draft_from_run, stated_draft
from leapmodel.errors import DataError, UsageError
from leapmodel.files import kind_of
from leapmodel.measured_draft import draft_from_rounds
from leapmodel.predictions import read_predictions
from leapmodel.probes import read_probe
from leapmodel.rounds import configurations, read_rounds
from leapmodel.trace import Trace, read_trace


def parse_draft(
    spec: str,
    trace: Trace,
    *,
    pool: Pool = "all",
    depth: int,
    lenient: bool = False,
    evidence_trace: Trace | None = None,
) -> list[Draft]:
    """Turn one ``--draft`` of ``leapmodel choose`` into drafts.

    Parameters
    ----------
    spec : str
        ``NAME=FILE`` with a trace (an independent run), a predictions file or measured rounds;
        ``FILE`` alone, for every draft of a file of predictions or rounds;
        ``NAME=ACCEPTANCE@COST``. ``@COST`` may follow a file too. COST is seconds a call, target
        steps with an ``x`` (``0.07x``), or a file of ``leapmodel probe``.

    Raises
    ------
    UsageError
        If it is none of these.
    DataError
        If the file is not right.
    """
    name, _, what = spec.rpartition("=") if "=" in spec else ("", "", spec)
    if not what:
        raise UsageError(f"--draft: expected NAME=FILE or NAME=ACCEPTANCE@COST, found {spec!r}")
    body, latency_s, cost = _split_cost(what)
    if not Path(body).exists():
        return [_stated(name, body, latency_s, cost, spec)]
    kind = _kind(body)
    if kind == "rounds":
        rounds = read_rounds(body, lenient=lenient)
        report_dropped(rounds)
        drafts = list(dict.fromkeys(one.draft for one, _ in configurations(rounds)))
        if name and len(drafts) > 1 and name not in drafts:
            raise UsageError(f"--draft {spec}: the file holds {', '.join(drafts)}, not {name}")
        return [
            draft_from_rounds(
                trace, rounds, draft=each, latency_s=latency_s, cost=cost, name=name or each
            )
            for each in (drafts if name not in drafts else [name])
        ]
    if kind == "predictions":
        predictions = read_predictions(body, lenient=lenient)
        report_dropped(predictions)
        names = predictions.draft_names
        if name in names:
            wanted = [(name, name)]
        elif name and len(names) > 1:
            raise UsageError(f"--draft {spec}: the file holds {', '.join(names)}, not {name}")
        else:
            wanted = [(name or each, each) for each in names]
        return [
            draft_from_predictions(
                trace,
                predictions,
                draft=each,
                latency_s=latency_s,
                cost=cost,
                evidence_trace=evidence_trace,
                name=label,
            )
            for label, each in wanted
        ]
    run = read_trace(body, lenient=lenient)
    report_dropped(run)
    return [
        draft_from_run(
            trace,
            run,
            pool=pool,
            depth=depth,
            latency_s=latency_s,
            cost=cost,
            evidence_trace=evidence_trace,
            name=name or Path(body).stem,
        )
    ]


def _split_cost(what: str) -> tuple[str, float | None, float | None]:
    body, at, price = what.rpartition("@")
    if not at or Path(what).exists():
        return what, None, None
    if Path(price).is_file():
        return body, read_probe(price).draft_latency_s, None
    in_steps = price.endswith("x")
    numbers = parse_numbers(price.removesuffix("x"), "--draft …@COST")
    if len(numbers) != 1:
        raise UsageError(f"--draft …@COST: expected one number, found {price!r}")
    value = numbers[0]
    return body, (None if in_steps else value), (value if in_steps else None)


def _stated(name: str, body: str, latency_s: float | None, cost: float | None, spec: str) -> Draft:
    try:
        acceptance = parse_numbers(body, "--draft")
    except UsageError:
        raise DataError(
            body, expected="a readable file", found="no such file or directory"
        ) from None
    if latency_s is None and cost is None:
        raise UsageError(
            f"--draft {spec}: a stated acceptance needs a cost, as {spec}@0.2 (seconds a call) or"
            f" {spec}@0.07x (target steps)"
        )
    return stated_draft(acceptance, latency_s=latency_s, cost=cost, name=name or "stated")


def _kind(path: str) -> str:
    try:
        return kind_of(path)
    except DataError:
        return "trace"  # reading it as one gives the better error
