"""Logs of nested, timed spans: gather them by trace, and turn each trace into a task.

Vendors differ in how they write a span and agree in what it is: it has an id, a parent, a start
and an end, and is a generation of a model, a run of a tool or of an agent, a guard, or something
else. A format's module brings its records to :class:`Span`; which of the generations are the
agent's own decisions is the business of :mod:`~leapmodel.importers.span_chain`.

Spans of a trace may stand anywhere in a file (an exporter writes a span when it ends, and several
traces at once), and nothing in a file says that a trace is complete. Hence compact spans are kept
until the file ends, unless the format holds a trace in one record; without texts and inputs they
are a small part of the file. Traces of a session are the consecutive turns of one task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from sys import intern
from types import TracebackType

from leapmodel.errors import DataError
from leapmodel.importers.chat import Said
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.records import Step, TaskRun
from leapmodel.importers.span import Span
from leapmodel.importers.span_chain import agent_steps

MIN_EQUAL_TIMES = 3
"""From this many on, generations that all took the same time to the microsecond were not timed."""


@dataclass
class SpanLog:
    """Gather the spans of one file.

    Attributes
    ----------
    path : Path
        The file.
    ledger : Ledger
        Where dropped and remarkable things are noted.
    silence_is_reply : bool, default False
        Whether a generation without a logged output and without a call was a reply, because the
        format's agents go on until they reply.
    """

    path: Path
    ledger: Ledger
    silence_is_reply: bool = False
    _traces: dict[str, list[Span]] = field(default_factory=dict)
    _bad: set[str] = field(default_factory=set)
    _sessions: dict[str, list[TaskRun]] = field(default_factory=dict)

    def reading(self, trace: object, place: Place) -> _Reading:
        """Let an error in a span of a trace through, or drop the whole trace in lenient use."""
        return _Reading(self, trace, place)

    def drop(self, trace: object, place: Place, error: DataError) -> None:
        """Raise an error in a span of a trace, or drop the whole trace in lenient use."""
        is_named = isinstance(trace, str) and bool(trace.strip())
        name = str(trace) if is_named else _named_by_place(self.path, place)
        if name not in self._bad:  # one reason a trace is enough
            self.ledger.drop(name, error)
        self._bad.add(name)

    def add(self, span: Span) -> None:
        """Keep a span until its trace is turned into a task."""
        if not self.ledger.keep_messages and span.said.text:
            span.said = Said(span.said.calls, "", span.said.finish)
        # The same few names come with every span; one copy of each is enough.
        span.trace, span.name = intern(span.trace), intern(span.name)
        span.model = span.model and intern(span.model)
        self._traces.setdefault(span.trace, []).append(span)

    def task_runs(self, complete: Iterable[str]) -> Iterator[TaskRun]:
        """Yield the tasks of the file.

        Parameters
        ----------
        complete : iterable of str
            Adds spans while it is walked, and names each trace that it knows to be complete.
        """
        instant: list[Span] = []
        n_runs = 0
        for trace in complete:
            for run in self._close(trace, instant):
                n_runs += 1
                yield run
        for trace in list(self._traces):
            for run in self._close(trace, instant):
                n_runs += 1
                yield run
        for session, runs in self._sessions.items():
            n_runs += 1
            yield self._one_task(session, runs)
        if instant and not n_runs:
            raise instant[0].place.error(
                "end",
                "generations that take time",
                f"{len(instant)} that end at the moment they start (placeholders?)",
            )

    def _close(self, trace: str, instant: list[Span]) -> Iterator[TaskRun]:
        spans = self._traces.pop(trace, [])
        if not spans or trace in self._bad:
            return
        steps: list[Step] = []
        with self.ledger.guard(trace):
            steps = agent_steps(
                spans, self.ledger, trace, instant, silence_is_reply=self.silence_is_reply
            )
            if not steps:
                self.ledger.count("traces without a generation of the agent", trace)
        if not steps:
            return
        run = TaskRun(trace, steps, line=spans[0].place.line)
        session = next((span.session for span in spans if span.session), None)
        if session is None:
            yield run
        else:
            self._sessions.setdefault(session, []).append(run)

    def _one_task(self, session: str, runs: list[TaskRun]) -> TaskRun:
        if len(runs) == 1:  # other files may hold the session's other turns; a trace's id is unique
            return runs[0]
        runs = sorted(runs, key=lambda run: run.steps[0].started_s or 0.0)
        steps: list[Step] = []
        for run in runs:
            first = steps[-1].segment + 1 if steps else 0
            steps += [step._replace(segment=step.segment + first) for step in run.steps]
        overlaps = sum(_end(a.steps[-1]) > (b.steps[0].started_s or 0.0) for a, b in pairwise(runs))
        self.ledger.count(
            "traces of a session that begin before the one before ends", session, overlaps
        )
        return TaskRun(session, steps, line=runs[0].line)


def import_spans(
    path: Path,
    ledger: Ledger,
    read: Callable[[SpanLog], Iterator[str]],
    *,
    silence_is_reply: bool = False,
) -> Iterator[TaskRun]:
    """Yield the tasks of a file of spans.

    Parameters
    ----------
    path : Path
        The file.
    ledger : Ledger
        Where dropped and remarkable things are noted.
    read : callable
        Adds the file's spans to the log it is given; yields the id of each trace that is complete.
    silence_is_reply : bool, default False
        See :class:`SpanLog`.

    Raises
    ------
    DataError
        If the times are placeholders: every generation took exactly the same time, or none.
    """
    log = SpanLog(path, ledger, silence_is_reply=silence_is_reply)
    runs = log.task_runs(read(log))
    held: list[TaskRun] = []
    times: set[float] = set()
    for run in runs:
        held.append(run)
        times.update(step.gen_s for step in run.steps)
        if len(times) > 1:
            break
    n_steps = sum(len(run.steps) for run in held)
    if len(times) == 1 and n_steps >= MIN_EQUAL_TIMES:
        raise DataError(
            path,
            column="end",
            expected="generations whose times differ",
            found=f"{n_steps} of exactly {times.pop():g} s each (placeholders: nothing can be "
            "predicted from them)",
        )
    yield from held
    yield from runs


class _Reading:
    """The guard of a span, written out: one from contextlib costs as much as reading the span."""

    __slots__ = ("_log", "_place", "_trace")

    def __init__(self, log: SpanLog, trace: object, place: Place) -> None:
        self._log = log
        self._trace = trace
        self._place = place

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, RecursionError):
            error = self._place.error(None, "a record of fewer levels", "one too deep to read")
        if not isinstance(error, DataError):
            return False
        self._log.drop(self._trace, self._place, error)
        return True


def _named_by_place(path: Path, place: Place) -> str:
    if place.line is not None:
        return f"({path.name} line {place.line})"
    return f"({path.name} row {place.row})" if place.row is not None else path.stem


def _end(step: Step) -> float:
    return (step.started_s or 0.0) + step.gen_s
