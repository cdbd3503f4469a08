"""One span of a log of spans, whoever wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from leapmodel.importers.chat import NOTHING, Said
from leapmodel.importers.fields import Place
from leapmodel.importers.records import Message

Kind: TypeAlias = Literal["generation", "tool", "agent", "guard", "other"]


@dataclass(slots=True)
class Span:
    """One span, whoever wrote it.

    Attributes
    ----------
    trace, id : str
        The trace it belongs to, and its own id there.
    parent : str or None
        The id of the span it is part of; None for a root.
    kind : {"generation", "tool", "agent", "guard", "other"}
        A guard checks or judges, and decides nothing. Embeddings, rerankings, retrievals and
        chains are "other".
    name : str
        Of the tool for a tool.
    place : Place
        Where it stands in its file.
    start, end : int or None
        Microseconds since 1970; None where the log does not say.
    said : Said
        What a generation said; the one call that a tool ran, if its arguments are logged.
    failed : bool
        Whether the log calls it failed.
    streamed : bool
        Whether the log says that a generation was streamed.
    model : str or None
        Of a generation; and its tokens ``prompt_tokens``, ``cached_tokens``,
        ``completion_tokens``.
    session : str or None
        Session, thread or conversation of its trace.
    messages : list of dict or None
        All that a generation was told, only if the ledger asks to keep messages.
    """

    trace: str
    id: str
    parent: str | None
    kind: Kind
    name: str
    place: Place
    start: int | None = None
    end: int | None = None
    said: Said = NOTHING
    failed: bool = False
    streamed: bool = False
    model: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    session: str | None = None
    messages: list[Message] | None = None
