"""Pictures as SVG that takes its colours for lines and letters from the page it stands in."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING

import matplotlib as mpl
from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 5.0, 3.5
"""Inches; narrow, so that the letters stay readable when a telephone shrinks it."""


def inline_svg(ax: Axes, name: str, description: str) -> Markup:
    """Return the figure of some axes as SVG for the inside of a page.

    Parameters
    ----------
    ax : matplotlib Axes
        What to draw.
    name : str
        Makes the ids inside the picture its own on the page.
    description : str
        What is to be seen, for those who don't see it.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    drawn = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a name in a script that the font lacks
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
    text = drawn.getvalue().decode("utf-8")
    svg = text[text.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    # black is matplotlib's colour for axes and letters; on a dark page they must be light
    for black_or_grey in ("#000000", "#595959", "#808080"):
        svg = svg.replace(black_or_grey, "currentColor")
    view = re.search(r'viewBox="[^"]*"', svg)
    assert view is not None
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        f' {view[0]} role="img" aria-label="{escape(description)}" fill="currentColor">'
    )
    # every picture numbers its parts and letters from the start; on a page each id must be alone
    svg = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    return Markup(re.sub(r"^<svg[^>]*>", lambda _: opening, svg))
