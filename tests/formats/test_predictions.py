"""The predictions format, its template, and how predictions lie along a trace."""

import operator
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leapmodel.actions import RESPOND
from leapmodel.errors import DataError, LeapModelWarning, UsageError
from leapmodel.files import write_table
from leapmodel.predictions import (
    Predictions,
    predictions_template,
    read_predictions,
    write_predictions,
)
from leapmodel.trace import Trace, read_trace


def message(path, **options) -> str:
    with pytest.raises(DataError) as caught:
        read_predictions(path, **options)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert text.startswith(f"{path}: ")
    return text.removeprefix(f"{path}: ")


def refusal(predictions, trace, **options) -> str:
    with pytest.raises(DataError) as caught:
        predictions.aligned(trace, **options)
    return str(caught.value)


@pytest.fixture
def trace(step):
    """Return two runs of task a (3 and 1 steps) and one of b (2 steps)."""
    keys = [("a", 0, 0), ("a", 0, 1), ("a", 0, 2), ("a", 4, 0), ("b", 0, 0), ("b", 0, 1)]
    return Trace.from_frame(pd.DataFrame([step(task=t, run=r, step=s) for t, r, s in keys]))


# ------------------------------------------------------------------ reading


def test_defaults(jsonl):
    path = jsonl('{"task": "a", "step": 0, "action": "ls( )"}')
    predictions = read_predictions(path)
    record = predictions.frame.iloc[0].to_dict()
    assert np.isnan(record.pop("latency_s"))
    assert record == {
        "task": "a", "run": 0, "step": 0, "draft": "draft", "repeat": 0, "action": "ls({})"
    }  # fmt: skip
    assert predictions.draft_names == ["draft"]


def test_an_empty_draft_cell_is_the_default_draft(jsonl, parquet, prediction):
    records = [prediction(draft=None), prediction(step=1, draft="x")]
    for path in (jsonl(*records), parquet(*records)):
        assert read_predictions(path).draft_names == ["draft", "x"]


def test_actions_are_read_by_value_and_null_is_invalid(jsonl, parquet, prediction):
    written = ['cd( {"b": 1.0, "a": "x"} )', "", "[]", None, "click 3"]
    records = [prediction(step=i, action=a) for i, a in enumerate(written)]
    for path in (jsonl(*records), parquet(*records)):
        assert read_predictions(path).frame["action"].tolist() == [
            'cd({"a":"x","b":1})', RESPOND, RESPOND, None, "click 3",
        ]  # fmt: skip


WRONG = [
    ("latency_s", 0, "expected a number > 0, found 0"),
    ("latency_s", -0.5, "expected a number > 0, found -0.5"),
    ("latency_s", float("nan"), "expected a number > 0, found NaN"),
    ("latency_s", float("inf"), "expected a number > 0, found inf"),
    ("latency_s", "fast", "expected a number > 0, found the text 'fast'"),
    ("step", None, "expected a whole number >= 0, found nothing"),
    ("step", 1.5, "expected a whole number >= 0, found 1.5"),
    ("run", -1, "expected a whole number >= 0, found -1"),
    ("repeat", "one", "expected a whole number >= 0, found the text 'one'"),
    ("draft", 3, "expected text or null, found 3"),
    ("action", ["ls"], "expected text or null, found ['ls']"),
]


@pytest.mark.parametrize(("column", "value", "words"), WRONG)
def test_wrong_cell(jsonl, prediction, column, value, words):
    path = jsonl(prediction(task="good"), prediction(**{column: value}))
    assert message(path) == f"line 2, column {column}: {words}"
    predictions = read_predictions(path, lenient=True)
    assert predictions.frame["task"].tolist() == ["good"]
    assert [(d.task, d.reason) for d in predictions.dropped] == [
        ("a", f"{path}: line 2, column {column}: {words}")
    ]


def test_wrong_cell_in_parquet(parquet, prediction):
    path = parquet(prediction(), prediction(step=1), latency_s=pa.array([0.5, -1.0]))
    assert message(path) == "row 2, column latency_s: expected a number > 0, found -1.0"


@pytest.mark.parametrize("column", ["task", "step", "action"])
def test_missing_column(jsonl, prediction, column):
    record = prediction()
    del record[column]
    words = f"expected the columns task, step, action, found no column {column}"
    assert message(jsonl(record)) == words


def test_a_key_twice(jsonl, prediction):
    path = jsonl(
        prediction(), prediction(draft="x"), prediction(repeat=1), prediction(run=1), prediction()
    )
    assert message(path) == (
        "line 5, column step: expected each (task, run, step, draft, repeat) once, "
        "found a second one"
    )
    assert message(path, lenient=True).startswith("expected at least one good task, found 1 bad")


def test_a_damaged_line(jsonl, prediction):
    path = jsonl(prediction(), prediction(task="b"), b"{", prediction(task="c"))
    assert message(path).startswith("line 3: expected a JSON object")
    predictions = read_predictions(path, lenient=True)
    assert predictions.frame["task"].tolist() == ["a", "c"]
    assert [d.task for d in predictions.dropped] == ["b"]


def test_a_trace_joined_with_predictions_is_predictions(jsonl, step):
    assert read_predictions(jsonl(step(latency_s=0.1))).frame["gen_s"].tolist() == [1.5]
    assert read_predictions(jsonl(step(draft="tiny"))).draft_names == ["tiny"]


# ------------------------------------------------------------------ drafts


def test_choosing_a_draft(prediction):
    one = Predictions.from_frame(pd.DataFrame([prediction(draft="small")]))
    assert one.select() is one
    two = Predictions.from_frame(
        pd.DataFrame([prediction(draft="small"), prediction(draft="tiny", action="cd({})")]),
        source="p.parquet",
    )
    assert two.draft_names == ["small", "tiny"]
    assert two.select("tiny").frame["action"].tolist() == ["cd({})"]
    assert two.select("tiny").draft_names == ["tiny"]
    for draft, words in [
        (None, "p.parquet holds the drafts small, tiny: name one of them (--draft-name)"),
        ("tinny", "p.parquet holds the drafts small, tiny, not 'tinny' (did you mean 'tiny'?)"),
        ("big", "p.parquet holds the drafts small, tiny, not 'big'"),
    ]:
        with pytest.raises(UsageError) as caught:
            two.select(draft)
        assert str(caught.value) == words


# ------------------------------------------------------------------ template


@pytest.mark.parametrize("name", ["p.parquet", "p.jsonl"])
def test_an_unfilled_template_is_refused_and_a_filled_one_read(trace, tmp_path, name):
    path = tmp_path / name
    template = predictions_template(trace)
    assert template.columns.tolist() == ["task", "run", "step", "draft", "action", "latency_s"]
    assert len(template) == trace.n_steps
    write_table(template, path, kind="predictions", metadata={})
    assert message(path) == (
        "column action: expected a predicted action, or its latency_s, in some row, "
        "found none filled in (is this the empty template?)"
    )
    # as a person does it: read with pandas, fill in, write with pandas
    if name.endswith("parquet"):
        filled = pd.read_parquet(path)
    else:
        filled = pd.read_json(path, lines=True).iloc[1:][template.columns]
    filled["action"] = "ls({ })"
    filled["latency_s"] = 0.25
    if name.endswith("parquet"):
        filled.to_parquet(path)
    else:
        filled.to_json(path, lines=True, orient="records")
    aligned = read_predictions(path).aligned(trace)
    assert aligned.has.all()
    assert (aligned.actions == "ls({})").all()
    assert (aligned.latency_s == 0.25).all()


def test_an_unfilled_template_in_memory_is_refused_too(trace):
    with pytest.raises(DataError, match="is this the empty template"):
        Predictions.from_frame(predictions_template(trace))


def test_every_output_invalid_is_an_answer_where_it_took_time(trace):
    template = predictions_template(trace).assign(latency_s=0.2)
    aligned = Predictions.from_frame(template).aligned(trace)
    assert aligned.has.all()
    assert (aligned.actions == None).all()  # noqa: E711


def test_a_half_filled_template_is_said(trace):
    template = predictions_template(trace)
    template.loc[0, ["action", "latency_s"]] = ["ls({})", 0.2]
    half = Predictions.from_frame(template, source="p.jsonl")
    assert half.metadata["warnings"] == [
        "5 of 6 rows have neither action nor latency_s: they count as unknown"
    ]
    assert half.aligned(trace).has.sum() == 1
    # without any times an empty action can only be an invalid output …
    plain = Predictions.from_frame(template.drop(columns="latency_s"))
    assert plain.aligned(trace).has.all()
    # … unless the file says that it began as a template
    told = Predictions.from_frame(template.drop(columns="latency_s"), {"template_for": {}})
    assert told.aligned(trace).has.sum() == 1
    # an invalid output of a timed draft is an empty action with its latency
    template.loc[1, "latency_s"] = 0.2
    assert Predictions.from_frame(template).aligned(trace).has.sum() == 2


def test_a_draft_without_times_beside_a_timed_one_is_judged_by_itself(trace):
    timed = predictions_template(trace).assign(draft="timed", action="ls({})", latency_s=0.1)
    untimed = predictions_template(trace).assign(draft="untimed")
    untimed.loc[0, "action"] = "ls({})"
    both = Predictions.from_frame(pd.concat([timed, untimed], ignore_index=True))
    assert both.aligned(trace, "untimed").has.all()


# ------------------------------------------------------------------ along a trace


def test_alignment(trace):
    rows = [
        ("b", 0, 1, 0, "b1", 0.1), ("a", 4, 0, 0, None, 0.2), ("a", 0, 2, 0, "a2", None),
        ("a", 0, 2, 7, "a2 again", 0.3),
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["task", "run", "step", "repeat", "action", "latency_s"])
    aligned = Predictions.from_frame(frame).aligned(trace)
    assert aligned.actions.tolist() == [
        [None, None, "a2", None, None, "b1"],
        [None, None, "a2 again", None, None, None],
    ]
    assert aligned.has.astype(int).tolist() == [[0, 0, 1, 1, 0, 1], [0, 0, 1, 0, 0, 0]]
    nan = np.nan
    np.testing.assert_equal(
        aligned.latency_s, [[nan, nan, nan, 0.2, nan, 0.1], [nan, nan, 0.3, nan, nan, nan]]
    )
    actions, has, latency_s = aligned
    assert actions.shape == has.shape == latency_s.shape == (2, 6)


@pytest.mark.parametrize(
    "key",
    [("c", 0, 0), ("a", 0, 3), ("a", 4, 1), ("a", 1, 0), ("b", 4, 0), ("b", 9, 0), ("", 0, 0)],
)
def test_a_step_the_trace_lacks(jsonl, prediction, trace, key):
    task, run, step = key
    stray = prediction(task=task, run=run, step=step)
    path = jsonl(
        {"leapmodel": "predictions", "version": 1}, prediction(), stray, stray | {"step": 99}
    )
    predictions = read_predictions(path)
    assert refusal(predictions, trace) == (
        f"{path}: line 3: expected a (task, run, step) of the trace, found {key!r}"
    )
    with pytest.warns(LeapModelWarning) as caught:
        aligned = predictions.aligned(trace, lenient=True)
    assert str(caught[0].message) == (
        f"{path}: ignored 2 of 3 predictions, of steps that the trace does not have"
    )
    assert aligned.has.sum() == 1


def test_the_place_named_is_right_after_choosing_a_draft_and_dropping_tasks(
    jsonl, prediction, trace
):
    path = jsonl(
        prediction(task="bad", latency_s=0),
        prediction(draft="x"),
        prediction(draft="y"),
        prediction(draft="y", task="c"),
    )
    predictions = read_predictions(path, lenient=True)
    assert refusal(predictions, trace, draft="y").startswith(f"{path}: line 4: ")
    assert predictions.aligned(trace, "x").has.sum() == 1


def test_nothing_that_fits_is_an_error_even_in_lenient_use(prediction, trace):
    predictions = Predictions.from_frame(pd.DataFrame([prediction(task="x")]))
    words = "predictions: row 1: expected a (task, run, step) of the trace, found ('x', 0, 0)"
    assert refusal(predictions, trace, lenient=True) == words
    # built by hand, without a table behind it
    assert refusal(Predictions(predictions.frame), trace) == words.replace("row 1: ", "")


def test_tasks_that_the_trace_dropped_are_not_strays(jsonl, step, prediction):
    trace = read_trace(jsonl(step(gen_s=0), step(task="b")), lenient=True)
    predictions = Predictions.from_frame(pd.DataFrame([prediction(), prediction(task="b")]))
    with pytest.warns(LeapModelWarning, match="^predictions: ignored 1 of 2 predictions"):
        assert predictions.aligned(trace).has.tolist() == [[True]]


keys = st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 2))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_alignment_against_a_dictionary(data):
    lengths = data.draw(
        st.dictionaries(
            st.tuples(st.sampled_from("abc"), st.integers(0, 2)), st.integers(1, 3), min_size=1
        )
    )
    rows = [(t, r, s) for (t, r), n in lengths.items() for s in range(n)]
    frame = pd.DataFrame(data.draw(st.permutations(rows)), columns=["task", "run", "step"])
    trace = Trace.from_frame(frame.assign(segment=0, gen_s=1.0, action=None))
    predicted = data.draw(
        st.dictionaries(
            st.tuples(keys, st.integers(0, 2)), st.none() | st.text(max_size=3), min_size=1
        )
    )
    predictions = Predictions.from_frame(
        pd.DataFrame(
            [(*key, repeat, action, 0.5) for (key, repeat), action in predicted.items()],
            columns=["task", "run", "step", "repeat", "action", "latency_s"],
        )
    )
    columns = predictions.frame[["task", "run", "step", "repeat"]]
    rows = columns.itertuples(index=False, name=None)
    found = dict(zip(rows, predictions.frame["action"], strict=True))
    on_trace = list(trace.frame[["task", "run", "step"]].itertuples(index=False, name=None))
    fitting = {key: action for key, action in found.items() if key[:3] in on_trace}
    if not fitting:
        assert refusal(predictions, trace, lenient=True)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeapModelWarning)
        aligned = predictions.aligned(trace, lenient=True)
    # the n-th answer to a step, whatever its repeat is called
    answers = {k: sorted(key for key in fitting if key[:3] == k) for k in on_trace}
    most = range(max(map(len, answers.values())))
    of_step = [[answers[k][n] if n < len(answers[k]) else None for k in on_trace] for n in most]
    expected = [[fitting.get(key) for key in row] for row in of_step]
    assert aligned.actions.tolist() == expected
    assert aligned.has.tolist() == [[key is not None for key in row] for row in of_step]
    assert (np.isnan(aligned.latency_s) == ~aligned.has).all()


# ------------------------------------------------------------------ round trip


@settings(max_examples=40, deadline=None)
@given(data=st.data(), suffix=st.sampled_from([".parquet", ".jsonl"]))
def test_round_trip(tmp_path_factory, data, suffix):
    text = st.text(max_size=4)
    row = st.fixed_dictionaries(
        {
            "task": text,
            "run": st.integers(0, 2**53),
            "step": st.integers(0, 3),
            "draft": text,
            "repeat": st.integers(0, 3),
            "action": st.none() | text,
            "latency_s": st.floats(1e-9, 1e9),
            "note": st.none() | text,
        }
    )
    key = operator.itemgetter("task", "run", "step", "draft", "repeat")
    rows = data.draw(st.lists(row, min_size=1, unique_by=key))
    predictions = Predictions.from_frame(pd.DataFrame(rows), {"source": "mine"})
    path = tmp_path_factory.mktemp("round") / f"p{suffix}"
    write_predictions(predictions, path)
    again = read_predictions(path)

    def plain(frame):
        return [[None if v is None or v != v else v for v in row] for row in frame.to_numpy(object)]

    assert again.frame.columns.tolist() == predictions.frame.columns.tolist()
    assert plain(again.frame) == plain(predictions.frame)
    assert again.metadata == {"source": "mine"}
