"""Values that a text offers for an argument: quoted words, values of named fields, look-alikes."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import NamedTuple

_LONGEST_TEXT = 50_000  # the rest of a longer one is not read: a proposal has to stay cheap
_MOST_WORDS = 200
_MOST_VALUES = 64  # of one kind: the first and the last ones
_QUOTED = re.compile(r"""(?<!\w)(?:"([^"\n]{1,200})"|'([^'\n]{1,200})')(?!\w)""")
_NAMED = re.compile(
    r'"(\w{1,64})"\s{0,4}:\s{0,4}'
    r'("(?:[^"\\\n]|\\.){0,200}"|-?\d{1,20}(?:\.\d{1,20})?|true|false|null)'
)
_WORD = re.compile(r"[^\s,;()\[\]{}<>'\"]{1,200}")
_LETTERS = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,19})")


class SeenText(NamedTuple):
    """The values in a text, as canonical JSON texts, in order of appearance.

    ``alike`` holds them by :func:`mask`, ``named`` by the name of their field, ``words`` the plain
    words for comparing texts.
    """

    quoted: tuple[str, ...]
    named: dict[str, list[str]]
    alike: dict[str, list[str]]
    words: frozenset[str]


def mask(value: str) -> str:
    """Return what kind of text a value is: runs of letters become ``a``, runs of digits ``9``.

    Examples
    --------
    >>> mask('"#W2378156"'), mask('"final_report.pdf"'), mask("42")
    ('"#a9"', '"a_a.a"', '9')
    """
    return _DIGITS.sub("9", _LETTERS.sub("a", value[:200]))


@lru_cache(maxsize=1024)
def read_text(text: str) -> SeenText:
    """Find the values in a text.

    Examples
    --------
    >>> seen = read_text('Move "a.txt" of order #W12, please. {"user_id": "ann_7"}')
    >>> seen.quoted, seen.named, seen.alike['"#a9"']
    (('"a.txt"', '"user_id"', '"ann_7"'), {'user_id': ['"ann_7"']}, ['"#W12"'])
    """
    text = text[:_LONGEST_TEXT]
    quoted = [_fragment(double or single) for double, single in _QUOTED.findall(text)]
    named: dict[str, list[str]] = {}
    for key, value in _NAMED.findall(text):
        named.setdefault(key, []).append(value)
    alike: dict[str, list[str]] = {}
    words = []
    for raw in _WORD.findall(text):
        word = raw.rstrip(".:!?")
        if word.isalpha():
            words.append(word.lower())
        elif word:  # plain words look alike all, so only others are worth a look
            if _NUMBER.fullmatch(word):
                alike.setdefault(mask(word), []).append(word)
            fragment = _fragment(word)
            alike.setdefault(mask(fragment), []).append(fragment)
    return SeenText(
        tuple(_ends(quoted)),
        {key: _ends(values) for key, values in named.items()},
        {key: _ends(values) for key, values in alike.items()},
        frozenset(words[:_MOST_WORDS]),
    )


def _ends(values: list[str]) -> list[str]:
    half = _MOST_VALUES // 2
    return values if len(values) <= _MOST_VALUES else [*values[:half], *values[-half:]]


def _fragment(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
