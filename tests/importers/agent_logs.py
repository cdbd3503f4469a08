"""Small logs in the shape of each format, with invented content, to be varied by the tests."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from typing import Any

START = 1_770_120_000  # 2026-02-03T12:00:00Z


def iso(seconds: float, zone: str = "Z") -> str:
    whole, part = divmod(round(seconds * 1000), 1000)
    minutes, rest = divmod(whole, 60)
    return f"2026-02-03T12:{minutes:02d}:{rest:02d}.{part:03d}{zone}"


def codex() -> list[dict[str, Any]]:
    """Two turns: two parallel calls, a patch, a reply; then a reply alone."""

    def item(at: float, **payload: Any) -> dict[str, Any]:
        return {"timestamp": iso(at), "type": "response_item", "payload": payload}

    def event(at: float, **payload: Any) -> dict[str, Any]:
        return {"timestamp": iso(at), "type": "event_msg", "payload": payload}

    def tokens(at: float, total: int, last: int) -> dict[str, Any]:
        return event(
            at,
            type="token_count",
            info={
                "total_token_usage": {"output_tokens": total},
                "last_token_usage": {
                    "input_tokens": 100,
                    "cached_input_tokens": 60,
                    "output_tokens": last,
                },
            },
        )

    def said(at: float, text: str) -> dict[str, Any]:
        content = [{"type": "output_text", "text": text}]
        return item(at, type="message", role="assistant", content=content)

    def asked(at: float, text: str) -> list[dict[str, Any]]:
        content = [{"type": "input_text", "text": text}]
        return [
            item(at, type="message", role="user", content=content),
            event(at, type="user_message", message=text),
        ]

    def turn(at: float) -> dict[str, Any]:
        return {"timestamp": iso(at), "type": "turn_context", "payload": {"model": "larch-8b"}}

    return [
        {
            "timestamp": iso(0),
            "type": "session_meta",
            "payload": {"id": "s", "source": "cli", "base_instructions": {"text": "Be kind."}},
        },
        *asked(0, "<environment_context>a shed</environment_context>"),
        *asked(1, "Count the spoons."),
        turn(1.5),
        item(2, type="reasoning", summary=[], encrypted_content="x"),
        said(3, "I will look."),
        item(3.25, type="function_call", name="look", arguments='{"n": 1.0}', call_id="c1"),
        item(3.5, type="function_call", name="count", arguments="{}", call_id="c2"),
        tokens(3.5, 10, 10),
        item(4, type="function_call_output", call_id="c1", output="three"),
        item(5.5, type="function_call_output", call_id="c2", output="4"),
        turn(5.5),
        tokens(5.75, 10, 10),
        item(6.5, type="custom_tool_call", name="patch", input="+ spoon", call_id="c3"),
        tokens(6.5, 15, 5),
        item(6.75, type="custom_tool_call_output", call_id="c3", output="ok"),
        item(8.75, type="web_search_call", status="completed"),
        said(9, "Four."),
        tokens(9, 20, 5),
        *asked(20, "And forks?"),
        said(20.75, "None."),
        tokens(20.75, 22, 2),
    ]


def tau2() -> dict[str, Any]:
    """Two trials of one task: greeting, question, call, reply, thanks, reply."""

    def simulation(trial: int, slower: float) -> dict[str, Any]:
        calls = [{"id": "c1", "name": "find_kite", "arguments": {"colour": "red"}}]
        return {
            "task_id": "kite",
            "trial": trial,
            "termination_reason": "user_stop",
            "messages": [
                {"role": "assistant", "content": "Hello!", "timestamp": iso(0, "")},
                {"role": "user", "content": "My kite?", "timestamp": iso(2, "")},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": calls,
                    "timestamp": iso(3 + slower, ""),
                    "usage": {"prompt_tokens": 50, "completion_tokens": 7},
                },
                {
                    "role": "tool",
                    "id": "c1",
                    "content": "lost",
                    "requestor": "assistant",
                    "timestamp": iso(3.5 + slower, ""),
                },
                {"role": "assistant", "content": "Lost.", "timestamp": iso(5.5 + slower, "")},
                {
                    "role": "user",
                    "tool_calls": [{"name": "cry", "arguments": {}, "requestor": "user"}],
                    "timestamp": iso(6 + slower, ""),
                },
                {
                    "role": "tool",
                    "content": "sob",
                    "requestor": "user",
                    "timestamp": iso(7 + slower, ""),
                },
                {"role": "user", "content": "Oh.", "timestamp": iso(8 + slower, "")},
                {"role": "assistant", "content": "Sorry.", "timestamp": iso(8.25 + slower, "")},
            ],
        }

    return {
        "timestamp": iso(0, ""),
        "info": {
            "num_trials": 2,
            "agent_info": {"llm": "larch-8b"},
            "user_info": {"llm": "fir-1b"},
            "environment_info": {"domain_name": "kites", "policy": "Find kites."},
        },
        "tasks": [{"id": "kite"}],
        "simulations": [simulation(0, 0), simulation(1, 0.5)],
    }


def inspect_ai() -> dict[str, Any]:
    """One sample: two calls at once, a reply, a scorer's grading, and a second sample."""

    def model(
        at: float, took: float | None, message: dict[str, Any], **more: Any
    ) -> dict[str, Any]:
        return {
            "event": "model",
            "model": "forest/larch-8b",
            "timestamp": iso(at),
            "working_time": took,
            "input": [],
            "output": {
                "choices": [{"message": {"role": "assistant", **message}}],
                "usage": {"input_tokens": 30, "output_tokens": 4, "total_tokens": 34},
            },
            **more,
        }

    def tool(at: float, end: float, identity: str) -> dict[str, Any]:
        return {
            "event": "tool",
            "id": identity,
            "function": "dig",
            "timestamp": iso(at),
            "completed": iso(end),
        }

    question = {"role": "user", "content": "attachment://q"}
    calls = [
        {"id": "c1", "function": "dig", "arguments": {"depth": 2.0}},
        {"id": "c2", "function": "dig", "arguments": {"depth": 3}},
    ]
    called = {"role": "assistant", "content": "", "tool_calls": calls}
    results = [
        {"role": "tool", "content": "clay", "tool_call_id": "c1"},
        {"role": "tool", "content": "rock", "tool_call_id": "c2"},
    ]
    events = [
        {"event": "span_begin", "id": "solve", "type": "solver", "timestamp": iso(0)},
        model(1, 1.5, called, input=[question], span_id="solve", retries=1),
        {"event": "span_begin", "id": "t", "type": "tool", "parent_id": "solve"},
        model(3, 9.0, {"content": "a sub-agent"}, span_id="t"),
        tool(3, 5, "c1"),
        tool(4, 6, "c2"),
        model(7, 0.5, {"content": "Rock."}, input=[question, called, *results], span_id="solve"),
        {"event": "span_begin", "id": "grade", "type": "scorer", "timestamp": iso(8)},
        model(8, 4.0, {"content": "GRADE: C"}, span_id="grade"),
    ]
    short = [model(1, None, {"content": "Yes."}, input=[question], completed=iso(1.75))]
    attachments = {"q": "What is below?"}
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "task": "garden",
            "task_id": "g",
            "model": "forest/larch-8b",
            "dataset": {"name": "holes"},
            "config": {"epochs": 1},
        },
        "samples": [
            {"id": 1, "epoch": 1, "events": events, "attachments": attachments},
            {"id": "b", "epoch": 1, "events": short, "attachments": attachments},
        ],
    }


def as_eval(log: dict[str, Any]) -> bytes:
    """Pack an inspect_ai log the way ``.eval`` files hold it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        header = {key: value for key, value in log.items() if key != "samples"}
        archive.writestr("_journal/start.json", json.dumps(header))
        for sample in log["samples"]:
            archive.writestr(
                f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample)
            )
        archive.writestr("header.json", json.dumps(header))
    return buffer.getvalue()


def _response(identity: str, calls: list[tuple[str, str]], text: str = "") -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"{identity}{n}", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)
        ]
    return {"id": identity, "model": "larch-8b", "choices": [{"message": message}]}


def openhands() -> list[dict[str, Any]]:
    """One task of each generation of the format, and one that failed."""
    two = _response("r1", [("run", '{"command": "ls", "security_risk": "LOW"}'), ("look", "{}")])
    end = _response("r2", [("finish", '{"message": "done"}')])
    before_1 = [
        {
            "id": 0,
            "timestamp": iso(0, ""),
            "source": "user",
            "action": "message",
            "args": {"content": "Tidy up."},
        },
        {"id": 1, "timestamp": iso(0.5, ""), "source": "user", "action": "recall", "args": {}},
        {
            "id": 2,
            "timestamp": iso(3, ""),
            "source": "agent",
            "action": "run",
            "args": {"command": "ls", "thought": ""},
            "tool_call_metadata": {"tool_call_id": "r10", "model_response": two},
        },
        {
            "id": 3,
            "timestamp": iso(4, ""),
            "source": "agent",
            "observation": "run",
            "content": "mess",
            "cause": 2,
            "tool_call_metadata": {"tool_call_id": "r10", "model_response": two},
        },
        {
            "id": 4,
            "timestamp": iso(4, ""),
            "source": "agent",
            "action": "read",
            "args": {},
            "tool_call_metadata": {"tool_call_id": "r11", "model_response": two},
        },
        {
            "id": 5,
            "timestamp": iso(4.5, ""),
            "source": "environment",
            "observation": "read",
            "content": "more",
            "tool_call_metadata": {"tool_call_id": "r11", "model_response": two},
        },
        {
            "id": 6,
            "timestamp": iso(7, ""),
            "source": "agent",
            "action": "finish",
            "args": {},
            "tool_call_metadata": {"tool_call_id": "r20", "model_response": end},
        },
    ]

    def called(at: float, name: str, identity: str, response: str) -> dict[str, Any]:
        return {
            "kind": "ActionEvent",
            "timestamp": iso(at, ""),
            "source": "agent",
            "thought": [{"type": "text", "text": "Hm."}],
            "tool_name": name,
            "tool_call_id": identity,
            "tool_call": {"id": identity, "name": name, "arguments": '{"at": 1, "summary": "s"}'},
            "llm_response_id": response,
        }

    def seen(at: float, identity: str) -> dict[str, Any]:
        return {
            "kind": "ObservationEvent",
            "timestamp": iso(at, ""),
            "source": "environment",
            "tool_call_id": identity,
            "observation": {"content": [{"type": "text", "text": "dust"}]},
        }

    def told(at: float, source: str, text: str, **more: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return {
            "kind": "MessageEvent",
            "timestamp": iso(at, ""),
            "source": source,
            "llm_message": {"role": source, "content": content},
            **more,
        }

    since_1 = [
        {
            "kind": "SystemPromptEvent",
            "timestamp": iso(0, ""),
            "source": "agent",
            "system_prompt": {"type": "text", "text": "Be tidy."},
        },
        told(1, "user", "Sweep."),
        called(2, "sweep", "d1", "q1"),
        called(2, "sweep", "d2", "q1"),
        {"kind": "ConversationStateUpdateEvent", "timestamp": iso(2.5, "")},
        seen(3, "d1"),
        seen(3.5, "d2"),
        told(5, "agent", "Swept.", llm_response_id="q2"),
        told(6, "user", "Again."),
        told(6.5, "agent", "Done.", llm_response_id="q3"),
    ]
    return [
        {
            "instance_id": "shed-1",
            "metadata": {"llm_config": {"model": "larch-8b"}},
            "history": before_1,
            "metrics": {
                "response_latencies": [
                    {"model": "larch-8b", "latency": 2.25, "response_id": "r1"},
                    {"model": "larch-8b", "latency": 1.75, "response_id": "r2"},
                ],
                "token_usages": [
                    {
                        "prompt_tokens": 9,
                        "completion_tokens": 2,
                        "cache_read_tokens": 3,
                        "response_id": "r1",
                    }
                ],
            },
            "error": None,
        },
        {"instance_id": "shed-2", "history": [], "error": "out of brooms"},
        {
            "instance_id": "shed-3",
            "metadata": {"llm": {"model": "larch-8b"}},
            "history": since_1,
            "metrics": {},
        },
    ]


def mini_swe_agent() -> dict[str, Any]:
    """Three commands, the first of which has nothing timed before it."""

    def said(at: float, command: str, number: int) -> dict[str, Any]:
        identity = f"c{number}"
        arguments = json.dumps({"command": command})
        return {
            "role": "assistant",
            "content": "Hm.",
            "tool_calls": [{"id": identity, "function": {"name": "bash", "arguments": arguments}}],
            "extra": {
                "actions": [{"command": command, "tool_call_id": identity}],
                "response": {"usage": {"prompt_tokens": 40, "completion_tokens": 6}},
                "timestamp": START + at,
            },
        }

    def seen(at: float, number: int) -> dict[str, Any]:
        return {
            "role": "tool",
            "tool_call_id": f"c{number}",
            "content": "<output>bark</output>",
            "extra": {"returncode": 0, "timestamp": START + at},
        }

    return {
        "info": {
            "mini_version": "2.0.0",
            "model_stats": {"api_calls": 3},
            "config": {"model": {"model_name": "larch-8b"}},
        },
        "messages": [
            {"role": "system", "content": "You can run bash."},
            {"role": "user", "content": "Peel the log."},
            said(1, "ls", 1),
            seen(1.5, 1),
            said(3, "peel log", 2),
            seen(4, 2),
            {
                "role": "user",
                "content": "one command, please",
                "extra": {"interrupt_type": "FormatError"},
            },
            said(9, "submit", 3),
            {"role": "exit", "content": "bye", "extra": {"exit_status": "Submitted"}},
        ],
        "instance_id": "wood-7",
        "trajectory_format": "mini-swe-agent-1.1",
    }


def swe_agent() -> dict[str, Any]:
    return {
        "trajectory": [
            {"action": "ls", "observation": "bark", "response": "Hm.", "execution_time": 0.2}
        ],
        "history": [{"role": "system", "content": "Hi.", "agent": "main", "message_type": "x"}],
        "info": {"exit_status": "submitted"},
    }


def atif() -> dict[str, Any]:
    """A user's wish, two steps with tools, dispatch without a model, a reply."""
    calls = [{"tool_call_id": "c1", "function_name": "saw", "arguments": {"cm": 10.0}}]
    results = {"results": [{"source_call_id": "c1", "content": "sawn"}]}
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "carpenter", "version": "1", "model_name": "larch-8b"},
        "steps": [
            {"step_id": 1, "source": "system", "message": "Be careful."},
            {"step_id": 2, "source": "user", "message": "A shelf.", "timestamp": iso(0)},
            {
                "step_id": 3,
                "source": "agent",
                "message": "Hm.",
                "timestamp": iso(2),
                "tool_calls": calls,
                "observation": results,
                "metrics": {"prompt_tokens": 20, "completion_tokens": 3, "cached_tokens": 0},
            },
            {
                "step_id": 4,
                "source": "agent",
                "message": "",
                "timestamp": iso(2.5),
                "llm_call_count": 0,
            },
            {"step_id": 5, "source": "agent", "message": "Done.", "timestamp": iso(3.25)},
        ],
        "final_metrics": {"total_steps": 5},
    }


def speculative_tool_calls() -> dict[str, Any]:
    """A hit, a miss of two calls, an answer that leads nowhere, the final one."""

    def guess(name: str, seconds: float) -> dict[str, Any]:
        return {"name": name, "args": {"n": 1}, "spec_inference_time": seconds}

    def step(seconds: float, **more: Any) -> dict[str, Any]:
        return {"node": "llm", "llm_time": seconds, "actor_model": "larch-8b", **more}

    def ran(seconds: float) -> dict[str, Any]:
        executed = {"name": "hop", "result": "up"}
        return {"node": "tools", "tool_time": seconds, "tool_executed": executed}

    hop = {"name": "hop", "args": {"n": 1.0}}
    return {
        "task_id": "hill",
        "actor_model": "larch-8b",
        "spec_model": "fir-1b",
        "speculation_enabled": True,
        "trajectory": [
            {"node": "start", "question": "Which way?", "timestamp": 0},
            step(2.5, actor_tool_calls=[hop], spec_predictions=[guess("hop", 0.5)]),
            ran(1.25),
            step(
                3.5,
                actor_tool_calls=[hop, hop],
                spec_predictions=[guess("hop", 0.5), guess("skip", 0.75)],
            ),
            ran(0.25),
            step(4.5, actor_reasoning="Hm."),
            step(1.5, final_answer="Up."),
        ],
        "error": None,
    }


TABLE = (
    "task,gen_s,tool_s,tool,arguments,user_turn,prompt_tokens\n"
    'a,1.5,0.25,sing,"{""to"": ""owl""}",false,10\n'
    "b,2.5,0,hum,,true,11\n"
    "a,0.5,0,,,false,12\n"
    "a,0.75,0,sing,,true,13\n"
)

BUILDERS = {
    "codex": codex,
    "tau2": tau2,
    "inspect-ai": inspect_ai,
    "openhands": openhands,
    "mini-swe-agent": mini_swe_agent,
    "swe-agent": swe_agent,
    "atif": atif,
    "speculative-tool-calls": speculative_tool_calls,
}
LINE_BY_LINE = {"codex", "openhands"}


def written(name: str, log: Any = None) -> bytes:
    """Spell a log of a format, its own sample if none is given."""
    if name == "table":
        return TABLE.encode() if log is None else log
    value = copy.deepcopy(BUILDERS[name]()) if log is None else log
    if name in LINE_BY_LINE:
        return "".join(json.dumps(record) + "\n" for record in value).encode()
    return json.dumps(value).encode()


SUFFIXES = {
    "codex": ".jsonl",
    "openhands": ".jsonl",
    "mini-swe-agent": ".traj.json",
    "swe-agent": ".traj",
    "table": ".csv",
}


def name_of(name: str) -> str:
    """Name a file of a format."""
    return f"log_{name}{SUFFIXES.get(name, '.json')}"
