r"""What a server or a person sent, before anything is made of it: JSON, texts, counts.

A server is somebody else's program. Whatever comes from it goes into a record that has to be read
again, so what no record could hold is found here.
"""

from __future__ import annotations

import json
import re
from typing import Any

from leapmodel.errors import EngineError, shown

MOST_TOKENS = 2**53
"""The largest count that the files hold exactly."""
_DEEPEST = 100
_HALF = re.compile("[\ud800-\udfff]")


def decoded(data: str | bytes) -> Any:
    """Return what JSON says.

    Nesting has a bound of its own: Python's depends on where it is called from, so what one call
    could still read another one could no longer write.

    Raises
    ------
    ValueError
        If it is not JSON, or nested deeper than 100.

    Examples
    --------
    >>> decoded(b'{"success": true}')
    {'success': True}
    """
    try:
        value = json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _openings(data) > _DEEPEST and _is_deep(value):  # the first alone is quick, once a token
        raise ValueError("nested too deeply")
    return value


def whole_text(text: str) -> str:
    r"""Return a text whose surrogate pairs are joined, and whose lone halves are U+FFFD.

    JSON can spell half a pair, and a server that cuts its answer anywhere sends the two halves of
    an emoji one after the other. No UTF-8 file holds a half.

    Examples
    --------
    >>> whole_text("\ud83d" + "\ude00") == "\N{GRINNING FACE}"
    True
    >>> whole_text("a\ud83db") == "a\N{REPLACEMENT CHARACTER}b"
    True
    """
    if is_whole(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_whole(text: str) -> bool:
    """Return whether a text has no half of a surrogate pair.

    Python also makes them of the bytes of a command line that are not UTF-8.
    """
    return _HALF.search(text) is None


def token_count(value: object, where: str) -> int | None:
    """Return a count of tokens as a server gave it, None if it gave none.

    Raises
    ------
    EngineError
        If it is something that no record could hold.
    """
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
        return value
    raise EngineError(f"{where}: expected a count of tokens, found {shown(value)}")


def _openings(data: str | bytes) -> int:
    if isinstance(data, bytes):
        return data.count(b"[") + data.count(b"{")
    return data.count("[") + data.count("{")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for one in level for inner in _parts(one)]
        if not level:
            return False
    return True


def _parts(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
