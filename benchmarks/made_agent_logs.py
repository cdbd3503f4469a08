"""Logs of agents and harnesses, in the shape of each format, with the metadata real ones carry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from made_talks import Talk, Turn

Record = dict[str, Any]


def iso(seconds: float) -> str:
    """Spell a moment as logs do."""
    return datetime.fromtimestamp(round(seconds, 3), UTC).isoformat()[:26].removesuffix("+00:00")


def chat(talk: Talk) -> list[Record]:
    """Return a run as OpenAI chat messages."""
    messages: list[Record] = [
        {"role": "system", "content": talk.system},
        {"role": "user", "content": talk.ask},
    ]
    for number, turn in enumerate(talk.turns):
        messages.append(assistant(turn, number))
        for n, result in enumerate(turn.results):
            messages.append(
                {"role": "tool", "tool_call_id": f"call_{number}_{n}", "content": result}
            )
    return messages


def assistant(turn: Turn, number: int) -> Record:
    """Return a decision as an OpenAI assistant message."""
    message: Record = {"role": "assistant", "content": turn.text}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}_{n}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for n, (name, arguments) in enumerate(turn.calls)
        ]
    return message


def bfcl(talk: Talk) -> Iterator[Record]:
    """One task a line; the inference log is most of it."""
    results, log, latency = [], {"begin_of_turn_query": [chat(talk)[1]]}, []
    for number, turn in enumerate(talk.turns):
        output = [{name: json.dumps(arguments)} for name, arguments in turn.calls] or turn.text
        results.append(output)
        latency.append(turn.gen_s)
        decoded = [f"{name}(path={arguments['path']!r})" for name, arguments in turn.calls]
        log[f"step_{number}"] = [
            {"role": "assistant", "content": output},
            {"role": "handler_log", "content": "Decoded.", "model_response_decoded": decoded},
            *({"role": "tool", "content": result} for result in turn.results),
        ]
    state = {"role": "state_info", "class_name": "FileSystem", "content": {"root": talk.system}}
    tokens = [[3_000 + n for n in range(len(results))]]
    yield {
        "id": talk.task, "result": [results], "input_token_count": tokens,
        "output_token_count": tokens, "latency": [latency], "inference_log": [[state], log],
    }  # fmt: skip


def claude_code(talk: Talk) -> Iterator[Record]:
    """One session a file: a record a content block."""
    session = f"ab5fdcb9-4f75-473b-a9ed-{talk.number:012d}"
    number = 0

    def record(kind: str, at: float, message: Record, **more: Any) -> Record:
        nonlocal number
        number += 1
        uuid = f"2b8deeab-4c62-41d7-{talk.number:04d}-{number:012d}"
        return {
            "parentUuid": uuid, "isSidechain": False, "type": kind, "message": message,
            "uuid": uuid, "timestamp": iso(at)[:23] + "Z", "userType": "external",
            "entrypoint": "cli", "cwd": "/home/someone/project", "sessionId": session,
            "version": "2.1.80", "gitBranch": "main", **more,
        }  # fmt: skip

    start = talk.turns[0].started_s
    yield {"type": "queue-operation", "operation": "enqueue", "content": talk.ask}
    yield record("user", start, {"role": "user", "content": talk.ask})
    for n, turn in enumerate(talk.turns):
        end = turn.started_s + turn.gen_s
        blocks: list[Record] = [{"type": "text", "text": turn.text}]
        for c, (name, arguments) in enumerate(turn.calls):
            blocks.append(
                {"type": "tool_use", "id": f"toolu_{n}_{c}", "name": name, "input": arguments}
            )
        for b, block in enumerate(blocks):
            usage = {
                "input_tokens": 3, "cache_creation_input_tokens": 795,
                "cache_read_input_tokens": 12042, "output_tokens": 148,
                "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
                "service_tier": "standard",
                "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
            }  # fmt: skip
            last = b == len(blocks) - 1
            yield record("assistant", end - 0.2 + 0.2 * last, {
                "model": "larch-8b", "id": f"msg_{talk.number}_{n}", "type": "message",
                "role": "assistant", "content": [block],
                "stop_reason": "tool_use" if last else None, "usage": usage,
            }, requestId=f"req_{n}")  # fmt: skip
        for c, result in enumerate(turn.results):
            block = {"type": "tool_result", "tool_use_id": f"toolu_{n}_{c}", "content": result}
            yield record("user", end + turn.tool_s, {"role": "user", "content": [block]},
                         toolUseResult={"stdout": result, "stderr": ""})  # fmt: skip


def codex(talk: Talk) -> Iterator[Record]:
    """One rollout a file."""

    def item(at: float, **payload: Any) -> Record:
        return {"timestamp": iso(at)[:23] + "Z", "type": "response_item", "payload": payload}

    def event(at: float, **payload: Any) -> Record:
        return {"timestamp": iso(at)[:23] + "Z", "type": "event_msg", "payload": payload}

    start = talk.turns[0].started_s
    yield {
        "timestamp": iso(start), "type": "session_meta",
        "payload": {"id": "s", "source": "cli", "base_instructions": {"text": talk.system}},
    }  # fmt: skip
    yield item(start, type="message", role="user",
               content=[{"type": "input_text", "text": talk.ask}])  # fmt: skip
    yield event(start, type="user_message", message=talk.ask)
    for n, turn in enumerate(talk.turns):
        end = turn.started_s + turn.gen_s
        yield {"timestamp": iso(turn.started_s), "type": "turn_context", "payload": {
            "cwd": "/home/someone", "approval_policy": "on-request", "model": "larch-8b",
            "effort": "high", "user_instructions": talk.ask}}  # fmt: skip
        yield event(end - 0.03, type="agent_reasoning", text=turn.text)
        yield item(end - 0.02, type="reasoning", summary=[{"type": "summary_text", "text": "Hm."}],
                   content=None, encrypted_content="gAAAA" * 300)  # fmt: skip
        yield item(end - 0.01, type="message", role="assistant",
                   content=[{"type": "output_text", "text": turn.text}])  # fmt: skip
        for c, (name, arguments) in enumerate(turn.calls):
            yield item(end, type="function_call", name=name, arguments=json.dumps(arguments),
                       call_id=f"call_{n}_{c}")  # fmt: skip
        usage = {
            "input_tokens": 9_000 + n, "cached_input_tokens": 8_000, "output_tokens": 150 + n,
            "reasoning_output_tokens": 64, "total_tokens": 9_300,
        }  # fmt: skip
        info = {"total_token_usage": {**usage, "total_tokens": 9_300 * (n + 1)},
                "last_token_usage": usage, "model_context_window": 258_400}  # fmt: skip
        limits = {"limit_id": "codex", "primary": {"used_percent": 2.0, "window_minutes": 300}}
        yield event(end, type="token_count", info=info, rate_limits=limits)
        for c, result in enumerate(turn.results):
            yield item(end + turn.tool_s, type="function_call_output", call_id=f"call_{n}_{c}",
                       output=result)  # fmt: skip


def openhands(talk: Talk) -> Iterator[Record]:
    """One task a line; each event repeats the model's whole response."""
    history: list[Record] = [
        {"id": 0, "timestamp": iso(talk.turns[0].started_s), "source": "user", "action": "message",
         "args": {"content": talk.ask}, "message": talk.ask},
    ]  # fmt: skip
    latencies, usages = [], []
    for n, turn in enumerate(talk.turns):
        end = turn.started_s + turn.gen_s
        response = {
            "id": f"resp-{talk.number}-{n}", "created": int(end), "model": "larch-8b",
            "object": "chat.completion", "system_fingerprint": None,
            "choices": [{"finish_reason": "tool_calls", "index": 0, "message": assistant(turn, n)}],
            "usage": {"completion_tokens": 90, "prompt_tokens": 9_000, "total_tokens": 9_090},
        }  # fmt: skip
        latencies.append(
            {"model": "larch-8b", "latency": turn.gen_s, "response_id": response["id"]}
        )
        usages.append({"model": "larch-8b", "prompt_tokens": 9_000, "completion_tokens": 90,
                       "cache_read_tokens": 8_000, "response_id": response["id"]})  # fmt: skip
        for c, (name, arguments) in enumerate(turn.calls):
            metadata = {
                "function_name": name, "tool_call_id": f"call_{n}_{c}", "model_response": response,
                "total_calls_in_response": len(turn.calls),
            }  # fmt: skip
            history.append({
                "id": len(history), "timestamp": iso(end + c * 0.3), "source": "agent",
                "message": "Running.", "action": "run", "args": {**arguments, "thought": turn.text},
                "tool_call_metadata": metadata, "llm_metrics": {"accumulated_cost": 0.1},
            })  # fmt: skip
            history.append({
                "id": len(history), "timestamp": iso(end + (c + 1) * turn.tool_s),
                "source": "agent", "observation": "run", "content": turn.results[c],
                "cause": len(history) - 1, "extras": {"exit_code": 0, "hidden": False},
                "tool_call_metadata": metadata,
            })  # fmt: skip
        if not turn.calls:
            history.append({
                "id": len(history), "timestamp": iso(end), "source": "agent", "action": "message",
                "args": {"content": turn.text}, "message": turn.text,
                "tool_call_metadata": {"model_response": response},
            })  # fmt: skip
    yield {
        "instance_id": talk.task, "instruction": talk.ask, "metadata": {
            "agent_class": "CodeActAgent", "llm_config": {"model": "larch-8b"}},
        "history": history, "error": None, "test_result": {"git_patch": talk.system},
        "metrics": {"accumulated_cost": 0.5, "response_latencies": latencies,
                    "token_usages": usages},
    }  # fmt: skip


def tau2(talk: Talk) -> Iterator[Record]:
    """One simulation in the document's list."""
    messages: list[Record] = [
        {"role": "assistant", "content": "Hello!", "timestamp": iso(talk.turns[0].started_s - 9)},
        {"role": "user", "content": talk.ask, "timestamp": iso(talk.turns[0].started_s)},
    ]
    for n, turn in enumerate(talk.turns):
        end = turn.started_s + turn.gen_s
        calls = [
            {"id": f"call_{n}_{c}", "name": name, "arguments": given, "requestor": "assistant"}
            for c, (name, given) in enumerate(turn.calls)
        ]
        raw = {"finish_reason": "tool_calls", "index": 0, "message": assistant(turn, n)}
        messages.append({
            "role": "assistant", "content": turn.text, "tool_calls": calls or None, "turn_idx": n,
            "timestamp": iso(end), "cost": 0.001, "raw_data": raw,
            "usage": {"completion_tokens": 58, "prompt_tokens": 4_320},
        })  # fmt: skip
        for c, result in enumerate(turn.results):
            messages.append({
                "id": f"call_{n}_{c}", "role": "tool", "content": result, "error": False,
                "requestor": "assistant", "turn_idx": n, "timestamp": iso(end + turn.tool_s),
            })  # fmt: skip
    yield {
        "id": f"sim-{talk.number}", "task_id": talk.task, "trial": 0, "messages": messages,
        "termination_reason": "user_stop", "reward_info": {"reward": 1.0, "db_check": None},
    }  # fmt: skip


def inspect_ai(talk: Talk) -> Iterator[Record]:
    """One sample in the document's list; long texts are attachments."""
    messages = chat(talk)
    attachments = {"sys": talk.system}
    messages[0]["content"] = "attachment://sys"
    events: list[Record] = []
    said = 2
    for n, turn in enumerate(talk.turns):
        end = turn.started_s + turn.gen_s
        calls = [
            {"id": f"call_{n}_{c}", "function": name, "arguments": given, "type": "function"}
            for c, (name, given) in enumerate(turn.calls)
        ]
        message = {"role": "assistant", "content": turn.text, "source": "generate",
                   "tool_calls": calls}  # fmt: skip
        seen = [{**m, "tool_calls": None} if m["role"] == "assistant" else m for m in messages]
        events.append({
            "event": "model", "timestamp": iso(turn.started_s), "working_start": 1.0,
            "model": "forest/larch-8b", "input": seen[:said], "tools": [], "tool_choice": "auto",
            "config": {}, "working_time": turn.gen_s, "completed": iso(end),
            "output": {"model": "larch-8b", "time": turn.gen_s,
                       "choices": [{"message": message, "stop_reason": "tool_calls"}],
                       "usage": {"input_tokens": 9_000, "output_tokens": 90,
                                 "total_tokens": 9_090}},
        })  # fmt: skip
        for c, result in enumerate(turn.results):
            events.append({
                "event": "tool", "id": f"call_{n}_{c}", "function": turn.calls[c][0],
                "arguments": turn.calls[c][1], "result": result, "timestamp": iso(end),
                "completed": iso(end + turn.tool_s), "type": "function",
            })  # fmt: skip
        said += 1 + len(turn.results)
    yield {
        "id": talk.task, "epoch": 1, "input": talk.ask, "target": "", "messages": messages,
        "events": events, "attachments": attachments, "scores": {},
    }  # fmt: skip


def mini_swe_agent(talk: Talk) -> Iterator[Record]:
    """One trajectory a file."""
    messages = chat(talk)[:2]
    for n, turn in enumerate(talk.turns):
        end = turn.started_s + turn.gen_s
        actions = [{"command": str(arguments["path"]), "tool_call_id": f"call_{n}_{c}"}
                   for c, (_, arguments) in enumerate(turn.calls)]  # fmt: skip
        raw = {"id": f"resp-{n}", "model": "larch-8b", "choices": [{"message": assistant(turn, n)}],
               "usage": {"prompt_tokens": 9_000, "completion_tokens": 90}}  # fmt: skip
        messages.append({**assistant(turn, n), "extra": {
            "actions": actions, "response": raw, "cost": 0.01, "timestamp": end}})  # fmt: skip
        for c, result in enumerate(turn.results):
            messages.append({
                "role": "tool", "tool_call_id": f"call_{n}_{c}", "content": result,
                "extra": {"returncode": 0, "raw_output": result, "timestamp": end + turn.tool_s},
            })  # fmt: skip
    yield {
        "info": {"mini_version": "2.0.0", "model_stats": {"api_calls": 3},
                 "config": {"model": {"model_name": "larch-8b"}}},
        "messages": messages, "instance_id": talk.task, "trajectory_format": "mini-swe-agent-1.1",
    }  # fmt: skip


def atif(talk: Talk) -> Iterator[Record]:
    """One trajectory a line."""
    steps: list[Record] = [
        {"step_id": 1, "source": "system", "message": talk.system},
        {"step_id": 2, "source": "user", "message": talk.ask,
         "timestamp": iso(talk.turns[0].started_s)},
    ]  # fmt: skip
    for n, turn in enumerate(talk.turns):
        calls = [{"tool_call_id": f"call_{n}_{c}", "function_name": name, "arguments": arguments}
                 for c, (name, arguments) in enumerate(turn.calls)]  # fmt: skip
        results = [{"source_call_id": f"call_{n}_{c}", "content": result}
                   for c, result in enumerate(turn.results)]  # fmt: skip
        steps.append({
            "step_id": n + 3, "timestamp": iso(turn.started_s + turn.gen_s), "source": "agent",
            "model_name": "larch-8b", "message": turn.text, "reasoning_content": turn.text,
            "tool_calls": calls, "observation": {"results": results},
            "metrics": {"prompt_tokens": 9_000, "completion_tokens": 90, "cached_tokens": 8_000},
        })  # fmt: skip
    yield {
        "schema_version": "ATIF-v1.4", "session_id": talk.task, "steps": steps,
        "agent": {"name": "carpenter", "version": "1", "model_name": "larch-8b"},
    }  # fmt: skip


def speculative_tool_calls(talk: Talk) -> Iterator[Record]:
    """One run a line, with a guess at each step."""
    nodes: list[Record] = [{"node": "start", "question": talk.ask, "timestamp": 0}]
    for turn in talk.turns:
        calls = [{"name": name, "args": arguments} for name, arguments in turn.calls]
        guesses = [{**call, "spec_inference_time": 0.4} for call in calls]
        nodes.append({
            "node": "llm", "timestamp": turn.started_s, "actor_model": "larch-8b",
            "llm_time": turn.gen_s, "actor_reasoning": turn.text, "actor_tool_calls": calls,
            "spec_predictions": guesses, **({} if calls else {"final_answer": turn.text}),
        })  # fmt: skip
        for call, result in zip(calls, turn.results, strict=True):
            ran = {**call, "result": result}
            nodes.append({"node": "tools", "tool_time": turn.tool_s, "tool_executed": ran})
    yield {
        "task_id": talk.task, "level": "1", "correct": True, "actor_model": "larch-8b",
        "spec_model": "fir-1b", "speculation_enabled": True, "trajectory": nodes, "error": None,
    }  # fmt: skip


def table(talk: Talk) -> Iterator[Record]:
    """One step a row."""
    for n, turn in enumerate(talk.turns):
        name, arguments = turn.calls[0] if turn.calls else (None, {})
        yield {
            "task": talk.task, "step": n, "gen_s": round(turn.gen_s, 6),
            "tool_s": round(turn.tool_s, 6), "tool": name,
            "arguments": json.dumps(arguments) if name else None, "prompt_tokens": 9_000 + n,
            "completion_tokens": 90, "note": turn.text,
        }  # fmt: skip
