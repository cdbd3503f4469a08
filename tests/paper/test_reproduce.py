import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from click.testing import CliRunner
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from leapmodel.cli import main
from leapmodel.errors import UsageError
from leapmodel.paper.reproduce import ARTEFACTS, find, index, write_all
from leapmodel.paper.written import csv_text

SHIPPED = Path(__file__).resolve().parents[2] / "paper_figs"
FIGURES = [name for name, artefact in ARTEFACTS.items() if artefact.draw]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper_figs")
    write_all(folder)
    return folder


@pytest.fixture(scope="module")
def drawn():
    figures = {}
    for name in FIGURES:
        figures[name] = ARTEFACTS[name].draw()
        FigureCanvasAgg(figures[name]).draw()
    return figures


def test_the_shipped_folder_holds_the_files_that_are_written(made):
    assert {path.name for path in made.iterdir()} == {path.name for path in SHIPPED.iterdir()}


@pytest.mark.parametrize("kind", ["csv", "md"])
def test_the_shipped_numbers_are_the_ones_written_now(made, kind):
    names = sorted(path.name for path in made.glob(f"*.{kind}"))
    assert len(names) > 25
    for name in names:
        shipped = (SHIPPED / name).read_text(encoding="utf-8")
        assert (made / name).read_text(encoding="utf-8") == shipped, name


def test_every_number_has_its_origin_in_the_head_of_its_column(made):
    for artefact in ARTEFACTS.values():
        for table in artefact.parts().values():
            heads = csv_text(table).split("\n", 1)[0].split(",")
            for name, head in zip(table.frame, heads, strict=True):
                if name in table.frame.select_dtypes("number") and name != "k":
                    assert re.search(
                        r"\[(published|recomputed|reconstructed|illustrative)\]$", head
                    ), (artefact.name, head)


def test_all_the_papers_tables_and_figures_are_there_or_named_as_left_out():
    figures = {f"fig{n}" for n in (2, 3, 4, 5, 6, 7, 8)}
    tables = {f"table{n}" for n in [*range(1, 6), *range(7, 15), 16, *range(18, 24)]}
    assert figures | tables <= set(ARTEFACTS)
    page = index()
    for left_out in ("Fig. 1, Table 6", "Tables 15 and 17", "fig5: panel (b)", "fig3: the indep"):
        assert left_out in page
    assert "single batches" in (SHIPPED / "fig8.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FIGURES)
def test_pictures_are_the_same_bytes_each_time_and_carry_no_date(made, name, tmp_path):
    ARTEFACTS[name].write(tmp_path)
    for kind in ("pdf", "png"):
        again = (tmp_path / f"{name}.{kind}").read_bytes()
        assert again == (made / f"{name}.{kind}").read_bytes()
        assert b"CreationDate" not in again


@pytest.mark.parametrize("name", FIGURES)
def test_fonts_are_embedded_as_truetype(made, name):
    pdf = (made / f"{name}.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert b"/CIDFontType2" in pdf or b"/TrueType" in pdf


@pytest.mark.parametrize("name", FIGURES)
def test_no_label_lies_on_another_or_outside_the_picture(drawn, name):
    figure = drawn[name]
    renderer = figure.canvas.get_renderer()
    texts = [
        (text.get_text(), text.get_window_extent(renderer))
        for text in _shown_texts(figure)
        if text.get_text().strip() and text.get_visible()
    ]
    assert len(texts) > 10
    page = figure.bbox
    for words, box in texts:
        assert box.x0 >= page.x0 - 1, words
        assert box.x1 <= page.x1 + 1, words
        assert box.y0 >= page.y0 - 1, words
        assert box.y1 <= page.y1 + 1, words
    for (first, one), (second, other) in combinations(texts, 2):
        assert not one.padded(-1).overlaps(other.padded(-1)), (first, second)


def _shown_texts(figure):
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    for legend in legends:
        yield from legend.get_texts()
        yield legend.get_title()
    for ax in figure.axes:
        yield from (ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts)
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            # ticks past the ends of an axis exist, but are not drawn
            yield from (
                tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high
            )


@pytest.mark.parametrize("name", FIGURES)
def test_pictures_fit_a_column_or_a_page_and_can_be_read(drawn, name):
    figure = drawn[name]
    assert figure.get_figwidth() in (3.35, 6.9)
    assert min(text.get_fontsize() for text in figure.findobj(Text)) >= 6


def test_fig_4_has_21_18_and_18_points_on_equal_scales_with_the_band(drawn):
    axes = drawn["fig4"].axes
    points = [sum(line.get_linestyle() == "None" for line in ax.lines) for ax in axes]
    assert points == [21, 18, 18]
    for ax in axes:
        assert ax.get_xlim() == ax.get_ylim()
        assert ax.get_aspect() == 1
    assert [len(ax.collections) for ax in axes] == [1, 1, 0]  # the band, not in (c)


def test_fig_4_tells_benchmarks_apart_without_colour(drawn):
    for ax in drawn["fig4"].axes:
        points = [line for line in ax.lines if line.get_linestyle() == "None"]
        assert len({line.get_marker() for line in points}) == len(
            {(line.get_marker(), line.get_color()) for line in points}
        )


def test_figures_do_not_touch_the_readers_own_style():
    import matplotlib as mpl

    before = mpl.rcParams["font.size"]
    ARTEFACTS["fig3"].draw()
    assert mpl.rcParams["font.size"] == before


def test_numbers_are_made_without_matplotlib():
    code = (
        "import sys; from leapmodel.paper.reproduce import ARTEFACTS;"
        "[a.parts() for a in ARTEFACTS.values() if not a.draw];"
        "sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_names_may_be_written_as_the_paper_writes_them():
    assert [a.name for a in find(["Table 10", "Figure 4", "eq2"])] == ["table10", "fig4", "eq2"]
    assert len(find(["fig4", "all"])) == len(ARTEFACTS)
    with pytest.raises(UsageError, match="nothing named 'fig9' to reproduce; there are all, fig2"):
        find(["fig9"])


def test_the_command_prints_numbers_or_writes_files(tmp_path):
    printed = CliRunner().invoke(main, ["reproduce", "table10", "reconstruction"])
    assert printed.exit_code == 0
    assert "15 of 21 within 0.05 and 19 within 0.10" in printed.output
    assert "largest error of beta, held out rows: 0.009" in printed.output
    written = CliRunner().invoke(main, ["reproduce", "fig4", "-o", str(tmp_path / "new")])
    assert written.exit_code == 0
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert names == {f"fig4{end}" for end in (".md", ".pdf", ".png", "_a.csv", "_b.csv", "_c.csv")}
    listed = CliRunner().invoke(main, ["reproduce"])
    assert listed.output.count("\n") == len(ARTEFACTS)


@pytest.mark.parametrize("words", [["fig9"], ["table10", "-o", "file"]])
def test_a_wrong_question_is_one_line_and_status_2(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    result = CliRunner().invoke(main, ["reproduce", *words])
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
