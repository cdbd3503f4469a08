"""Where a server is: addresses that a person types, checked before anything is asked."""

from __future__ import annotations

import ipaddress
import re

from leapmodel.errors import UsageError, shown

_ADDRESS = re.compile(
    r"https?://(?:\[(?P<numbers>[^\]/]+)\]|(?P<name>[\w.-]+))(?::(?P<port>[0-9]+))?(?:/[^\s?#]*)?",
    re.IGNORECASE,
)


def server_address(url: str, role: str, key_variable: str) -> str:
    """Return a server's address without a slash at its end and without ``/v1``.

    Parameters
    ----------
    url : str
        As it was typed.
    role : str
        Whose server it is, for messages.
    key_variable : str
        The environment variable that an API key is taken from.

    Raises
    ------
    UsageError
        If it is no address, or holds a user or a password.

    Examples
    --------
    >>> server_address("http://127.0.0.1:8000/v1/", "target", "API_KEY")
    'http://127.0.0.1:8000'
    """
    if _is_address(url):
        return url.rstrip("/").removesuffix("/v1").rstrip("/")
    if "@" in url:  # not shown, as what stands before it may be a password
        raise UsageError(
            f"{role}: expected an address without a user or password, found one with an @; a key"
            f" is taken from ${key_variable}"
        )
    raise UsageError(
        f"{role}: expected an address such as http://127.0.0.1:8000, found {shown(url)}"
    )


def _is_address(url: str) -> bool:
    found = _ADDRESS.fullmatch(url) if url.isprintable() else None
    if found is None or not 0 < int(found["port"] or 80) < 65536:
        return False
    try:
        if found["numbers"] is not None:
            ipaddress.IPv6Address(found["numbers"])
        else:
            found["name"].encode("idna")  # as it is looked up: no empty label, none over 63 letters
    except ValueError:
        return False
    return True
