import tomllib
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

from leapmodel.errors import UsageError
from leapmodel.paper import PublishedTable, available, load

CHECKOUT = Path(__file__).resolve().parents[2]
SHARED_TABLES = CHECKOUT.parent / "shared" / "paper" / "tables"
DATA = files("leapmodel.paper") / "data"
STEMS = sorted(f.name.removesuffix(".csv") for f in DATA.iterdir() if f.name.endswith(".csv"))


def test_there_are_22_tables_and_all_are_listed():
    assert len(STEMS) == 22
    assert sorted(available()) == STEMS


@pytest.mark.parametrize("stem", STEMS)
def test_every_table_is_documented_in_every_column(stem):
    table = load(stem)
    header = (DATA / f"{stem}.csv").read_text(encoding="utf-8").splitlines()[0]
    assert list(table.columns) == list(pd.read_csv(DATA / f"{stem}.csv").columns)
    assert len(table.columns) == header.count(",") + 1
    assert all(meaning.strip() for meaning in table.columns.values())
    assert table.caption.endswith((".", ")"))
    assert table.number in table.source
    assert "LEAP" in table.source
    assert "2026" in table.source
    assert "arXiv preprint" in table.source
    assert table.origin == "published"


def test_no_description_without_a_table():
    described = tomllib.loads((DATA / "tables.toml").read_text(encoding="utf-8"))
    assert sorted(described) == STEMS


@pytest.mark.skipif(
    not SHARED_TABLES.is_dir(), reason="no shared/paper/tables beside the checkout to compare with"
)
def test_tables_are_the_shared_ones_byte_for_byte():
    shared = {path.name: path.read_bytes() for path in SHARED_TABLES.glob("*.csv")}
    assert {f"{stem}.csv" for stem in STEMS} == set(shared)
    for name, content in shared.items():
        assert (DATA / name).read_bytes() == content, name


@pytest.mark.parametrize("name", ["table10", "Table 10", "table10_predicted_vs_measured"])
def test_a_table_is_loaded_by_number_or_name(name):
    assert load(name).name == "table10_predicted_vs_measured"


@pytest.mark.parametrize("name", ["table2", "table02", "table02_agreement_se"])
def test_a_leading_zero_does_not_matter(name):
    assert load(name).number == "Table 2"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("tabel10", "table10"),
        ("table10_predicted_vs_mesured", "table10_predicted_vs_measured"),
        ("appendix_h_idle", "appendix_h_idle_time"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(name, near):
    with pytest.raises(UsageError, match=f"no published table '{name}'; did you mean '{near}'"):
        load(name)


def test_a_name_like_no_other_lists_what_there_is():
    with pytest.raises(UsageError, match="there are table02_agreement_se, table03_objective"):
        load("zzz")


def test_a_table_prints_its_provenance():
    table = load("table18")
    text = table.summary()
    assert text.startswith("Table 18: What task length does")
    assert "(published; 12 rows, 8 columns)" in text
    assert "sequential steps of the task: one number, or a range" in text
    assert text.count("note: ") == len(table.notes) == 2
    page = table._repr_html_()
    assert "<b>Table 18</b> (published)" in page
    assert "arXiv preprint" in page
    assert "&gt;=6" in page


def test_a_table_as_plain_values_has_none_for_a_dash():
    rows = load("table10").to_dict()["rows"]
    assert rows[0]["q2"] is None
    assert rows[1]["q2"] == 0.44


def test_changing_a_loaded_table_changes_no_other():
    first: PublishedTable = load("table10")
    first.frame.loc[0, "q1"] = 9.0
    assert load("table10").frame.loc[0, "q1"] == 0.74
