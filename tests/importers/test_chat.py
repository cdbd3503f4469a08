import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapmodel.importers.chat import read_said
from leapmodel.importers.told import read_messages

FUNCTION = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"a": 1}'}}
LARCH_CALL = {"role": "assistant", "content": None, "tool_calls": [FUNCTION]}

CALLS = {
    "OpenAI message": LARCH_CALL,
    "OpenAI completion": {"choices": [{"finish_reason": "tool_calls", "message": LARCH_CALL}]},
    "OpenAI completion as text": json.dumps({"choices": [{"message": LARCH_CALL}]}),
    "OpenAI old function": {"role": "assistant", "function_call": FUNCTION["function"]},
    "Responses": {
        "object": "response",
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "web_search_call", "status": "completed"},
            {"type": "function_call", "id": "fc", "call_id": "c1", "name": "ls",
             "arguments": '{"a":1}'},
        ],
    },
    "Anthropic": {
        "type": "message",
        "role": "assistant",
        "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "c1", "name": "ls", "input": {"a": 1}},
        ],
    },
    "Bedrock": {
        "stopReason": "tool_use",
        "output": {
            "message": {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "c1", "name": "ls", "input": {"a": 1}}}],
            }
        },
    },
    "Gemini": {
        "candidates": [
            {"content": {"role": "model",
                         "parts": [{"functionCall": {"name": "ls", "args": {"a": 1}}}]}}
        ]
    },
    "ADK": {
        "content": {"role": "model",
                    "parts": [{"function_call": {"name": "ls", "args": {"a": 1}}}]},
        "finish_reason": "STOP",
    },
    "LangChain message": {"type": "ai", "content": "",
                          "tool_calls": [{"name": "ls", "args": {"a": 1}, "id": "c1"}]},
    "LangChain result": {
        "generations": [
            [{"text": "", "message": {"lc": 1, "type": "constructor",
                                      "id": ["langchain", "AIMessage"],
                                      "kwargs": {"content": "", "tool_calls": [
                                          {"name": "ls", "args": {"a": 1}, "id": "c1"}]}}}]
        ]
    },
    "LangChain extra": {"role": "assistant", "content": "",
                        "additional_kwargs": {"tool_calls": [FUNCTION]}},
    "GenAI conventions": [
        {"role": "assistant", "finish_reason": "tool_call",
         "parts": [{"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"a": 1}}]}
    ],
    "Vercel": [{"toolCallId": "c1", "toolName": "ls", "input": '{"a":1}'}],
    "Koog": [{"role": "assistant", "finish_reason": "tool_calls",
              "content": json.dumps([FUNCTION])}],
    "conversation": {"messages": [{"role": "user", "content": "x"}, LARCH_CALL]},
}  # fmt: skip

REPLIES = {
    "text": "Hi.",
    "OpenAI": {"choices": [{"finish_reason": "stop", "message": {"content": "Hi."}}]},
    "OpenAI text completion": {"choices": [{"text": "Hi.", "finish_reason": "stop"}]},
    "Responses": {"output": [{"type": "message", "role": "assistant",
                              "content": [{"type": "output_text", "text": "Hi."}]}]},
    "Anthropic": {"role": "assistant", "content": [{"type": "text", "text": "Hi."}]},
    "Gemini": {"candidates": [{"content": {"parts": [{"text": "Hi."}]}}]},
    "GenAI conventions": [{"role": "assistant", "parts": [{"type": "text", "content": "Hi."}]}],
    "LangChain": {"generations": [[{"text": "Hi.", "type": "Generation"}]]},
    "choice event": {"index": 0, "message": {"role": "assistant", "content": "Hi."}},
}  # fmt: skip


@pytest.mark.parametrize("shape", CALLS)
def test_calls_of_every_vendor(shape):
    said = read_said(CALLS[shape])
    assert said.action() == 'ls({"a":1})'
    assert not said.is_reply


@pytest.mark.parametrize("shape", REPLIES)
def test_replies_of_every_vendor(shape):
    said = read_said(REPLIES[shape])
    assert (said.text, said.action()) == ("Hi.", "<respond/>")


@pytest.mark.parametrize("value", [None, "", "None", "null", "{}", {}, [], 3, {"choices": []}])
def test_nothing_is_known_of_no_output(value):
    said = read_said(value)
    assert not said.is_known
    assert said.action() is None


def test_an_end_without_its_text_is_still_known():
    assert read_said({"choices": [{"finish_reason": "stop"}]}).action() == "<respond/>"
    lost = read_said({"choices": [{"finish_reason": "tool_calls", "message": {"content": "a"}}]})
    assert lost.action() is None  # it called something, but the log does not say what


def test_a_tool_output_beside_the_call_is_no_part_of_the_action():
    blocks = [
        {"type": "tool_use", "id": "c1", "name": "ls", "input": {"a": 1}},
        {"type": "tool_result", "tool_use_id": "c1", "content": "b.txt"},
    ]
    assert read_said({"role": "assistant", "content": blocks}).action() == 'ls({"a":1})'
    ended_on_a_tool = [{**LARCH_CALL}, {"role": "tool", "tool_call_id": "c1", "content": "b.txt"}]
    assert read_said({"messages": ended_on_a_tool}).action() is None


def test_an_answer_that_is_json_itself_is_text():
    assert read_said('{"answer": 42}').text == '{"answer": 42}'
    assert read_said('{"answer": 42}').action() == "<respond/>"
    assert read_said({"answer": 42}).action() == "<respond/>"


def test_parallel_calls_are_one_action_in_order():
    second = {"name": "cd", "arguments": {}}
    said = read_said({"role": "assistant", "tool_calls": [FUNCTION, second]})
    assert said.action() == 'ls({"a":1})\ncd({})'
    assert [call["id"] for call in said.message()["tool_calls"]] == ["c1", "call_1"]


def test_messages_of_several_vendors_become_one_shape():
    told = read_messages(
        {
            "messages": [
                {"type": "system", "content": "Be kind."},
                {"role": "user", "content": [{"type": "text", "text": "Hi."}]},
                {"role": "assistant",
                 "content": [{"type": "tool_use", "id": "c1", "name": "ls", "input": {}}]},
                {"role": "user",
                 "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "f"}]},
            ]
        }
    )  # fmt: skip
    assert [message["role"] for message in told] == ["system", "user", "assistant", "tool"]
    assert told[1]["content"] == "Hi."
    assert told[2]["tool_calls"][0]["function"] == {"name": "ls", "arguments": "{}"}
    assert told[3] == {"role": "tool", "tool_call_id": "c1", "content": "f"}


def test_messages_of_the_responses_api():
    told = read_messages(
        [
            {"role": "developer", "content": "Be kind."},
            {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "f"},
        ]
    )
    assert [message["role"] for message in told] == ["system", "assistant", "tool"]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "type", "content", "parts", "tool_calls", "function", "name", "text",
                 "choices", "message", "generations", "kwargs", "data", "output", "id", "lc",
                 "arguments", "finish_reason", "messages", "input", "action"]
            ),
            inner | st.sampled_from(["tool", "ai", "function_call", "shell_call", "tool_result"]),
        )
    ),
    max_leaves=12,
)  # fmt: skip


@given(anything)
def test_any_value_is_read_as_something(value):
    said = read_said(value)
    assert said.action() is None or isinstance(said.action(), str)
    assert all(isinstance(message["role"], str) for message in [*read_messages(value)])
    json.dumps(said.message(), allow_nan=True, default=str)
