"""The committed notebooks were run, and are thin; ``make check-notebooks`` runs them again."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def code_cells(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_they_stand_in_a_readers_order():
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{number:02d}" for number in range(1, 9)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_was_run_once_from_a_clean_kernel_without_error(path):
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert outputs
    assert {output["output_type"] for output in outputs} <= {
        "display_data",
        "execute_result",
        "stream",
    }
    assert all(output.get("name") != "stderr" for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_are_thin(path):
    for cell in code_cells(path):
        # the one long cell is a made-up log
        limit = 24 if "big_model_result" in "".join(cell["source"]) else 14
        assert "".join(cell["source"]).count("\n") < limit


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_show_pictures_or_tables_and_name_no_place_on_the_machine(path):
    text = path.read_text(encoding="utf-8")
    assert "image/png" in text or "text/html" in text
    for place in ("/tmp/", "/home/", "/root/", str(FOLDER)):
        assert place not in text


def test_what_is_made_up_is_said_at_the_top():
    for path in NOTEBOOKS[:5]:
        top = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        assert any(word in top for word in ("reconstruct", "published", "origin"))
