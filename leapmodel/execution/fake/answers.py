"""What the fake server says: texts cut into tokens, in time, under a decoding constraint."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from leapmodel.errors import UsageError

_TOKEN = re.compile(r"\s?\w{1,6}|\s?[^\w\s]|\s", re.DOTALL)

State = Literal["queued", "running", "finished", "aborted", "failed"]


def tokens_of(text: str) -> list[str]:
    """Cut a text into pieces of about a token each; joined they are the text again.

    Examples
    --------
    >>> tokens_of("Translate it, then")
    ['Transl', 'ate', ' it', ',', ' then']
    """
    return _TOKEN.findall(text)


@dataclass
class FakeRequest:
    """A chat completion that was asked of a fake server, and what became of it.

    Attributes
    ----------
    number : int
        Counted from 0 in the order of arrival.
    model : str
        The model or adapter asked for.
    messages : list of dict
        The chat.
    body : dict
        The whole request.
    started_s, ended_s : float
        ``time.perf_counter()`` at its arrival and its end (NaN while it runs).
    prompt_tokens, cached_tokens, sent_tokens : int
        As :func:`tokens_of` counts; ``sent_tokens`` those streamed so far.
    state : {"queued", "running", "finished", "aborted", "failed"}
        Aborted: the client closed the connection. Failed: a fault, or a refused request.
    weights : str or None
        The folder it is answered from: the adapter's that was asked for, or of the weights that had
        been put in place of the first ones; None for these.
    """

    number: int
    model: str
    messages: list[dict[str, Any]]
    body: dict[str, Any]
    started_s: float
    ended_s: float = float("nan")
    prompt_tokens: int = 0
    cached_tokens: int = 0
    sent_tokens: int = 0
    state: State = "queued"
    weights: str | None = None

    @property
    def last(self) -> str:
        """The content of the last message."""
        return str(self.messages[-1].get("content", ""))


@dataclass(frozen=True)
class Answer:
    """A text with times of its own.

    Parameters
    ----------
    text : str
        What is said.
    first_token_s, token_s : float, optional
        Seconds to the first token and for each that follows; the server's where None.
    tokens : int, optional
        Pretend that the text has this many completion tokens (its end included), so that a step's
        duration is ``first_token_s + (tokens - 1) * token_s`` whatever it says.
    calls : tuple of (str, str)
        Tools that are called: names, and arguments as JSON text. They take no tokens.
    """

    text: str
    first_token_s: float | None = None
    token_s: float | None = None
    tokens: int | None = None
    calls: tuple[tuple[str, str], ...] = ()

    def pieces(self, max_tokens: int, *, beyond: bool = False) -> tuple[list[str], str]:
        """Return the texts of the completion tokens, and why they end.

        The token that ends a text says nothing, but takes its time and counts, as in vLLM. Beyond
        it (``ignore_eos``) go more that say nothing, to ``max_tokens``.

        Examples
        --------
        >>> Answer("a b").pieces(8)
        (['a', ' b', ''], 'stop')
        >>> Answer("a b").pieces(2)
        (['a', ' b'], 'length')
        >>> Answer("a b", tokens=5).pieces(8)
        (['a', ' b', '', '', ''], 'stop')
        >>> Answer("a b", tokens=1).pieces(8)
        (['a b'], 'stop')
        """
        pieces = [*tokens_of(self.text), ""]
        if self.tokens is not None:
            if self.tokens < 1:
                raise UsageError(f"an answer has at least one token, not {self.tokens}")
            while len(pieces) > self.tokens:  # say the rest with the last token
                pieces[-2:] = ["".join(pieces[-2:])]
            pieces += [""] * (self.tokens - len(pieces))
        if beyond:
            pieces += [""] * (max_tokens + 1 - len(pieces))
        if len(pieces) > max_tokens:
            return pieces[:max_tokens], "length"
        return pieces, "stop"


Answers = str | Answer | Mapping[str, str | Answer] | Callable[[FakeRequest], str | Answer]
"""One answer for all, answers by the content of the last message, or a function."""


def answer_to(answers: Answers, request: FakeRequest) -> Answer:
    """Return what to say to a request.

    Raises
    ------
    UsageError
        If a mapping has no answer to it.
    """
    if callable(answers):
        said = answers(request)
    elif isinstance(answers, Mapping):
        if request.last not in answers:
            raise UsageError(f"the fake server has no answer to {request.last[:60]!r}")
        said = answers[request.last]
    else:
        said = answers
    return said if isinstance(said, Answer) else Answer(said)


def constraint_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's decoding constraint: json, grammar, regex or choice; empty if none.

    The old ``guided_*`` fields are ignored in silence, as vLLM does.

    Raises
    ------
    UsageError
        If it asks for something that vLLM would refuse.
    """
    wanted = body.get("structured_outputs")
    form = body.get("response_format")
    if wanted is None and form and form.get("type") != "text":
        if form.get("type") == "json_object":
            return {"json": {"type": "object"}}
        if form.get("type") == "json_schema":
            return {"json": form["json_schema"]["schema"]}
        raise UsageError(f"response_format can't be of type {form.get('type')!r}")
    if wanted is None:
        return {}
    kinds = {"json", "regex", "choice", "grammar"}
    given = {kind: value for kind, value in wanted.items() if kind in kinds and value is not None}
    if len(given) != 1:
        raise UsageError("You must use exactly one kind of structured outputs constraint")
    return given


def calling(answer: Answer, body: Mapping[str, Any]) -> Answer:
    """Return an answer that calls the tool which a request insists on, as plainly as it can.

    Examples
    --------
    >>> function = {"name": "ls", "parameters": {"type": "object"}}
    >>> body = {"tools": [{"type": "function", "function": function}]}
    >>> choice = {"type": "function", "function": {"name": "ls"}}
    >>> calling(Answer("perhaps"), {**body, "tool_choice": choice}).calls
    (('ls', '{}'),)
    """
    choice = body.get("tool_choice")
    if not isinstance(choice, Mapping):
        return answer
    name = choice["function"]["name"]
    for tool in body.get("tools") or ():
        if tool["function"]["name"] == name:
            said = json.dumps(_plainest(tool["function"].get("parameters", {})))
            return replace(answer, text="", calls=((name, said),))
    raise UsageError(f"the tool {name!r} is not among the request's tools")


def constrained(answer: Answer, constraint: Mapping[str, Any]) -> Answer:
    """Return an answer that keeps to a constraint: itself where it does, else the plainest one.

    A grammar is taken on trust; a pattern that the answer does not match is refused.

    Examples
    --------
    >>> constrained(Answer("perhaps"), {"choice": ["yes", "no"]}).text
    'yes'
    >>> schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    >>> constrained(Answer("perhaps"), {"json": schema}).text
    '{"n":0}'
    """
    text = answer.text
    if "choice" in constraint:
        text = text if text in constraint["choice"] else constraint["choice"][0]
    elif "json" in constraint:
        schema = constraint["json"]
        schema = json.loads(schema) if isinstance(schema, str) else schema
        if not _fits(text, schema):
            text = json.dumps(_plainest(schema), separators=(",", ":"))
    elif "regex" in constraint and not re.fullmatch(constraint["regex"], text):
        raise UsageError(f"the fake server can't invent a text of the form {constraint['regex']!r}")
    return replace(answer, text=text)


def _fits(text: str, schema: Mapping[str, Any]) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return _value_fits(value, schema)


def _value_fits(value: Any, schema: Mapping[str, Any]) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    kinds: dict[str, type | tuple[type, ...]] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": (int, float),
        "null": type(None),
    }
    kind = schema.get("type")
    if kind is not None and not isinstance(value, kinds[kind]):
        return False
    if not isinstance(value, dict):
        return True
    properties = schema.get("properties", {})
    return all(name in value for name in schema.get("required", [])) and all(
        _value_fits(value[name], inner) for name, inner in properties.items() if name in value
    )


def _plainest(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "object")
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: _plainest(properties.get(name, {})) for name in schema.get("required", [])}
    if kind == "array":
        return [_plainest(schema.get("items", {}))] * schema.get("minItems", 0)
    return {"string": "", "integer": 0, "number": 0, "boolean": False, "null": None}[kind]


FaultKind = Literal[
    "stall", "comments", "drop", "reset", "error-event", "malformed-json", "not-sse",
    "empty-choices", "truncated", "abort", "status", "not-json", "line",
]  # fmt: skip


@dataclass
class Fault:
    """Something that goes wrong with some requests.

    Parameters
    ----------
    kind : str
        What happens. At token ``at_token``: ``stall`` sends nothing more, and ``comments`` nothing
        but them, without end; ``drop`` closes the connection mid-stream and ``reset`` resets it;
        ``error-event`` reports an engine error as vLLM does after the stream began; ``truncated``
        ends the stream properly, but without a reason and without ``[DONE]``; ``abort`` says that
        the request was given up, as vLLM does when it is told to end; ``malformed-json`` sends half
        an object; ``not-sse`` sends a line that no event stream has; ``line`` sends one of your
        own; ``empty-choices`` sends chunks without choices. Instead of a stream: ``status`` answers
        with ``status`` and vLLM's error body; ``not-json`` with 200 and a web page, as a proxy in
        between may.
    at_token : int
        Tokens sent before it happens; 0 is before the first (for ``stall``, before any answer).
    status : int
        For ``status``: 500, 429, 404, 503 and so on.
    line : bytes
        For ``line``: what is sent, as it is.
    times : int, optional
        Requests it happens to; None for all of them.
    skip : int
        Matching requests that are spared first.
    when : callable, optional
        Whether a :class:`FakeRequest` is meant; every one by default.
    """

    kind: FaultKind
    at_token: int = 0
    status: int = 500
    line: bytes = b""
    times: int | None = 1
    skip: int = 0
    when: Callable[[FakeRequest], bool] | None = None
    struck: int = field(default=0, init=False)

    def strikes(self, request: FakeRequest) -> bool:
        """Return whether it happens to this request, and count it."""
        if self.when is not None and not self.when(request):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is not None and self.struck >= self.times:
            return False
        self.struck += 1
        return True
