import json

import pytest

from leapmodel.actions import RESPOND
from leapmodel.errors import DataError, UsageError
from leapmodel.importers import import_log


def at(second):
    return f"2026-02-03T10:00:{second:06.3f}Z"


def user(second, content="Please.", **more):
    return {"type": "user", "timestamp": at(second), "message": {"content": content}, **more}


def result(second, call):
    return user(second, [{"type": "tool_result", "tool_use_id": call, "content": "ok"}])


def assistant(second, identity, *blocks, **more):
    message = {"id": identity, "content": list(blocks), "stop_reason": "tool_use"}
    return {"type": "assistant", "timestamp": at(second), "message": message, **more}


def call(identity, name="ls"):
    return {"type": "tool_use", "id": identity, "name": name, "input": {}}


TEXT = {"type": "text", "text": "Done."}
THINKING = {"type": "thinking", "thinking": "hm"}


@pytest.fixture
def session(tmp_path):
    def import_records(*records, **options):
        path = tmp_path / "chat.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return import_log("claude-code", path, **options)

    return import_records


def test_blocks_of_a_message_are_one_step(sessions):
    frame = import_log("claude-code", sessions / "errand_2.jsonl").frame
    assert frame["task"].unique().tolist() == ["errand_2"]
    assert frame["action"].tolist() == [
        'fill_can({"litres":2})\nread_meter({})',
        'ToolSearch({"query":"pour"})',
        'ToolSearch({"query":"x"})\npour({"plant":"fern"})',
        RESPOND,
        RESPOND,
    ]
    assert frame["segment"].tolist() == [0, 0, 0, 0, 1]
    # last record of the message minus the latest user record before its first
    assert frame["gen_s"].tolist() == [3.0, 1.5, 2.0, 2.0, 1.0]
    # from the message's last record to its last result, in order of time
    assert frame["tool_s"].tolist() == [0.5, 0.5, 2.0, 0.0, 0.0]
    assert frame["started_s"].tolist() == [1770112800 + s for s in (0, 3.5, 5.5, 9.5, 21)]
    assert frame["prompt_tokens"].tolist() == [330] * 5
    assert frame["cached_tokens"].tolist() == [300] * 5


def test_only_the_final_count_of_completion_tokens_is_taken(sessions):
    trace = import_log("claude-code", sessions / "errand_2.jsonl")
    tokens = trace.frame["completion_tokens"]
    assert tokens.isna().tolist() == [False, False, False, True, False]
    assert tokens.dropna().tolist() == [77, 5, 8, 9]
    expected = "messages without a final count of completion tokens: 1 (first in errand_2)"
    assert expected in trace.metadata["warnings"]


def test_sidechains_are_not_the_agents_own_steps(sessions):
    warnings = import_log("claude-code", sessions / "errand_2.jsonl").metadata["warnings"]
    assert "records of sub-agents left out: 2 (first in errand_2)" in warnings


@pytest.mark.parametrize("tools", [("ToolSearch",), "Tool*", ["x", "ToolSearch"]])
def test_noisy_tools_can_be_left_out(sessions, tools):
    trace = import_log("claude-code", sessions / "errand_2.jsonl", drop_tools=tools)
    assert trace.frame["action"].tolist() == [
        'fill_can({"litres":2})\nread_meter({})',
        'pour({"plant":"fern"})',  # mixed: only the call is left out
        RESPOND,
        RESPOND,
    ]
    assert trace.frame["step"].tolist() == [0, 1, 2, 3]
    assert trace.frame["gen_s"].tolist() == [3.0, 2.0, 2.0, 1.0]
    assert any("left out: 2 (first" in line for line in trace.metadata["warnings"])


@pytest.mark.parametrize("tools", [3, ["a", 3], [""]])
def test_drop_tools_must_be_names(sessions, tools):
    with pytest.raises(UsageError, match="drop_tools: expected names of tools"):
        import_log("claude-code", sessions, drop_tools=tools)


def test_interruptions_errors_and_refusals(sessions):
    trace = import_log("claude-code", sessions / "errand_10.jsonl")
    frame = trace.frame
    assert [None if a != a else a for a in frame["action"]] == [
        "buy_stamp({})",
        'Task({"prompt":"x"})',
        None,
    ]
    assert frame["segment"].tolist() == [0, 1, 1]
    assert frame["gen_s"].tolist() == [1.5, 1.0, 1.0]  # a compact summary restarts the clock
    assert frame["tool_s"].tolist() == [0.0, 8.5, 0.0]  # a refused call runs no tool
    assert trace.metadata["warnings"][1:] == [
        "calls a person refused (no tool time): 1 (first in errand_10)",
        "failed requests whose retries count in gen_s: 1 (first in errand_10)",
        "messages made up by Claude Code left out: 1 (first in errand_10)",
        "messages interrupted by the user left out: 1 (first in errand_10)",
        "calls of a sub-agent, whose whole run is tool time: 1 (first in errand_10)",
        "messages with no reply or readable call (null actions): 1 (first in errand_10)",
        "calls without a result: 1 (first in errand_10)",
    ]


def test_a_folder_is_one_task_a_file(sessions):
    trace = import_log("claude-code", sessions)
    assert trace.task_names == ["errand_2", "errand_10"]
    assert trace.metadata["target_model"] == "birch-1"
    assert trace.metadata["source"] == ["errand_2.jsonl", "errand_10.jsonl"]


def test_a_message_with_nothing_before_it_is_left_out(session):
    trace = session(assistant(1, "m1", call("c1")), result(2, "c1"), assistant(3, "m2", TEXT))
    assert trace.frame["gen_s"].tolist() == [1.0]
    assert (
        "messages with nothing before them left out: 1 (first in chat)"
        in (trace.metadata["warnings"])
    )


def test_two_messages_in_a_row_share_no_time(session):
    trace = session(user(0), assistant(2, "m1", THINKING), assistant(5, "m2", TEXT))
    assert trace.frame["gen_s"].tolist() == [2.0, 3.0]
    assert trace.frame["segment"].tolist() == [0, 0]


def test_repeated_records_count_once(session):
    records = [user(0, uuid="a"), assistant(1, "m1", TEXT, uuid="b")]
    trace = session(*records, *records, user(5, uuid="c"), assistant(6, "m2", TEXT, uuid="d"))
    assert trace.frame["gen_s"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("second", [4, 5])
def test_a_clock_that_goes_backwards_is_refused(session, second):
    with pytest.raises(DataError, match=r"line 2, column timestamp: expected a time after"):
        session(user(5), assistant(second, "m1", TEXT))


def test_scattered_records_of_a_message_are_refused(session):
    records = [assistant(1, "m1", TEXT), assistant(2, "m2", TEXT), assistant(3, "m1", TEXT)]
    with pytest.raises(DataError, match=r"line 4, column message.id: .*'m1' again"):
        session(user(0), *records)


BAD = {
    "type: expected text, found nothing": {},
    "type: expected text, found 3": {"type": 3},
    "timestamp: expected a time such as .*, found nothing": {"type": "user"},
    "timestamp: expected a time such as .*, found the text 'noon'": user(1) | {"timestamp": "noon"},
    "timestamp: .* with its zone": user(1) | {"timestamp": "2026-02-03T10:00:00"},
    "message: expected an object, found nothing": {"type": "user", "timestamp": at(1)},
    "message: expected an object, found the text": assistant(1, "m") | {"message": "hi"},
    "message.content: expected a list, found nothing": user(1, None),
    r"message.content\[0\]: expected an object, found 1": user(1, [1]),
    "message.id: expected text, found nothing": assistant(1, None, TEXT),
    r"message.content\[0\]: expected an object, found the text": assistant(1, "m", "x"),
    r"message.content\[0\].id: expected text": assistant(1, "m", call(None)),
    r"message.content\[1\].name: expected text": assistant(1, "m", TEXT, call("c", "")),
    "message.usage: expected an object": {
        "type": "assistant",
        "timestamp": at(1),
        "message": {"id": "m", "content": [], "usage": []},
    },
    "message.usage.output_tokens: expected a whole number": {
        "type": "assistant",
        "timestamp": at(1),
        "message": {"id": "m", "content": [], "usage": {"output_tokens": -1}},
    },
}


@pytest.mark.parametrize("message", BAD)
def test_bad_records_are_named_or_their_session_dropped(message, tmp_path, sessions):
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps(user(0)) + "\n" + json.dumps(BAD[message]) + "\n")
    with pytest.raises(DataError, match=rf"chat\.jsonl: line 2, column {message}") as caught:
        import_log("claude-code", path)
    assert "\n" not in str(caught.value)
    trace = import_log("claude-code", [path, sessions], lenient=True)
    assert trace.task_names == ["errand_2", "errand_10"]
    assert [(e.task, e.reason) for e in trace.dropped] == [("chat", str(caught.value))]


def test_dropped_sessions_are_not_counted_in_warnings(tmp_path, sessions):
    path = tmp_path / "chat.jsonl"
    records = [user(0), {"type": "assistant", "isApiErrorMessage": True, "message": {}}, {}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    trace = import_log("claude-code", [path, sessions / "errand_2.jsonl"], lenient=True)
    assert not any("made up" in line for line in trace.metadata["warnings"])


@pytest.mark.parametrize("content", [b"", b"\n\n", b"PAR1\0\0", b"\xff\n", b'{"type": "us'])
@pytest.mark.parametrize("lenient", [False, True])
def test_damaged_files_are_refused(tmp_path, content, lenient):
    path = tmp_path / "chat.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"chat\.jsonl: "):
        import_log("claude-code", path, lenient=lenient)


def test_a_log_without_a_step_is_refused(session):
    with pytest.raises(DataError, match=r"found none; files without a step .* \(first in chat"):
        session({"type": "summary", "summary": "x"}, user(0))


class TestRealSessions:
    @pytest.mark.parametrize(
        ("model", "tools", "steps", "mean", "cv", "tool_share"),
        [
            ("haiku", (), 227, 5.3405, 0.8054, 0.0025),
            ("haiku", ("ToolSearch",), 227, 5.3405, 0.8054, 0.0025),
            ("sonnet", (), 314, 7.1476, 0.6933, 0.0406),
            ("sonnet", ("ToolSearch",), 240, 6.6415, 0.5570, 0.0569),
        ],
    )
    def test_size_and_times(self, shared_traces, model, tools, steps, mean, cv, tool_share):
        folder = shared_traces / "claude_code" / f"{model}_run_complete_dataset"
        trace = import_log("claude-code", folder, drop_tools=tools)
        assert (trace.n_tasks, trace.n_segments, trace.n_steps) == (45, 45, steps)
        assert trace.gen_s.mean() == pytest.approx(mean, abs=1e-4)
        assert trace.gen_s.std() / trace.gen_s.mean() == pytest.approx(cv, abs=1e-4)
        assert trace.tool_s.sum() / trace.gen_s.sum() == pytest.approx(tool_share, abs=1e-4)
        assert set(trace.frame["kind"]) == {"tool", "respond"}
