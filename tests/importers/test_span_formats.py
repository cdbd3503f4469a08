"""Each span format: the shapes of its records, and that no other format takes them for its own."""

import json

import numpy as np
import pytest

from leapmodel.errors import DataError
from leapmodel.importers import FORMATS, import_log
from leapmodel.importers.recognition import sample_of
from tests.importers.span_logs import FIXTURES, FORMAT_OF

HELLO = {"role": "assistant", "content": "Hello."}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "dig", "arguments": '{"cm": 3}'}}
    ],
}


def rows(name):
    frame = import_log(FORMAT_OF[name], FIXTURES / name).frame
    return [
        (row.task, row.segment, round(row.gen_s, 6), round(row.tool_s, 6), row.action)
        for row in frame.itertuples()
    ]


def tokens(name):
    frame = import_log(FORMAT_OF[name], FIXTURES / name).frame
    columns = ["prompt_tokens", "cached_tokens", "completion_tokens"]
    frame = frame.reindex(columns=columns).astype(float)
    return [tuple(None if np.isnan(v) else int(v) for v in row) for row in frame.to_numpy()]


def warnings(name):
    return import_log(FORMAT_OF[name], FIXTURES / name).metadata["warnings"]


@pytest.fixture
def write(tmp_path):
    def write_records(*records, name="log.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    return write_records


def test_otlp_spans_spread_over_lines():
    assert rows("otlp_new.jsonl") == [
        ("a" * 32, 0, 1.5, 1.5, 'find_plant({"name":"fern"})\nfill_can({"litres":2})'),
        ("a" * 32, 0, 0.8, 0, "<respond/>"),
        ("b" * 32, 0, 0.75, 0, "<respond/>"),
    ]
    assert tokens("otlp_new.jsonl") == [(120, 64, 30), (180, None, 4), (None, None, None)]
    assert "embeddings, rerankings and retrievals (no steps): 1 (first in " + "a" * 32 + ")" in (
        warnings("otlp_new.jsonl")
    )


def test_otlp_older_conventions_events_and_outputs_not_captured():
    assert rows("otlp_old.json") == [
        ("c" * 32, 0, 1.5, 0.5, 'prune({"cm":3})'),
        ("c" * 32, 0, 0.5, 0, "<respond/>"),
        ("d" * 32, 0, 1, 0, "<respond/>"),
        ("e" * 32, 0, 1.25, 0.75, 'dig({"depth":1})'),
        ("e" * 32, 0, 0.4, 0, "<respond/>"),
    ]
    assert warnings("otlp_old.json")[1:] == [
        "streamed generations, too short if their spans end at the first token: 1 (first in "
        + "c" * 32 + ")",
        "actions read from the tools that ran, not from the output: 1 (first in " + "e" * 32 + ")",
    ]  # fmt: skip


def test_otlp_one_span_a_record_without_zones():
    assert rows("otlp_records.json") == [
        ("tr-7", 0, 1, 0, "<respond/>"),
        ("tr-7", 1, 2.5, 0, "<respond/>"),
    ]
    assert warnings("otlp_records.json")[1:] == [
        "times without a zone, taken as UTC: 8 (first in otlp_records.json)",
        "generations at the same time as others left out: 2 (first in tr-7)",
    ]


def test_otlp_console_exporter_and_nested_values(write):
    span = {
        "name": "chat larch",
        "context": {"trace_id": "0x1", "span_id": "0x2", "trace_state": "[]"},
        "parent_id": None,
        "start_time": "2026-01-01T00:00:00.000000Z",
        "end_time": "2026-01-01T00:00:02.000000Z",
        "attributes": {
            "gen_ai.operation.name": "chat",
            "gen_ai.output.messages": json.dumps([CALLED]),
        },
    }
    assert import_log("otlp", write(span)).actions.tolist() == ['dig({"cm":3})']
    typed = {
        "key": "gen_ai.output.messages",
        "value": {"arrayValue": {"values": [{"kvlistValue": {"values": [
            {"key": "role", "value": {"stringValue": "assistant"}},
            {"key": "content", "value": {"stringValue": "Hello."}},
        ]}}]}},
    }  # fmt: skip
    kind = {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}
    span = {
        "trace_id": "1",
        "span_id": "2",
        "start_time_unix_nano": "1770000000000000000",
        "end_time_unix_nano": "1770000002000000000",
        "attributes": [typed, kind],
    }
    request = {"resource_spans": [{"scope_spans": [{"spans": [span]}]}]}
    assert import_log("otlp", write(request)).actions.tolist() == ["<respond/>"]


def test_otlp_without_a_generation_is_refused(write):
    span = {"traceId": "t", "spanId": "s", "name": "GET /", "startTimeUnixNano": "1"}
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    message = r"found none; traces without a generation of the agent: 1 \(first in t\)"
    with pytest.raises(DataError, match=message):
        import_log("otlp", write(request))


def test_phoenix_flattened_and_nested_attributes():
    assert rows("phoenix.json") == [
        ("px-1", 0, 1, 0.8, 'find_plant({"name":"fern"})'),
        ("px-1", 0, 0.7, 0, "<respond/>"),
    ]
    assert tokens("phoenix.json") == [(70, 32, 11), (90, None, 5)]


def test_phoenix_data_frame_as_records(write):
    record = {
        "context.trace_id": "t",
        "context.span_id": "s",
        "parent_id": None,
        "span_kind": "LLM",
        "name": "larch",
        "start_time": 1_770_000_000_000,
        "end_time": 1_770_000_001_500,
        "status_code": "OK",
        "attributes.llm.output_messages": [
            {
                "message.role": "assistant",
                "message.tool_calls": [
                    {
                        "tool_call.function.name": "dig",
                        "tool_call.function.arguments": '{"cm": 3}',
                    }
                ],
            }
        ],
        "attributes.llm.token_count.prompt": 12.0,
    }
    trace = import_log("openinference", write(record))
    assert trace.actions.tolist() == ['dig({"cm":3})']
    assert trace.frame["gen_s"].tolist() == [1.5]
    assert trace.frame["prompt_tokens"].tolist() == [12]


def test_langfuse_wrapper_and_untyped_tool():
    assert rows("langfuse.json") == [
        ("lf-1", 0, 0.99, 2, 'sow({"seed":"oat"})'),
        ("lf-1", 0, 0.75, 0, "<respond/>"),
    ]
    assert tokens("langfuse.json") == [(41, 16, 8), (60, None, 4)]


def test_langfuse_observations_one_a_line_and_listed_calls(write):
    record = {
        "id": "o",
        "traceId": "t",
        "type": "GENERATION",
        "parentObservationId": None,
        "startTime": "2026-01-01T00:00:00Z",
        "endTime": "2026-01-01T00:00:01.5Z",
        "toolCalls": [json.dumps({"id": "c", "arguments": '{"cm": 3}'})],
        "toolCallNames": ["dig"],
    }
    trace = import_log("langfuse", write(record, {**record, "traceId": "u", "output": HELLO}))
    assert trace.task_names == ["t", "u"]
    assert trace.actions.tolist() == ['dig({"cm":3})', 'dig({"cm":3})']


def test_langfuse_traces_of_a_session_are_turns(write):
    def turn(number, seconds):
        observation = {
            "id": "o",
            "type": "GENERATION",
            "startTime": f"2026-01-01T00:0{number}:00Z",
            "endTime": f"2026-01-01T00:0{number}:0{seconds}Z",
            "output": HELLO,
        }
        return {
            "id": f"t{number}",
            "projectId": "p",
            "sessionId": "s",
            "observations": [observation],
        }

    trace = import_log("langfuse", write(turn(2, 3), turn(1, 2)))
    assert trace.task_names == ["s"]
    assert trace.frame["segment"].tolist() == [0, 1]
    assert trace.frame["gen_s"].tolist() == [2, 3]
    assert import_log("langfuse", write(turn(1, 2))).task_names == ["t1"]


def test_langsmith_runs():
    assert rows("langsmith.jsonl") == [
        ("ls-1", 0, 1, 0.5, 'pot({"size":2})'),
        ("ls-1", 0, 1.5, 0, "<respond/>"),
    ]
    assert tokens("langsmith.jsonl") == [(30, None, 6), (None, None, None)]
    assert warnings("langsmith.jsonl")[1:] == [
        "times without a zone, taken as UTC: 12 (first in langsmith.jsonl)",
        "generations that take no time left out (cached answers?): 1 (first in ls-1)",
        "failed generations left out: 1 (first in ls-1)",
    ]


def test_langsmith_batches_say_a_run_in_two_pieces(write):
    start = {"id": "r", "trace_id": "r", "run_type": "llm", "start_time": "2026-01-01T00:00:00Z"}
    end = {"id": "r", "trace_id": "r", "end_time": "2026-01-01T00:00:04Z", "outputs": HELLO}
    for records in ([{"post": [start], "patch": [end]}], [{"post": [start]}, {"patch": [end]}]):
        trace = import_log("langsmith", write(*records))
        assert (trace.gen_s.tolist(), trace.actions.tolist()) == ([4], ["<respond/>"])
    child = {**start, **end, "id": "k", "trace_id": None}
    root = {"id": "r", "run_type": "chain", "trace_id": "r", "child_runs": [child]}
    assert import_log("langsmith", write(root)).n_steps == 1


def test_mlflow_both_schemas():
    assert rows("mlflow.jsonl") == [
        ("ml-old", 0, 2, 0, "<respond/>"),
        ("tr-ml", 0, 0.8, 0.6, "rake({})"),
        ("tr-ml", 0, 1.4, 0, "<respond/>"),
    ]
    assert tokens("mlflow.jsonl") == [(None, None, None), (21, None, 7), (None, None, None)]


def test_openai_agents_actions_come_from_functions_and_handoffs():
    assert rows("openai_agents.jsonl") == [
        ("trace_1", 0, 1, 0.1, "transfer_to_rose_expert({})"),
        ("trace_1", 0, 1, 1, 'spray({"ml":5})'),
        ("trace_1", 0, 0.5, 0, "<respond/>"),
    ]


def test_litellm_sessions_and_single_calls():
    assert rows("litellm.jsonl") == [
        ("s-1", 0, 1.5, 0, 'mow({"cm":4})'),
        ("s-1", 0, 0.5, 0, "<respond/>"),
        ("chatcmpl-3", 0, 0.25, 0, None),
    ]
    assert warnings("litellm.jsonl")[:3] == [
        "tool times are unknown (LiteLLM sees only the calls of the model): tool_s is 0",
        "retries inside LiteLLM count in gen_s",
        "embeddings, rerankings and other calls that are no steps: 1 (first in emb)",
    ]


def test_litellm_callback_arguments(write):
    record = {
        "litellm_call_id": "x",
        "call_type": "completion",
        "model": "larch",
        "start_time": "2026-01-01 00:00:00.25",
        "end_time": "2026-01-01 00:00:01",
        "litellm_params": {"metadata": {"session_id": "s"}},
        "response_obj": {"choices": [{"message": CALLED}]},
    }
    trace = import_log("litellm", write(record, {**record, "cache_hit": True}))
    assert trace.task_names == ["s"]
    assert (trace.gen_s.tolist(), trace.actions.tolist()) == ([0.75], ['dig({"cm":3})'])
    assert "answers from LiteLLM's cache left out: 1 (first in s)" in trace.metadata["warnings"]


@pytest.mark.parametrize(
    "name", [name for name in FORMAT_OF if name not in {"openai_agents.jsonl", "langfuse.json"}]
)
def test_contexts_are_the_messages_before_each_step(name, tmp_path):
    contexts = tmp_path / "contexts.jsonl"
    import_log(FORMAT_OF[name], FIXTURES / name, contexts=contexts)
    for line in contexts.read_text().splitlines():
        messages = json.loads(line)["messages"]
        assert messages
        assert all(m["role"] in {"system", "user", "assistant", "tool"} for m in messages)


def test_contexts_of_otlp(tmp_path):
    contexts = tmp_path / "contexts.jsonl"
    import_log("otlp", FIXTURES / "otlp_new.jsonl", contexts=contexts)
    second = json.loads(contexts.read_text().splitlines()[1])
    assert [message["role"] for message in second["messages"]] == [
        "system", "user", "assistant", "tool", "tool",
    ]  # fmt: skip
    assert second["messages"][3] == {"role": "tool", "tool_call_id": "c1", "content": "shelf 3"}


@pytest.mark.parametrize("name", FORMAT_OF)
def test_a_fixture_is_recognised_by_its_own_format_alone(name):
    sample = sample_of(FIXTURES / name)
    known = [n for n, entry in FORMATS.items() if entry.recognises and entry.recognises(sample)]
    assert known == [FORMAT_OF[name]]


BAD_OTLP = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": 3}]}]}]}
BAD = {
    "spanId: expected text, found 3": ("otlp", BAD_OTLP),
    "resourceSpans: expected a list, found an object": ("otlp", {"resourceSpans": {}}),
    r"resourceSpans\[0\]: expected an object, found 1": ("otlp", {"resourceSpans": [1]}),
    "traceId: expected text, found nothing": ("otlp", {"x": 1}),
    "context.trace_id: expected text": ("openinference", {"x": 1}),
    "parent_id: expected text, found 7": (
        "openinference",
        {"context": {"trace_id": "t", "span_id": "s"}, "parent_id": 7},
    ),
    "type: expected text, found nothing": ("langfuse", {"traceId": "t"}),
    r"observations\[0\].endTime: expected a time": (
        "langfuse",
        {"id": "t", "observations": [{"id": "o", "type": "SPAN", "endTime": "soon"}]},
    ),
    "id: expected text, found nothing": ("langsmith", {"run_type": "llm"}),
    r"post\[0\]: expected an object, found 'x'|post\[0\]: .*text 'x'": (
        "langsmith",
        {"post": ["x"]},
    ),
    "start_time: expected a time": ("langsmith", {"id": "r", "start_time": {}}),
    "trace_id: expected text": ("mlflow", {"spans": [{"span_id": "s"}]}),
    "span_data.type: expected text": (
        "openai-agents",
        {"object": "trace.span", "trace_id": "t", "span_data": {}},
    ),
    "startTime: expected the time at which": ("litellm", {"id": "x"}),
    "prompt_tokens: expected a whole number": (
        "litellm",
        {"id": "x", "startTime": 1.0, "endTime": 2.0, "prompt_tokens": "many"},
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_records_are_named_or_their_trace_dropped(message, write):
    name, record = BAD[message]
    good = next(fixture for fixture, format_name in FORMAT_OF.items() if format_name == name)
    path = write(record)
    with pytest.raises(DataError, match=rf"log\.jsonl: line 1, column .*{message}") as caught:
        import_log(name, path)
    assert "\n" not in str(caught.value)
    trace = import_log(name, [path, FIXTURES / good], lenient=True)
    assert trace.frame.equals(import_log(name, FIXTURES / good).frame)
    assert [entry.reason for entry in trace.dropped] == [str(caught.value)]


IMPORTED = {  # tasks, segments, steps, mean and coefficient of variation of gen_s
    "otel/code_review_workflow.json": (1, 6, 6, 2.0, 0.5),
    "otel/customer_support_escalation.json": (1, 7, 7, 2.5714, 0.1925),
    "otel/fan_in_dependencies.json": (1, 2, 2, 2.5, 0.2),
    "otel/parallel_requests.json": (1, 3, 3, 1.8333, 0.1286),
    "otel/simple_chain.json": (1, 3, 3, 2.1667, 0.1088),
    "langfuse/agno-2025-06-11.trace.json": (1, 1, 2, 2.873, 0.6683),
    "langfuse/autogen-2025-06-06.trace.json": (1, 1, 1, 0.628, 0.0),
    "langfuse/claude-agent-2025-12-22.trace.json": (1, 1, 2, 3.616, 0.0324),
    "langfuse/crewai-2025-07-11.trace.json": (1, 1, 1, 3.694, 0.0),
    "langfuse/google-adk-2025-08-28.trace.json": (1, 1, 2, 0.917, 0.0076),
    "langfuse/koog-2025-08-26.trace.json": (1, 1, 2, 2.391, 0.1878),
    "langfuse/langgraph-python-2025-08-22.trace.json": (1, 1, 2, 1.2955, 0.3454),
    "langfuse/openai-agents-2025-09-30.trace.json": (1, 1, 2, 1.093, 0.0522),
    "langfuse/pydantic-ai-tools-2025-06-06.trace.json": (1, 1, 1, 4.794, 0.0),
    "langfuse/vercel-aisdk-2025-11-17.trace.json": (1, 1, 1, 3.043, 0.0),
    "langsmith/langsmith_py_wrap_openai_reasoning.json": (1, 1, 1, 15.1381, 0.0),
}
REFUSED = {
    "otel/test-traces.json": "traces without a generation of the agent: 2",
    "openinference/pxi_turn_trace.json": "found 9 of exactly 1 s each",
}
FORMATS_OF_FOLDERS = {"otel": "otlp"}


class TestRealFiles:
    @pytest.mark.parametrize("name", IMPORTED)
    def test_size_and_times(self, shared_traces, name):
        folder = name.split("/")[0]
        trace = import_log(FORMATS_OF_FOLDERS.get(folder, folder), shared_traces / name)
        mean = trace.gen_s.mean()
        found = (trace.n_tasks, trace.n_segments, trace.n_steps, mean, trace.gen_s.std() / mean)
        assert found == pytest.approx(IMPORTED[name], abs=1e-4)

    @pytest.mark.parametrize("name", REFUSED)
    def test_refusals(self, shared_traces, name):
        folder = name.split("/")[0]
        with pytest.raises(DataError, match=REFUSED[name]):
            import_log(FORMATS_OF_FOLDERS.get(folder, folder), shared_traces / name)

    def test_actions_of_frameworks(self, shared_traces):
        def actions(name):
            trace = import_log("langfuse", next((shared_traces / "langfuse").glob(f"{name}-*")))
            return trace.actions.tolist()

        weather = "mcp__weather__get_weather"
        assert actions("claude-agent") == [
            f'{weather}({{"city":"Berlin"}})\n{weather}({{"city":"New York"}})',
            "<respond/>",
        ]
        assert actions("koog")[0] == 'HelloTool({"name":"Bob"})\nByeTool({"name":"Bob"})'
        assert actions("google-adk") == ["say_hello({})", "<respond/>"]
        assert actions("langgraph")[0] == 'Web-Search({"query":"example"})'
        assert actions("vercel") == ['getWeather({"location":"San Francisco"})']

    def test_no_file_is_recognised_by_two_formats(self, shared_traces):
        ours = {"otel": "otlp", "langfuse": "langfuse", "langsmith": "langsmith",
                "openinference": "openinference"}  # fmt: skip
        for path in sorted(shared_traces.rglob("*")):
            folder = path.relative_to(shared_traces).parts[0]
            if not path.is_file() or folder == "tasks":
                continue
            sample = sample_of(path)
            known = [n for n, e in FORMATS.items() if e.recognises and e.recognises(sample)]
            assert len(known) <= 1, path
            if folder in ours:
                assert known == [ours[folder]], path
            else:
                assert not set(known) & set(FORMAT_OF.values()), path
