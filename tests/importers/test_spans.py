"""The agent's chain of decisions in a span tree, whatever the vendor."""

import pytest

from leapmodel.errors import DataError
from leapmodel.importers.chat import Said
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import Call
from leapmodel.importers.span import Span
from leapmodel.importers.spans import SpanLog, import_spans

PLACE = Place("log.json", 1)
REPLY = Said(text="Hi.")


def calls(*names):
    return Said(tuple(Call(name, {}) for name in names))


def span(kind, name, start, end, parent=None, said=None, **more):
    """A span; its id is its name, and its times are seconds."""
    said = said or (calls(name) if kind == "tool" else Said())
    start, end = (None if t is None else round(t * 1e6) for t in (start, end))
    return Span("t", name, parent, kind, name, PLACE, start, end, said, **more)


def runs_of(spans, *, lenient=False, keep_messages=False, **options):
    ledger = Ledger(lenient=lenient, keep_messages=keep_messages)

    def read(log):
        for one in spans:
            log.add(one)
        yield from ()

    return list(import_spans(PLACE.source, ledger, read, **options)), ledger


def steps_of(*spans, **options):
    runs, ledger = runs_of(spans, **options)
    return (runs[0].steps if runs else []), ledger.warnings()


def times(steps):
    return [(step.gen_s, step.tool_s) for step in steps]


def test_generations_tools_and_the_wait_between():
    steps, warnings = steps_of(
        span("agent", "run", 0, 9),
        span("generation", "g1", 1, 2, "run", calls("a", "b")),
        span("tool", "a", 2.5, 4, "run"),
        span("tool", "b", 2.5, 4.5, "run"),
        span("generation", "g2", 5, 6, "run", calls("a")),
        span("tool", "a2", 6, 7, "run"),
        span("generation", "g3", 7, 8.5, "run", REPLY),
    )
    assert times(steps) == [(1, 2), (1, 1), (1.5, 0)]
    assert [step.action for step in steps] == ["a({})\nb({})", "a({})", "<respond/>"]
    assert [step.segment for step in steps] == [0, 0, 0]
    assert steps[0].started_s == 1
    assert warnings == []


def test_a_reply_ends_the_segment_and_its_wait_is_no_tool_time():
    steps, _ = steps_of(
        span("generation", "g1", 0, 1, said=REPLY),
        span("tool", "guard", 1, 1.5),
        span("generation", "g2", 2, 4, said=calls("a")),
        span("generation", "g3", 5, 6, said=REPLY),
    )
    assert [step.segment for step in steps] == [0, 1, 1]
    assert [step.tool_s for step in steps] == [0, 0, 0]


def test_tools_before_the_first_generation_and_past_the_next_do_not_count():
    steps, _ = steps_of(
        span("tool", "setup", 0, 5),
        span("generation", "g1", 6, 7, said=calls("a")),
        span("tool", "a", 7, 20),  # runs on in the background
        span("generation", "g2", 9, 12, said=REPLY),
    )
    assert times(steps) == [(1, 2), (3, 0)]


def test_of_a_wrapper_and_the_call_inside_one_counts():
    inner = span("generation", "inner", 0.1, 0.9, "outer", Said(), completion_tokens=7)
    outer = span("generation", "outer", 0, 1, None, calls("a"), model="larch", prompt_tokens=3)
    steps, _ = steps_of(outer, inner, span("tool", "a", 1, 2))
    assert times(steps) == [(pytest.approx(0.8), 1)]
    assert steps[0].action == "a({})"  # what was said is taken from whichever says more
    assert (steps[0].prompt_tokens, steps[0].completion_tokens) == (None, 7)


def test_a_wrapper_of_several_calls_is_no_step():
    steps, _ = steps_of(
        span("generation", "outer", 0, 9, None, REPLY),
        span("generation", "g1", 1, 2, "outer", calls("a")),
        span("tool", "a", 2, 3, "outer"),
        span("generation", "g2", 3, 5, "outer", REPLY),
    )
    assert times(steps) == [(1, 1), (2, 0)]


def test_three_levels_of_wrappers():
    steps, _ = steps_of(
        span("generation", "w1", 0, 4, None, calls("a")),
        span("other", "chain", 0, 4, "w1"),
        span("generation", "w2", 1, 4, "chain", Said()),
        span("generation", "leaf", 2, 4, "w2", Said()),
    )
    assert [(step.gen_s, step.action) for step in steps] == [(2, "a({})")]


def test_a_tool_inside_the_generation_that_called_it_cuts_its_time():
    steps, warnings = steps_of(
        span("generation", "g1", 0, 3, None, calls("a")),
        span("tool", "a", 1, 2.5, "g1"),
        span("generation", "g2", 3, 5, None, REPLY),
    )
    assert times(steps) == [(1, 1.5), (2, 0)]
    assert "generations that go on past the start of their tools, cut there: 1 (first in t)" in (
        warnings
    )


def test_a_tool_started_while_the_message_streams_costs_only_what_is_waited_for():
    steps, _ = steps_of(
        span("generation", "g1", 0, 3, None, calls("a")),
        span("tool", "a", 2, 3.5),
        span("generation", "g2", 4, 5, None, REPLY),
    )
    assert times(steps) == [(3, 0.5), (1, 0)]


def test_the_generations_of_sub_agents_are_waited_for():
    steps, warnings = steps_of(
        span("agent", "root", 0, 20),
        span("generation", "g1", 0, 1, "root", calls("ask")),
        span("tool", "ask", 1, 4, "root"),
        span("agent", "helper", 1, 4, "ask"),
        span("generation", "h1", 1.5, 3, "helper", REPLY),
        span("generation", "g2", 5, 6.5, "root", calls("x")),
        span("agent", "sub", 7, 9, "root"),  # not under a tool
        span("generation", "s1", 7, 8, "sub", REPLY),
        span("generation", "g3", 10, 12, "root", REPLY),
    )
    assert times(steps) == [(1, 3), (1.5, 2), (2, 0)]
    assert warnings == [
        "generations of sub-agents, parallel agents and guards left out: 2 (first in t)"
    ]


def test_agents_one_after_the_other_are_one_chain():
    steps, _ = steps_of(
        span("agent", "workflow", 0, 9),
        span("agent", "triage", 0, 2, "workflow"),
        span("generation", "g1", 0, 1, "triage", calls("hand_over")),
        span("agent", "expert", 2, 9, "workflow"),
        span("generation", "g2", 2, 4, "expert", REPLY),
    )
    assert times(steps) == [(1, 0), (2, 0)]


def test_agents_at_the_same_time_are_left_out_and_waited_for():
    steps, warnings = steps_of(
        span("generation", "g0", 0, 1, None, calls("spread")),
        span("agent", "left", 1, 6),
        span("generation", "l1", 1, 2, "left", calls("a")),
        span("generation", "l2", 5, 6, "left", REPLY),
        span("agent", "right", 1.5, 5),
        span("generation", "r1", 2.5, 4.5, "right", REPLY),
        span("generation", "g9", 7, 9, None, REPLY),
    )
    assert times(steps) == [(1, 5), (2, 0)]
    assert warnings == [
        "generations of sub-agents, parallel agents and guards left out: 3 (first in t)"
    ]


def test_generations_at_the_same_time_are_left_out_and_waited_for():
    steps, warnings = steps_of(
        span("generation", "g0", 0, 1, None, calls("spread")),
        span("generation", "p1", 2, 4, None, REPLY),
        span("generation", "p2", 3, 5, None, REPLY),
        span("generation", "g9", 6, 8, None, REPLY),
    )
    assert times(steps) == [(1, 3), (2, 0)]
    assert warnings == ["generations at the same time as others left out: 2 (first in t)"]


def test_spans_that_touch_within_the_clocks_slack_follow_one_another():
    steps, _ = steps_of(
        span("generation", "g0", 0, 1.004, None, calls("a")),
        span("generation", "g1", 1, 3, None, REPLY),
    )
    assert [step.gen_s for step in steps] == [1.004, 2]


def test_a_generation_logged_past_its_tools_and_the_next_one_is_cut_at_the_tool():
    steps, warnings = steps_of(
        span("generation", "g1", 0, 8, None, calls("a")),
        span("tool", "a", 2, 3),
        span("generation", "g2", 4, 7, None, REPLY),
    )
    assert times(steps) == [(2, 1), (3, 0)]
    assert warnings == [
        "generations that go on past the start of their tools, cut there: 1 (first in t)"
    ]


def test_the_parts_of_one_message_are_joined():
    turn = "claude.assistant.turn"
    parts = [
        span("generation", "p1", 0, 2, None, Said(text="I look."), completion_tokens=4),
        span("generation", "p2", 2, 2.5, None, calls("a"), completion_tokens=5),
        span("generation", "p3", 2.5, 9, None, calls("b"), completion_tokens=6),
        span("generation", "p4", 4, 8, None, REPLY),
    ]
    for part in parts:
        part.name = turn
    steps, _ = steps_of(*parts, span("tool", "a", 3, 3.5), span("tool", "b", 3, 3.75))
    assert times(steps) == [(3, 0.75), (4, 0)]
    assert steps[0].action == "a({})\nb({})"
    assert steps[0].completion_tokens == 15


def test_failed_instant_and_unfinished_generations_are_left_out_and_counted():
    steps, warnings = steps_of(
        span("generation", "g1", 0, 1, None, calls("a")),
        span("generation", "g2", 2, 2.5, None, Said(), failed=True),
        span("generation", "g3", 3, 3, None, REPLY),
        span("generation", "g4", 4, None, None, REPLY),
        span("tool", "a", 4, None),
        span("generation", "g5", 5, 7, None, REPLY),
    )
    assert [step.gen_s for step in steps] == [1, 2]
    assert warnings == [
        "failed generations left out: 1 (first in t)",
        "generations that take no time left out (cached answers?): 1 (first in t)",
        "generations without a start or an end left out: 1 (first in t)",
        "tool runs without an end (no tool time): 1 (first in t)",
    ]


def test_what_a_guard_generates_is_no_step_and_no_wait():
    steps, warnings = steps_of(
        span("guard", "safe?", 0, 3),
        span("generation", "judge", 0.5, 3, "safe?", REPLY),
        span("generation", "g1", 0, 2, None, calls("a")),
        span("generation", "g2", 4, 5, None, REPLY),
    )
    assert times(steps) == [(2, 0), (1, 0)]
    assert warnings == [
        "generations of sub-agents, parallel agents and guards left out: 1 (first in t)"
    ]


def test_embeddings_and_chains_are_no_steps():
    steps, _ = steps_of(span("other", "embed", 0, 1), span("generation", "g", 1, 2, None, REPLY))
    assert len(steps) == 1


def test_a_span_named_like_a_called_tool_is_its_run():
    steps, _ = steps_of(
        span("generation", "g1", 0, 1, None, calls("dig", "sow")),
        span("other", "tool.dig", 1, 2),
        span("other", "sow", 1, 3),
        span("generation", "inner", 1.5, 2.5, "sow", REPLY),
        span("generation", "g2", 3, 5, None, REPLY),
    )
    assert times(steps) == [(1, 2), (2, 0)]


def test_actions_are_read_from_the_tools_where_outputs_are_not_logged():
    spans = [
        span("generation", "g1", 0, 1),
        span("tool", "dig", 1, 2),
        span("tool", "sow", 1.5, 2),
        span("generation", "g2", 3, 5),
    ]
    steps, warnings = steps_of(*spans)
    assert [step.action for step in steps] == ["dig({})\nsow({})", None]
    assert warnings == [
        "actions read from the tools that ran, not from the output: 1 (first in t)",
        "outputs not logged or not readable (null actions): 1 (first in t)",
    ]
    steps, _ = steps_of(*spans, silence_is_reply=True)
    assert [step.action for step in steps] == ["dig({})\nsow({})", "<respond/>"]
    spans[1].said = Said()  # which arguments it had is not known
    steps, _ = steps_of(*spans)
    assert [step.action for step in steps] == [None, None]


def test_a_text_before_a_tool_runs_is_no_reply():
    steps, _ = steps_of(
        span("generation", "g1", 0, 1, None, Said(text="Action: dig")),
        span("tool", "dig", 1, 2),
        span("generation", "g2", 3, 5, None, Said(text="Done.")),
    )
    assert [(step.action, step.segment) for step in steps] == [("dig({})", 0), ("<respond/>", 0)]


def test_a_clock_that_goes_backwards_drops_the_trace():
    bad = span("generation", "g", 5, 4.5, None, REPLY)
    with pytest.raises(
        DataError, match=r"line 1, column end: .*not before .*, found 0.5 s earlier"
    ):
        steps_of(bad)
    good = span("generation", "g", 0, 1, None, REPLY)
    good.trace = "u"
    runs, ledger = runs_of([bad, good], lenient=True)
    assert [run.task for run in runs] == ["u"]
    assert [entry.task for entry in ledger.dropped] == ["t"]
    with pytest.raises(DataError, match="column end: "):
        steps_of(span("generation", "g", 0, 1, None, calls("a")), span("tool", "a", 3, 2))


def test_a_circle_of_parents_is_refused():
    with pytest.raises(DataError, match="column parent: expected a span that is not its own anc"):
        steps_of(span("agent", "a", 0, 1, "b"), span("agent", "b", 0, 1, "a"))


def test_a_very_deep_tree_is_read():
    chain = [span("other", f"c{i}", 0, 9, f"c{i - 1}") for i in range(1, 5000)]
    steps, _ = steps_of(span("generation", "g", 0, 1, "c4999", REPLY), *chain)
    assert len(steps) == 1


def test_a_span_sent_twice_counts_once():
    steps, warnings = steps_of(
        span("generation", "g", 0, None, None, REPLY),
        span("generation", "g", 0, 1, None, REPLY),
        span("generation", "g", 0, 1, None, REPLY),
    )
    assert len(steps) == 1
    assert warnings == ["repeated spans left out: 2 (first in t)"]


def test_equal_times_are_placeholders():
    spans = [span("generation", f"g{i}", 2 * i, 2 * i + 1, None, REPLY) for i in range(3)]
    with pytest.raises(DataError, match=r"expected generations whose times differ, found 3 of ex"):
        steps_of(*spans)
    steps, _ = steps_of(*spans[:2])  # two may happen to be equal
    assert len(steps) == 2


def test_no_time_at_all_is_a_placeholder():
    spans = [span("generation", f"g{i}", i, i, None, REPLY) for i in range(3)]
    with pytest.raises(DataError, match=r"generations that take time, found 3 that end at the mo"):
        steps_of(*spans)


def test_traces_of_a_session_are_the_turns_of_one_task():
    spans = []
    for number, start in enumerate([20, 0, 10]):
        for name, at, said in (("g", 0, calls("a")), ("h", 2, REPLY)):
            one = span("generation", name, start + at, start + at + 1 + number / 10, None, said)
            one.trace, one.session = f"turn{number}", "chat"
            spans.append(one)
    spans.append(span("generation", "g", 0, 1.75, None, REPLY, session="other"))
    runs, ledger = runs_of(spans)
    assert [run.task for run in runs] == ["chat", "t"]
    assert [step.segment for step in runs[0].steps] == [0, 0, 1, 1, 2, 2]
    assert [step.started_s for step in runs[0].steps] == [0, 2, 10, 12, 20, 22]
    assert ledger.warnings() == []


def test_traces_of_a_session_that_overlap_are_counted():
    first, second = (span("generation", "g", t, t + 2 + t / 10, None, REPLY) for t in (0, 1))
    first.trace, first.session, second.session = "u", "chat", "chat"
    _, ledger = runs_of([first, second])
    assert ledger.warnings() == [
        "traces of a session that begin before the one before ends: 1 (first in chat)"
    ]


def test_messages_are_what_entered_the_context_since_the_step_before():
    told = [{"role": "user", "content": "Dig."}]
    answer = {"role": "tool", "tool_call_id": "c", "content": "dug"}
    first = span("generation", "g1", 0, 1, None, calls("dig"), messages=told)
    said = first.said.message()
    second = span("generation", "g2", 2, 4, None, REPLY, messages=[*told, said, answer])
    runs, _ = runs_of([first, second], keep_messages=True)
    before, after = runs[0].steps
    assert (before.before, after.before) == (told, [answer])
    assert before.said == said
    assert after.said == {"role": "assistant", "content": "Hi."}


def test_texts_are_not_kept_unless_asked_for():
    log = SpanLog(PLACE.source, Ledger())
    one = span("generation", "g", 0, 1, None, REPLY)
    log.add(one)
    assert one.said.text == ""
    assert one.said.is_reply
