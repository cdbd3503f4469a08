"""Actions for reconstructed traces: names in each benchmark's style, drawn at random.

The paper prints no trajectory. These only make a trace look like one and end where it must; nothing
can be learned from which action stands where.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from leapmodel.actions import RESPOND, TERMINATE, canonical_call
from leapmodel.paper.layout import Layout
from leapmodel.paper.shuffling import shuffled

OPENAGI_TOOLS = (
    "image_denoising",
    "image_deblurring",
    "image_super_resolution",
    "image_colorization",
    "image_inpainting",
    "object_detection",
    "image_classification",
    "image_captioning",
    "visual_question_answering",
    "text_question_answering",
    "text_summarization",
    "sentiment_analysis",
    "machine_translation",
    "text_to_image",
)
"""In the order a plan would use them."""

_TASKBENCH_TOOLS = {
    "book_restaurant": "place",
    "order_taxi": "address",
    "play_music": "title",
    "search_flights": "city",
    "send_message": "to",
    "set_reminder": "date",
    "stock_price": "company",
    "weather_forecast": "city",
    "deliver_parcel": "address",
    "renew_document": "kind",
    "make_appointment": "date",
    "share_photo": "to",
}
_TAU2_TOOLS = {
    "find_customer": "phone",
    "list_lines": "customer",
    "read_line": "line",
    "read_bill": "bill",
    "read_device": "line",
    "check_signal": "line",
    "toggle_roaming": "line",
    "refill_data": "line",
    "reset_network": "line",
    "resume_line": "line",
}
_BFCL_TOOLS = {
    "list_files": "folder",
    "read_file": "name",
    "move_file": "name",
    "post_ticket": "title",
    "close_ticket": "id",
    "start_engine": "mode",
    "lock_doors": "which",
    "fill_tank": "litres",
    "buy_stock": "symbol",
    "watch_stock": "symbol",
}
_VALUES = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath")

Actions = list[str | None]


def invent_actions(benchmark: str, layout: Layout, rng: random.Random) -> Actions:
    """Return an action for every step; the last one of each segment ends it.

    Parameters
    ----------
    benchmark : str
        One of the paper's four.
    layout : Layout
        Steps of each segment.
    rng : random.Random
        Source of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> two = Layout(np.array([2, 1]), np.array([0, 1]))
    >>> invent_actions("BFCL", two, random.Random(1))
    ['read_file({"name":"grove"})', '<respond/>', '<respond/>']
    """
    segment = _STYLES[benchmark]
    return [action for n in layout.segment_lengths for action in segment(int(n), rng)]


def _plan(n_steps: int, rng: random.Random) -> Actions:
    """Return different tools, in order, then the end of the plan."""
    order = shuffled(range(len(OPENAGI_TOOLS)), rng)
    chosen = sorted(order[: n_steps - 1])
    return [*(canonical_call(OPENAGI_TOOLS[i], None) for i in chosen), TERMINATE]


def _plan_with_arguments(n_steps: int, rng: random.Random) -> Actions:
    tools = shuffled(list(_TASKBENCH_TOOLS), rng)[: n_steps - 1]
    return [*(_call(tool, _TASKBENCH_TOOLS[tool], rng) for tool in tools), TERMINATE]


def _ticket(n_steps: int, rng: random.Random) -> Actions:
    return [*_calls(_TAU2_TOOLS, n_steps - 1, rng), TERMINATE]


def _turn(n_steps: int, rng: random.Random) -> Actions:
    return [*_calls(_BFCL_TOOLS, n_steps - 1, rng), RESPOND]


def _calls(tools: dict[str, str], n: int, rng: random.Random) -> Actions:
    names = [_pick(list(tools), rng) for _ in range(n)]
    return [_call(name, tools[name], rng) for name in names]


def _call(tool: str, argument: str, rng: random.Random) -> str | None:
    return canonical_call(tool, {argument: _pick(_VALUES, rng)})


def _pick(values: Sequence[str], rng: random.Random) -> str:
    return values[int(rng.random() * len(values))]


_STYLES: dict[str, Callable[[int, random.Random], Actions]] = {
    "OpenAGI": _plan,
    "TaskBench": _plan_with_arguments,
    "tau2-bench": _ticket,
    "BFCL": _turn,
}
