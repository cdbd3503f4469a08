"""What the commands that talk to model servers share: options, endpoints, how they are stopped."""

from __future__ import annotations

import asyncio
import functools
import math
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from leapmodel.cli.gathering import gathered
from leapmodel.errors import UsageError, shown
from leapmodel.execution.protocol import require_models
from leapmodel.execution.talking.endpoint import API_KEY_VARIABLE, STALLED_S, Endpoint
from leapmodel.execution.talking.received import decoded, is_whole


@dataclass(frozen=True)
class ServedModel:
    """A model somebody named on the command line.

    Attributes
    ----------
    role : {"target", "draft"}
    url : str or None
        Its server; None is the target's.
    model : str or None
        Its name there; None is the first one served.
    extra : str or None
        More of the request's body, as the text of a JSON object.
    name : str or None
        What a record calls it.
    """

    role: str
    url: str | None
    model: str | None
    extra: str | None
    name: str | None = None

    def __post_init__(self) -> None:
        require_utf_8(f"--{self.role}-model", self.model)
        require_utf_8(f"--{self.role}-name", self.name)

    @property
    def extra_file(self) -> str | None:
        """The file that more of the request's body is read from, if it is one."""
        at, file = (self.extra or "")[:1], (self.extra or "")[1:]
        return file if at == "@" else None

    async def open(
        self, stack: AsyncExitStack, stalled_s: float, beside: ServedModel | None = None
    ) -> Endpoint:
        """Open it, and make sure that the server knows the model.

        Parameters
        ----------
        stack : AsyncExitStack
            Closes it in the end.
        stalled_s : float
            Seconds of silence to bear.
        beside : ServedModel, optional
            Whose server it is on, if it has none of its own.
        """
        url = self.url or (beside.url if beside else None)
        if url is None:
            raise UsageError(f"--{self.role}-url: expected the address of the {self.role}'s server")
        extra = _json_object(f"--{self.role}-extra", self.extra)
        known = Endpoint(url, self.model or "", role=self.role, stalled_s=stalled_s, extra=extra)
        endpoint = await stack.enter_async_context(known)
        served = await endpoint.models()
        if self.model is None:
            if not served:
                raise UsageError(f"{endpoint.name}: serves no model")
            endpoint.model = served[0]
        require_models(served, endpoint.model, endpoint.name)
        return endpoint


def require_utf_8(option: str, given: str | None) -> None:
    """Refuse a word that a record would take, and could not be read with afterwards.

    Raises
    ------
    UsageError
        If the command line held bytes that are no UTF-8.
    """
    if given is not None and not is_whole(given):
        raise UsageError(f"{option}: expected UTF-8, found {shown(given)}")


def _no_nan(context: click.Context, option: click.Parameter, given: float) -> float:
    """Refuse what is no number: it passes every comparison with a bound."""
    if math.isnan(given):
        raise click.BadParameter("nan is not in the range x>0.", context, option)
    return given


stalled_option = click.option(
    "--stalled",
    "stalled_s",
    type=click.FloatRange(min=0, min_open=True),
    default=STALLED_S,
    callback=_no_nan,
    show_default=True,
    metavar="SECONDS",
    help=f"Give up on a server that is silent for so long. API key: ${API_KEY_VARIABLE}.",
)


target_options = gathered(
    "target",
    functools.partial(ServedModel, "target"),
    {"url": "target_url", "model": "target_model", "extra": "target_extra"},
    click.option("--target-url", required=True, metavar="URL", help="The target's server."),
    click.option(
        "--target-model", metavar="NAME", help="Its name there; default: the first one served."
    ),
    click.option(
        "--target-extra",
        metavar="JSON",
        help="More of the target's request body, as a JSON object, or @FILE that holds one.",
    ),
)
draft_options = gathered(
    "draft",
    functools.partial(ServedModel, "draft"),
    {
        "url": "draft_url",
        "model": "draft_model",
        "extra": "draft_extra",
        "name": "draft_name",
    },
    click.option(
        "--draft-url",
        metavar="URL",
        help="The draft's server; default: the target's, if one is named.",
    ),
    click.option(
        "--draft-model",
        metavar="NAME",
        help="The model or adapter that drafts; default: the first one served there.",
    ),
    click.option("--draft-name", metavar="NAME", help="What the record calls the draft."),
    click.option(
        "--draft-extra",
        metavar="JSON",
        help="More of the draft's request body, such as"
        ' \'{"chat_template_kwargs": {"enable_thinking": false}}\', or @FILE.',
    ),
)


def run_to_end(
    work: Coroutine[Any, Any, Any],
    left: Callable[[], str] = lambda: "--resume goes on from the last round",
) -> Any:
    """Run a coroutine; Ctrl-C stops it, and then it is said what is left of it."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        click.echo(f"leapmodel: stopped; {left()}", err=True)
        sys.exit(130)


def _json_object(option: str, text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    where = option
    if text.startswith("@"):
        where = f"{option}: {text[1:]}"
        try:
            text = Path(text[1:]).read_text(encoding="utf-8-sig")
        except OSError as error:
            found = (error.strerror or str(error)).lower()
            raise UsageError(f"{where}: expected a readable file, found {found}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{where}: expected UTF-8 text, found something else") from None
    try:
        value = decoded(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        such = ', such as {"tools": […]}' if isinstance(value, list) else ""
        raise UsageError(f"{where}: expected a JSON object{such}, found {shown(text)}")
    return value
