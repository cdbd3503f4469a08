"""One JupyterLab and one Chromium for all tests of this folder; ``make test-browser`` runs them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import chromium

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

    from tests.browser.page import NotebookPage

# Helpers, not tests: looked at for doctests they would need what only these tests install.
collect_ignore = ["chromium.py", "lab.py", "page.py"]
HERE = Path(__file__).parent
# kept by CI, never committed
SCREENSHOTS = HERE.parents[1] / "browser-output"
PYTHON_PACKAGES = ("jupyterlab", "ipywidgets", "nbformat", "selenium")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    absent = [name for name in PYTHON_PACKAGES if importlib.util.find_spec(name) is None]
    if absent:
        pytest.skip(f"needs {', '.join(absent)}: make test-browser")
    if chromium.missing():
        pytest.skip(f"needs {' and '.join(chromium.missing())}: {chromium.PACKAGES}")
    from tests.browser.lab import serving

    with serving(tmp_path_factory.mktemp("lab")) as address:
        yield address


@pytest.fixture(scope="session")
def driver(lab: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    # after the server, so that it is closed before it
    with chromium.running(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def screenshot(driver: Chrome) -> Callable[[str], None]:
    SCREENSHOTS.mkdir(exist_ok=True)
    return lambda name: driver.save_screenshot(str(SCREENSHOTS / f"{name}.png"))


@pytest.fixture
def ran(
    lab: str, driver: Chrome, screenshot: Callable[[str], None]
) -> Iterator[Callable[[str], NotebookPage]]:
    """Open a notebook, run all its cells, and return the page; pictured even if that fails."""
    from tests.browser.page import NotebookPage

    opened: list[str] = []

    def run(name: str) -> NotebookPage:
        page = NotebookPage(driver)
        opened.append(name)
        page.open(lab.format(path=f"notebooks/{name}.ipynb"))
        page.run_all()
        return page

    yield run
    for name in opened:
        screenshot(f"{name}-end")
