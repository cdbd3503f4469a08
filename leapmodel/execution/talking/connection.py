"""HTTP as an endpoint speaks it: whatever goes wrong on the way there and back is one line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from leapmodel.errors import EngineError, shown
from leapmodel.execution.extras import require
from leapmodel.execution.talking.streamed import LONGEST_LINE

if TYPE_CHECKING:
    import aiohttp

_CONNECT_S = 10.0


class Refused(EngineError):
    """A request was answered with another status than 2xx.

    Attributes
    ----------
    status : int
    """

    def __init__(self, said: str, status: int) -> None:
        super().__init__(said)
        self.status = status


class Connection:
    """A session with one server.

    Parameters
    ----------
    url : str
        Its address, as :func:`~leapmodel.execution.talking.address.server_address` returns it.
    name : str
        For messages.
    key : str or None
        The API key.
    stalled_s : float
        Seconds without a byte after which an answer is given up.
    """

    def __init__(self, url: str, name: str, key: str | None, stalled_s: float) -> None:
        self._url = url
        self._name = name
        self._key = key
        self._stalled_s = stalled_s
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Begin; called in the event loop that talks."""
        aiohttp = require("aiohttp", "execution")
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=_CONNECT_S, sock_read=self._stalled_s
            ),
            connector=aiohttp.TCPConnector(limit=0),
            headers={"Authorization": f"Bearer {self._key}"} if self._key else None,
            read_bufsize=LONGEST_LINE // 2,  # a line may be twice as long
        )

    async def close(self) -> None:
        """Close what is open."""
        assert self._session is not None
        await self._session.close()
        self._session = None

    @asynccontextmanager
    async def talking(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and give its response, whose status is 2xx.

        Raises
        ------
        EngineError
            For whatever goes wrong on the way there and back.
        """
        if self._session is None:
            raise EngineError(f"{self._name}: use it as an asynchronous context manager")
        with self._failures_named():
            try:
                response = await self._session.request(method, self._url + path, json=body)
            except ValueError as error:  # the address itself was checked: it comes from elsewhere
                raise EngineError(
                    f"{self._name}: {method} {path} was sent on to what is no address"
                    f" ({_reason(error)})"
                ) from None
            async with response:
                if not 200 <= response.status < 300:
                    said = shown(" ".join((await text_of(response)).split()), 200)
                    raise Refused(
                        f"{self._name}: {method} {path} answered {response.status}: {said}",
                        response.status,
                    )
                yield response

    @contextmanager
    def _failures_named(self) -> Iterator[None]:
        """Turn what goes wrong on a connection into one line."""
        import aiohttp
        from aiohttp.http_exceptions import HttpProcessingError

        try:
            yield
        except aiohttp.ConnectionTimeoutError:
            raise EngineError(
                f"{self._name}: the connection failed (no answer for {_CONNECT_S:g} s)"
            ) from None
        except TimeoutError:
            raise EngineError(
                f"{self._name}: nothing came for {self._stalled_s:g} s: the server has stalled"
            ) from None
        except aiohttp.TooManyRedirects:
            raise EngineError(
                f"{self._name}: the connection failed (redirected too often)"
            ) from None
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            raise EngineError(f"{self._name}: the connection failed ({_reason(error)})") from None


async def text_of(response: aiohttp.ClientResponse) -> str:
    """Return a whole answer. JSON is UTF-8, and the encoding that a header names may be none."""
    return await response.text("utf-8", "replace")


def _reason(error: Exception) -> str:
    """Return what an error says, in one line."""
    said = getattr(error, "message", "") or str(error) or type(error).__name__
    said = said.replace(" ssl:default", "")  # it says so of plain connections too
    return " ".join(said.split())
