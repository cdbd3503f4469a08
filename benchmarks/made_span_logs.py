"""Logs of spans, in the shape of each format: a generation's span holds all it was told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from made_agent_logs import Record, assistant, chat, iso
from made_talks import Talk, Turn


def _generations(talk: Talk) -> Iterator[tuple[int, Turn, list[Record]]]:
    """Yield each decision with the messages before it."""
    messages, at = chat(talk), 2
    for number, turn in enumerate(talk.turns):
        yield number, turn, messages[:at]
        at += 1 + len(turn.results)


def _nano(seconds: float) -> str:
    return str(round(seconds * 1e6) * 1000)


def _parts(messages: list[Record]) -> str:
    """Spell messages as the newer GenAI conventions do."""
    spelled = []
    for message in messages:
        parts: list[Record] = [{"type": "text", "content": message["content"]}]
        for call in message.get("tool_calls", ()):
            parts.append({"type": "tool_call", "id": call["id"], **call["function"]})
        spelled.append({"role": message["role"], "parts": parts})
    return json.dumps(spelled)


def _otlp(value: object) -> Record:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"arrayValue": {"values": [_otlp(v) for v in value]}} if isinstance(value, list) else {
        "stringValue": value}  # fmt: skip


def otlp(talk: Talk) -> Iterator[Record]:
    """One export request a line, of a generation and its tools."""
    trace = f"{talk.number:032x}"

    def span(number: int, name: str, start: float, end: float, about: Record) -> Record:
        return {
            "traceId": trace, "spanId": f"{number:016x}", "parentSpanId": f"{1:016x}", "flags": 256,
            "name": name, "kind": 1, "startTimeUnixNano": _nano(start),
            "endTimeUnixNano": _nano(end), "status": {},
            "attributes": [{"key": k, "value": _otlp(v)} for k, v in about.items()],
        }  # fmt: skip

    resource = {"attributes": [
        {"key": "service.name", "value": {"stringValue": "agent"}},
        {"key": "telemetry.sdk.language", "value": {"stringValue": "python"}}]}  # fmt: skip
    for n, turn, told in _generations(talk):
        end = turn.started_s + turn.gen_s
        spans = [span(100 * n + 2, "chat larch-8b", turn.started_s, end, {
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": "forest",
            "gen_ai.request.model": "larch-8b", "gen_ai.response.model": "larch-8b",
            "gen_ai.response.id": f"resp-{n}", "gen_ai.conversation.id": talk.task,
            "gen_ai.response.finish_reasons": ["tool_calls" if turn.calls else "stop"],
            "gen_ai.usage.input_tokens": 9_000, "gen_ai.usage.output_tokens": 90,
            "server.address": "api.example.org", "server.port": 443,
            "gen_ai.input.messages": _parts(told),
            "gen_ai.output.messages": _parts([assistant(turn, n)]),
        })]  # fmt: skip
        for c, (name, arguments) in enumerate(turn.calls):
            spans.append(span(100 * n + 3 + c, f"execute_tool {name}", end, end + turn.tool_s, {
                "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name,
                "gen_ai.tool.call.id": f"call_{n}_{c}", "gen_ai.tool.type": "function",
                "gen_ai.tool.call.arguments": json.dumps(arguments),
                "gen_ai.tool.call.result": turn.results[c],
            }))  # fmt: skip
        scope = {"scope": {"name": "agent"}, "spans": spans}
        yield {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def openinference(talk: Talk) -> Iterator[Record]:
    """One span a record, attributes flattened."""

    def span(number: int, kind: str, start: float, end: float, about: Record) -> Record:
        return {
            "id": f"span-{talk.number}-{number}", "name": kind.lower(), "span_kind": kind,
            "context": {"trace_id": f"trace-{talk.number}", "span_id": f"s{number}"},
            "parent_id": None, "start_time": iso(start) + "+00:00", "end_time": iso(end) + "+00:00",
            "status_code": "OK", "status_message": "", "attributes": about, "events": [],
        }  # fmt: skip

    for n, turn, told in _generations(talk):
        end = turn.started_s + turn.gen_s
        about: Record = {
            "llm.model_name": "larch-8b", "llm.provider": "forest", "session.id": talk.task,
            "input.mime_type": "application/json", "input.value": json.dumps({"messages": told}),
            "output.value": turn.text, "llm.token_count.completion": 90,
            "llm.token_count.prompt": 9_000, "llm.invocation_parameters": '{"max_tokens": 1024}',
        }  # fmt: skip
        for side, messages in (("input", told), ("output", [assistant(turn, n)])):
            for m, message in enumerate(messages):
                at = f"llm.{side}_messages.{m}.message."
                about |= {f"{at}role": message["role"], f"{at}content": message["content"]}
                for c, call in enumerate(message.get("tool_calls", ())):
                    of = f"{at}tool_calls.{c}.tool_call."
                    about |= {f"{of}id": call["id"]}
                    about |= {f"{of}function.{k}": v for k, v in call["function"].items()}
        yield span(100 * n, "LLM", turn.started_s, end, about)
        for c, (name, arguments) in enumerate(turn.calls):
            yield span(100 * n + 1 + c, "TOOL", end, end + turn.tool_s, {
                "tool.name": name, "input.value": json.dumps(arguments),
                "output.value": turn.results[c]})  # fmt: skip


def langfuse(talk: Talk) -> Iterator[Record]:
    """One trace with its observations a record."""
    trace = f"lf-{talk.number}"
    observations: list[Record] = []

    def observe(kind: str, name: str, start: float, end: float, **more: Any) -> None:
        observations.append({
            "id": f"{trace}-{len(observations)}", "traceId": trace, "type": kind, "name": name,
            "startTime": iso(start)[:23] + "Z", "endTime": iso(end)[:23] + "Z",
            "projectId": "cloramnkj0002jz088vzn1ja4", "parentObservationId": None,
            "environment": "default", "level": "DEFAULT", "statusMessage": None, "version": None,
            "createdAt": iso(end), "updatedAt": iso(end), "modelParameters": {}, "latency": 2.19,
            "costDetails": {}, "totalCost": 0, "toolDefinitions": {}, "toolCalls": [],
            "toolCallNames": [], "metadata": json.dumps({"attributes": {"scope": "agent"}}), **more,
        })  # fmt: skip

    for n, turn, told in _generations(talk):
        end = turn.started_s + turn.gen_s
        answer = {"choices": [{"finish_reason": "stop", "message": assistant(turn, n)}]}
        observe("GENERATION", "chat", turn.started_s, end, model="larch-8b",
                usageDetails={"input": 9_000, "output": 90, "total": 9_090},
                input=json.dumps(told), output=json.dumps(answer))  # fmt: skip
        for (name, arguments), result in zip(turn.calls, turn.results, strict=True):
            observe("TOOL", name, end, end + turn.tool_s, usageDetails={},
                    input=json.dumps(arguments), output=json.dumps(result))  # fmt: skip
    yield {"trace": {"id": trace, "projectId": "p", "sessionId": None, "input": talk.ask},
           "observations": observations}  # fmt: skip


def langsmith(talk: Talk) -> Iterator[Record]:
    """One run a record, messages as LangChain serializes them."""
    trace = f"ls-{talk.number}"

    def message(of: Record) -> Record:
        kind = {"system": "System", "user": "Human", "assistant": "AI", "tool": "Tool"}[of["role"]]
        said: Record = {"content": of["content"], "type": kind.lower()}
        if of.get("tool_calls"):
            said["tool_calls"] = [
                {"id": call["id"], "type": "tool_call", "name": call["function"]["name"],
                 "args": json.loads(call["function"]["arguments"])}
                for call in of["tool_calls"]]  # fmt: skip
        return {"lc": 1, "type": "constructor", "kwargs": said,
                "id": ["langchain", "schema", "messages", f"{kind}Message"]}  # fmt: skip

    def run(number: int, kind: str, name: str, start: float, end: float, **more: Any) -> Record:
        return {
            "id": f"{trace}-{number}", "trace_id": trace, "parent_run_id": None, "run_type": kind,
            "name": name, "start_time": iso(start), "end_time": iso(end), "error": None,
            "dotted_order": f"20260203T120000{number:06d}Z{trace}", "tags": [], "events": [],
            "extra": {"metadata": {"ls_provider": "forest", "ls_model_name": "larch-8b"},
                      "runtime": {"sdk": "langsmith-py", "platform": "Linux", "python": "3.11"}},
            "serialized": {"name": "ChatOpenAI"}, **more,
        }  # fmt: skip

    for n, turn, told in _generations(talk):
        end = turn.started_s + turn.gen_s
        answer = {
            "text": turn.text,
            "type": "ChatGeneration",
            "message": message(assistant(turn, n)),
        }
        yield run(100 * n, "llm", "ChatOpenAI", turn.started_s, end, prompt_tokens=9_000,
                  completion_tokens=90, inputs={"messages": [[message(m) for m in told]]},
                  outputs={"generations": [[answer]], "llm_output": None})  # fmt: skip
        for c, (name, arguments) in enumerate(turn.calls):
            yield run(100 * n + 1 + c, "tool", name, end, end + turn.tool_s,
                      inputs={"input": json.dumps(arguments)},
                      outputs={"output": turn.results[c]})  # fmt: skip


def mlflow(talk: Talk) -> Iterator[Record]:
    """One trace a record; attributes are JSON text."""
    trace = f"tr-{talk.number}"
    spans: list[Record] = []

    def add(kind: str, name: str, start: float, end: float, said: object, told: object) -> None:
        spans.append({
            "trace_id": trace, "span_id": f"{len(spans):016x}", "parent_span_id": None,
            "name": name, "start_time_unix_nano": int(_nano(start)),
            "end_time_unix_nano": int(_nano(end)), "events": [],
            "status": {"code": "STATUS_CODE_OK", "message": ""},
            "attributes": {
                "mlflow.traceRequestId": json.dumps(trace), "mlflow.spanType": json.dumps(kind),
                "mlflow.spanInputs": json.dumps(told), "mlflow.spanOutputs": json.dumps(said),
                "mlflow.chat.tokenUsage": '{"input_tokens": 9000, "output_tokens": 90}',
            },
        })  # fmt: skip

    for n, turn, told in _generations(talk):
        end = turn.started_s + turn.gen_s
        add("CHAT_MODEL", "Completions", turn.started_s, end,
            {"choices": [{"finish_reason": "stop", "message": assistant(turn, n)}]},
            {"model": "larch-8b", "messages": told})  # fmt: skip
        for (name, arguments), result in zip(turn.calls, turn.results, strict=True):
            add("TOOL", name, end, end + turn.tool_s, result, arguments)
    yield {
        "info": {"trace_id": trace, "state": "OK", "trace_metadata": {}},
        "data": {"spans": spans},
    }


def openai_agents(talk: Talk) -> Iterator[Record]:
    """One span a record."""
    trace = f"trace_{talk.number}"

    def span(number: int, start: float, end: float, **data: Any) -> Record:
        return {
            "object": "trace.span", "id": f"{trace}_{number}", "trace_id": trace, "parent_id": None,
            "started_at": iso(start) + "+00:00", "ended_at": iso(end) + "+00:00",
            "span_data": data, "error": None,
        }  # fmt: skip

    yield {"object": "trace", "id": trace, "workflow_name": "w", "group_id": None, "metadata": None}
    for n, turn, told in _generations(talk):
        end = turn.started_s + turn.gen_s
        yield span(100 * n, turn.started_s, end, type="generation", input=told,
                   output=[assistant(turn, n)], model="larch-8b", model_config={"temperature": 0},
                   usage={"input_tokens": 9_000, "output_tokens": 90})  # fmt: skip
        for c, (name, arguments) in enumerate(turn.calls):
            given = json.dumps(arguments)
            yield span(100 * n + 1 + c, end, end + turn.tool_s, type="function", name=name,
                       input=given, output=turn.results[c], mcp_data=None)  # fmt: skip


def litellm(talk: Talk) -> Iterator[Record]:
    """One call a record, as the standard logging payload."""
    for n, turn, told in _generations(talk):
        yield {
            "id": f"chatcmpl-{talk.number}-{n}", "trace_id": f"t-{talk.number}",
            "session_id": talk.task, "call_type": "acompletion", "status": "success",
            "stream": False, "response_cost": 0.001, "custom_llm_provider": "openai",
            "startTime": turn.started_s, "endTime": turn.started_s + turn.gen_s,
            "completionStartTime": turn.started_s + 0.1, "response_time": turn.gen_s,
            "model": "larch-8b", "total_tokens": 9_090, "prompt_tokens": 9_000,
            "completion_tokens": 90, "request_tags": [], "end_user": "", "api_base": "http://x/v1",
            "metadata": {"user_api_key_hash": "88dc28d0f030c55e", "user_api_key_alias": "agents",
                         "requester_ip_address": "10.0.0.1", "requester_metadata": {},
                         "spend_logs_metadata": None},
            "hidden_params": {"model_id": "m", "cache_key": None, "api_base": "http://x/v1"},
            "model_parameters": {"temperature": 0.0, "max_tokens": 1024}, "messages": told,
            "response": {"id": f"chatcmpl-{n}", "object": "chat.completion", "model": "larch-8b",
                         "choices": [{"finish_reason": "stop", "message": assistant(turn, n)}],
                         "usage": {"prompt_tokens": 9_000, "completion_tokens": 90}},
        }  # fmt: skip
