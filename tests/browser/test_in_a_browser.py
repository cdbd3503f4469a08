"""The notebooks in a real browser: they run, show their figures, and the sliders move the curve."""

from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from leapmodel.plots import COLOURS

FIGURES = {"01_predict_before_deploying": 3, "04_figure_4": 1}


@pytest.mark.parametrize("name", FIGURES)
def test_all_cells_run_and_the_figure_is_on_the_page(ran, screenshot, name):
    page = ran(name)
    assert page.bad_outputs() == []
    pictures = page.pictures()
    assert len(pictures) == FIGURES[name]
    for number, picture in enumerate(pictures, start=1):
        page.look_at(picture)
        screenshot(f"{name}-figure-{number}")
        assert picture.is_displayed()
        assert picture.size["width"] > 300
        assert picture.size["height"] > 200


def height_of_the_curve(content):
    """The mean height of what has the curve's colour; its mark in the legend stays where it is."""
    image = imread(BytesIO(b64decode(content.partition(",")[2])), format="png")
    rows = np.nonzero(np.abs(image[..., :3] - to_rgb(COLOURS[0])).max(axis=-1) < 0.05)[0]
    return 1 - rows.mean() / len(image)


def test_a_slider_moves_the_curve(ran, screenshot):
    from selenium.webdriver import Keys

    from tests.browser.page import Slider

    page = ran("02_choose_depth_and_draft")
    assert page.bad_outputs() == []
    (picture,) = page.all("img.widget-image")
    slider = Slider(page, "acceptance of a proposal")
    first = page.next_content(picture, None)
    values, contents = [slider.value()], [first]

    def press(key):
        # a picture for each press: quick ones would be drawn together
        slider.press(key)
        contents.append(page.next_content(picture, contents[-1]))
        values.append(slider.value())

    page.look_at(picture)
    screenshot("02_sliders-before")
    for _ in range(10):
        press(Keys.ARROW_RIGHT)
    page.look_at(picture)
    screenshot("02_sliders-after")
    assert values == pytest.approx(np.arange(0.75, 0.855, 0.01))
    heights = [height_of_the_curve(content) for content in contents]
    # a better draft, a faster agent, at every depth
    assert heights[-1] > heights[0] + 0.01

    # and back: the picture depends on where the slider stands, on nothing else
    for _ in range(10):
        press(Keys.ARROW_LEFT)
    assert contents[-1] == first
    assert page.bad_outputs() == []
