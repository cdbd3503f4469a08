"""BFCL multi-turn result files: one task a line, ``result[turn][step]`` and its latencies.

A turn is a segment and an entry of it is a step: a list of calls (parallel calls are one action),
or the reply that ends the turn (``[]``, ``""``, null or text). BFCL's loop appends a step's
output, latency and token counts together and decodes the output only afterwards, so in real files
the lists always have the same length. That holds too for the two other ends of a turn: an output
that BFCL fails to decode stays as the turn's last entry (a null action here), and at the step cap
the last entry is an ordinary call. Different lengths therefore mean a damaged file, not a failed
step, and are refused.

Files of BFCL's prompting mode hold each output as text; a list of Python calls is read as calls.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leapmodel.actions import RESPOND, canonical_group
from leapmodel.errors import DataError
from leapmodel.importers.fields import Place, stem_of
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import Call, said_by_assistant, said_by_tool, text_of
from leapmodel.importers.records import Importer, Message, Sample, Step, TaskRun
from leapmodel.jsonlines import iter_json_lines

_MODEL_IN_NAME = re.compile(r"(?!BFCL_v)(?P<model>.+)_multi_turn_[a-z_]+_result")
_LONGEST_CALL_TEXT = 100_000  # Python's parser is slow on long nonsense


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the tasks of one result file; those that failed are listed in the ledger.

    Parameters
    ----------
    path : Path
        JSON Lines, one task a line.
    ledger : Ledger
        Where failed, dropped and remarkable tasks are noted.

    Yields
    ------
    TaskRun
    """
    named = _MODEL_IN_NAME.fullmatch(stem_of(path))
    ledger.saw_model(named["model"] if named else None)

    def bad_line(error: DataError) -> None:
        ledger.drop(f"({path.name} line {error.line})", error)

    for line, record in iter_json_lines(path, on_bad_line=bad_line if ledger.lenient else None):
        place = Place(path, line)
        task = record.get("id")
        name = task if isinstance(task, str) and task.strip() else f"({path.name} line {line})"
        with ledger.guard(name):
            task = place.text(task, "id")
            if isinstance(record.get("result"), str):
                # "Error during inference: …": the server failed, there is no trace of the task.
                ledger.fail(task)
                continue
            yield TaskRun(task, _steps(record, place, task, ledger), line=line)


def _steps(record: dict[str, Any], place: Place, task: str, ledger: Ledger) -> list[Step]:
    turns = place.items(record.get("result"), "result")
    for number, turn in enumerate(turns):
        place.items(turn, f"result[{number}]")
    latency = _per_step(record, "latency", turns, place)
    prompt = _per_step(record, "input_token_count", turns, place, optional=True)
    completion = _per_step(record, "output_token_count", turns, place, optional=True)
    talk = _messages(record.get("inference_log"), turns) if ledger.keep_messages else {}
    steps: list[Step] = []
    segment = 0
    for t, turn in enumerate(turns):
        for s, output in enumerate(turn):
            at = f"[{t}][{s}]"
            action = _action(output, place, f"result{at}", is_last=s == len(turn) - 1)
            if action is None:
                ledger.count("outputs that do not parse (null actions)", task)
            before, said = talk.get((t, s), ((), None))
            steps.append(
                Step(
                    segment=segment,
                    gen_s=place.seconds(latency[t][s], f"latency{at}"),
                    action=action,
                    prompt_tokens=_count(prompt, t, s, place, "input_token_count"),
                    completion_tokens=_count(completion, t, s, place, "output_token_count"),
                    before=before,
                    said=said,
                )
            )
        segment += bool(turn)  # a turn without any step leaves no gap in the numbering
    if not steps:
        raise place.error("result", "at least one step", "none")
    return steps


def _per_step(
    record: dict[str, Any], field: str, turns: list[Any], place: Place, *, optional: bool = False
) -> list[Any]:
    """Return a field shaped like ``result``: one list a turn, one value a step."""
    if optional and record.get(field) is None:
        return []
    values = place.items(record.get(field), field)
    if len(values) != len(turns):
        raise place.error(field, f"{len(turns)} turns as in result", str(len(values)))
    for t, (turn, of_turn) in enumerate(zip(turns, values, strict=True)):
        n_values = len(place.items(of_turn, f"{field}[{t}]"))
        if n_values != len(turn):
            raise place.error(f"{field}[{t}]", f"{len(turn)} as in result[{t}]", str(n_values))
    return values


def _count(values: list[Any], turn: int, step: int, place: Place, field: str) -> int | None:
    if not values or values[turn][step] is None:
        return None
    return place.count(values[turn][step], f"{field}[{turn}][{step}]")


def _action(output: Any, place: Place, field: str, *, is_last: bool) -> str | None:
    if output is None or output == "":
        return RESPOND
    if isinstance(output, str):
        calls = _python_calls(output)
        if calls is not None:
            return canonical_group(calls)
        # A turn goes on only after calls, so text inside a turn was calls in a model's own
        # notation: no reply, but nothing that can be compared either.
        return RESPOND if is_last else None
    pairs: list[tuple[str, object]] = []
    for number, call in enumerate(place.items(output, field)):
        named = place.mapping(call, f"{field}[{number}]")
        if len(named) != 1:
            raise place.error(f"{field}[{number}]", "one call: {name: arguments}", f"{len(named)}")
        pairs += named.items()
    return canonical_group(pairs)


def _messages(
    log: Any, turns: list[Any]
) -> dict[tuple[int, int], tuple[list[Message], Message | None]]:
    """Return what came before and what was said at each (turn, step) that the log tells of.

    The log of a turn is ``begin_of_turn_query``, then ``step_0``, ``step_1``, …, each a list of
    entries; between turns it shows the state of the environment.
    """
    if not isinstance(log, list):
        return {}
    told = [entry for entry in log if isinstance(entry, dict) and "begin_of_turn_query" in entry]
    found: dict[tuple[int, int], tuple[list[Message], Message | None]] = {}
    before: list[Message] = []
    for t, (turn, entries) in enumerate(zip(turns, told, strict=False)):
        before += [m for m in _entries(entries, "begin_of_turn_query") if m.get("role") != "tool"]
        for s, output in enumerate(turn):
            calls = _spelled(output, f"call_{t}_{s}")
            said = said_by_assistant("" if calls else text_of(output or ""), calls)
            found[t, s] = (before, said)
            results = [m for m in _entries(entries, f"step_{s}") if m.get("role") == "tool"]
            before = [
                said_by_tool(result.get("content"), f"call_{t}_{s}_{number}")
                for number, result in enumerate(results)
            ]
    return found


def _entries(turn: dict[str, Any], key: str) -> list[Message]:
    entries = turn.get(key)
    return [e for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []


def _spelled(output: Any, identity: str) -> list[Call]:
    """Return the calls of an output in FC mode, with names by which their results are told."""
    if not isinstance(output, list):
        return []
    named = [pair for call in output if isinstance(call, dict) for pair in call.items()]
    return [Call(name, given, f"{identity}_{n}") for n, (name, given) in enumerate(named)]


def _recognises(sample: Sample) -> bool:
    if isinstance(sample.record, dict):
        return {"id", "result", "latency"} <= sample.record.keys()
    return sample.record is None and sample.has_keys("id", "result", "inference_log")


def _python_calls(text: str) -> list[tuple[str, object]] | None:
    """Read ``[cd(folder='a'), ls()]``, the notation of BFCL's prompting mode; None if it isn't."""
    text = text.strip()
    if not text.startswith("[") or not text.endswith(")]") or len(text) > _LONGEST_CALL_TEXT:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # about escapes in the model's text
            tree = ast.parse(text, mode="eval").body
            if not isinstance(tree, ast.List):
                return None
            return [_named_call(call) for call in tree.elts]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _named_call(call: ast.expr) -> tuple[str, object]:
    if not isinstance(call, ast.Call) or call.args:
        raise ValueError("not a call with named arguments")
    arguments = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise ValueError("arguments without a name")
        arguments[keyword.arg] = ast.literal_eval(keyword.value)
    return ast.unparse(call.func), arguments


BFCL = Importer(
    name="bfcl",
    description="BFCL multi-turn result files (JSON Lines)",
    suffixes=(".json", ".jsonl"),
    read_file=read_file,
    remarks=(
        "tool times are unknown (BFCL runs its simulated tools in its own process and does not "
        "time them): tool_s is 0",
    ),
    recognises=_recognises,
    has_messages=True,
)
