import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapmodel.errors import DataError
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.moments import moment

PLACE = Place("log", 3)
MICROSECONDS = 1_770_000_000_123_456


def read(value, ledger=None):
    return moment(value, PLACE, "start", ledger or Ledger())


@pytest.mark.parametrize(
    "value",
    [
        MICROSECONDS,
        MICROSECONDS * 1000,
        str(MICROSECONDS * 1000),
        f"{MICROSECONDS}",
        MICROSECONDS / 1e3,
        MICROSECONDS / 1e6,
        "1770000000.123456",
        "2026-02-02T02:40:00.123456Z",
        "2026-02-02T03:40:00.123456+01:00",
        "2026-02-02 02:40:00.123456789Z",
    ],
)
def test_every_unit_and_zone(value):
    assert read(value) == MICROSECONDS


@pytest.mark.parametrize("value", [None, "", 0, 0.0, "0"])
def test_no_time(value):
    assert read(value) is None


def test_a_time_without_a_zone_is_counted():
    ledger = Ledger()
    assert read("2026-02-02T02:40:00.123456", ledger) == MICROSECONDS
    assert ledger.warnings() == ["times without a zone, taken as UTC: 1 (first in log)"]


@pytest.mark.parametrize(
    "value",
    ["noon", True, False, -1, float("nan"), float("inf"), [], {}, 10**400, "9" * 31, "1e9x"],
)
def test_anything_else_is_refused(value):
    with pytest.raises(DataError, match=r"log: line 3, column start: expected a time .*, found"):
        read(value)


@given(st.integers(10**8, 4 * 10**9), st.integers(0, 999_999))
def test_units_agree(seconds, fraction):
    whole = seconds * 10**6 + fraction
    assert read(whole) == read(whole * 1000) == read(str(whole * 1000)) == whole
    assert abs(read(whole / 1e6) - whole) <= 1
