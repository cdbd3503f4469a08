"""What lies around each span of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leapmodel.errors import shown
from leapmodel.importers.ledger import Ledger

if TYPE_CHECKING:
    from leapmodel.importers.span import Span

_TOOL_PREFIXES = ("tool.", "execute_tool ")


@dataclass(frozen=True, slots=True)
class Scope:
    """The nearest spans of a kind around a span (``tool`` may be a guard).

    A tool or agent hides a generation around it.
    """

    tool: Span | None = None
    agent: Span | None = None
    generation: Span | None = None


class SpanTree:
    """The spans of a trace and what lies around each."""

    def __init__(self, by_id: dict[str, Span]) -> None:
        self._by_id = by_id
        self._find_scopes()

    def of_kind(self, kind: str) -> list[Span]:
        """Return the spans of a kind, in the order of the log."""
        return [span for span in self._by_id.values() if span.kind == kind]

    def scope(self, span: Span) -> Scope:
        """Return what lies around a span."""
        return self._scopes[span.id]

    def find_tools(self, generations: Sequence[Span]) -> None:
        """Take spans that bear the name of a called tool as its runs: not every log says so."""
        called = {call.name for generation in generations for call in generation.said.calls}
        found = False
        for span in self.of_kind("other") if called else ():
            names = {span.name, *(span.name.removeprefix(prefix) for prefix in _TOOL_PREFIXES)}
            if names & called:
                span.kind = "tool"
                found = True
        if found:
            self._find_scopes()

    def _find_scopes(self) -> None:
        self._scopes: dict[str, Scope] = {}
        for span in self._by_id.values():
            path: dict[str, Span] = {}
            at = span
            while at.id not in self._scopes:
                if at.id in path:
                    raise at.place.error(
                        "parent", "a span that is not its own ancestor", shown(at.id)
                    )
                path[at.id] = at
                parent = self._by_id.get(at.parent) if at.parent is not None else None
                if parent is None:  # a root, or its parent is in another log
                    self._scopes[at.id] = Scope()
                    break
                at = parent
            for child in reversed(path.values()):
                if child.id not in self._scopes and child.parent is not None:
                    self._scopes[child.id] = self._inside(self._by_id[child.parent])

    def _inside(self, parent: Span) -> Scope:
        around = self._scopes[parent.id]
        if parent.kind in {"tool", "guard"}:
            return Scope(parent, around.agent)
        if parent.kind == "agent":
            return Scope(around.tool, parent)
        if parent.kind == "generation":
            return Scope(around.tool, around.agent, parent)
        return around


def each_once(spans: Iterable[Span], ledger: Ledger, task: str) -> dict[str, Span]:
    """Return the spans by id; of those sent twice the first that has an end."""
    by_id: dict[str, Span] = {}
    for span in spans:
        if span.id in by_id:  # an exporter sends again what it could not deliver
            ledger.count("repeated spans left out", task)
            if by_id[span.id].end is not None:
                continue
        by_id[span.id] = span
    return by_id
