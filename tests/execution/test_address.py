"""Which addresses are understood, and what is said of the others."""

from __future__ import annotations

import re

import pytest

from leapmodel.errors import UsageError
from leapmodel.execution.talking.address import server_address


def understood(url: str) -> str:
    return server_address(url, "target", "THE_KEY")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000"),
        ("https://a.example/models/x@2/v1", "https://a.example/models/x@2"),
        ("HTTP://vllm_target:80/", "HTTP://vllm_target:80"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://[fe80::1%eth0]", "http://[fe80::1%eth0]"),
        ("http://b\u00fccher.example.", "http://b\u00fccher.example."),
    ],
)
def test_addresses(typed: str, meant: str):
    assert understood(typed) == meant


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "127.0.0.1:8000",
        "ftp://a",
        "http://",
        "http:///v1",
        "http:a",
        "http://[::1",
        "http://[a]",
        "http://a:99999",
        "http://a:0",
        "http://a:abc",
        "http://a:",
        "http://a..b",
        "http://" + "a" * 70,
        "http://a b",
        "http://a<b",
        "http://a\\b",
        "http://a?x=1",
        "http://a#x",
        " http://a",
        "http://a\n",
        "http://a/\udcff",
        "http://\udcff",
    ],
)
def test_what_is_no_address(typed: str):
    said = "target: expected an address such as http://127.0.0.1:8000, found "
    with pytest.raises(UsageError, match=f"^{re.escape(said)}'") as caught:
        understood(typed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "typed",
    [
        "http://u:sekret@a:8000",
        "http://:sekret@a",
        "http://sekret@a",
        "u:sekret@a",
        "http://u:sek/ret@a",
        "http://u:sekret@[::1",
    ],
)
def test_a_password_is_refused_and_not_shown(typed: str):
    with pytest.raises(UsageError, match=r"without a user or password, .*\$THE_KEY$") as caught:
        understood(typed)
    assert "sek" not in str(caught.value)
