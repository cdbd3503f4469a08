import json
import shutil

import pytest

from leapmodel.errors import DataError, UsageError
from leapmodel.importers import FORMATS, import_log, importer
from leapmodel.importers.assembly import find_files
from leapmodel.importers.fields import Place


def task_line(task, seconds=1.0):
    return json.dumps({"id": task, "result": [[[]]], "latency": [[seconds]]}) + "\n"


@pytest.fixture
def write(tmp_path):
    def write_file(name, text):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_file


def test_a_format_is_found_by_its_name():
    assert importer("bfcl") is FORMATS["bfcl"]
    assert importer("Claude_Code") is FORMATS["claude-code"]


@pytest.mark.parametrize(("typed", "near"), [("bfc", "bfcl"), ("claude", "claude-code")])
def test_an_unknown_format_names_the_nearest_and_all(typed, near):
    with pytest.raises(UsageError, match=rf"did you mean {near}\? Known: bfcl, claude-code"):
        importer(typed)


def test_an_unknown_format_without_a_near_one():
    with pytest.raises(UsageError, match=r"^unknown format 'zzz'; Known: bfcl"):
        importer("zzz")


def test_options_belong_to_a_format(result_file):
    with pytest.raises(UsageError, match=r"bfcl takes no option 'drop_tools' \(its options: none"):
        import_log("bfcl", result_file, drop_tools=("ls",))
    assert import_log("bfcl", result_file, drop_tools=()).n_tasks == 3  # not given after all


def test_nothing_to_import():
    with pytest.raises(UsageError, match="at least one file"):
        import_log("bfcl", [])


def test_missing_paths_and_empty_folders(tmp_path):
    with pytest.raises(DataError, match="expected a file or a folder, found nothing there"):
        import_log("bfcl", tmp_path / "absent.json", lenient=True)
    with pytest.raises(DataError, match=r"expected files ending in \.jsonl, found none"):
        import_log("claude-code", tmp_path)


def test_a_folder_is_read_in_natural_order(tmp_path):
    for name in ["task_10.jsonl", "task_9.jsonl", "task_1.jsonl", "task_01.jsonl", "a.txt"]:
        (tmp_path / name).touch()
    (tmp_path / "task_3.jsonl").mkdir()
    names = [path.name for path in find_files([tmp_path], (".jsonl",))]
    assert names == ["task_01.jsonl", "task_1.jsonl", "task_9.jsonl", "task_10.jsonl"]


def test_a_file_given_twice_is_refused(write, tmp_path):
    path = write("a.json", task_line("t"))
    with pytest.raises(DataError, match="expected each file once, found it twice"):
        import_log("bfcl", [path, tmp_path])


def test_a_task_twice_in_a_file_is_an_error_that_says_where_the_first_was(write):
    path = write("a.json", task_line("t") + task_line("s") + task_line("t"))
    with pytest.raises(DataError) as caught:
        import_log("bfcl", path)
    assert str(caught.value) == (
        f"{path}: line 3, column id: expected each task once, found 't' again (first at line 1)"
    )
    trace = import_log("bfcl", path, lenient=True)
    assert trace.task_names == ["t", "s"]
    assert [entry.task for entry in trace.dropped] == ["t"]


def test_a_task_in_a_later_file_is_its_next_run(write):
    failed = json.dumps({"id": "t", "result": "Error during inference: x"}) + "\n"
    paths = [
        write("a.json", task_line("t", 1.0) + task_line("s", 1.5)),
        write("b.json", failed + task_line("s", 2.5) + task_line("only here", 2.0)),
        write("c.json", task_line("t", 3.0) + task_line("s", 3.5)),
    ]
    frame = import_log("bfcl", paths).frame
    runs = {(row.task, row.run): row.gen_s for row in frame.itertuples()}
    # the failed run keeps its number, so that run 2 is the third file's for s and t alike
    assert runs == {
        ("t", 0): 1.0,
        ("t", 2): 3.0,
        ("s", 0): 1.5,
        ("s", 1): 2.5,
        ("s", 2): 3.5,
        ("only here", 0): 2.0,
    }


def test_half_a_character_is_refused():
    with pytest.raises(DataError, match=r"line 3, column id: expected text of whole characters"):
        Place("log", 3).text("\ud800", "id")


def test_metadata_holds_no_folder(result_file, tmp_path):
    shutil.copy(result_file, tmp_path)
    trace = import_log("bfcl", tmp_path)
    assert trace.metadata["source"] == [result_file.name]
    assert str(tmp_path) not in json.dumps(trace.metadata)


def test_progress_counts_tasks_and_files(result_file, write):
    calls = []
    paths = [result_file, write("other.json", task_line("t"))]
    import_log("bfcl", paths, progress=lambda *counts: calls.append(counts))
    assert calls == [(1, 0, 2), (2, 0, 2), (3, 0, 2), (3, 1, 2), (4, 1, 2), (4, 2, 2)]


def test_files_of_two_models_are_remarked(write):
    paths = [
        write("x_multi_turn_base_result.json", task_line("t")),
        write("y_multi_turn_base_result.json", task_line("t")),
    ]
    metadata = import_log("bfcl", paths).metadata
    assert "target_model" not in metadata
    assert "more than one target model: x, y" in metadata["warnings"]
