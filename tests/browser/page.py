"""A notebook in JupyterLab as a person has it: opened, run from the menu, looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from selenium.common.exceptions import TimeoutException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

WAIT_S = 60
# The circle in the notebook's toolbar is idle before there is a kernel; the status bar is not.
STATUS = "#jp-main-statusbar"
IDLE = "Python 3 (ipykernel) | Idle"
RUN_ALL = '.lm-Menu-item[data-command="runmenu:run-all"]'
BAD = [
    f'.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.{kind}"]'
    for kind in ("error", "stderr")
]

# What a picture shows: that it has a new address does not say that it looks different.
_CONTENT = """
const [image, canvas] = [arguments[0], document.createElement("canvas")];
if (!image.complete || !image.naturalWidth) return null;
[canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
canvas.getContext("2d").drawImage(image, 0, 0);
return canvas.toDataURL();
"""


@dataclass(frozen=True)
class NotebookPage:
    """An open notebook."""

    driver: Chrome

    def all(self, selector: str) -> list[WebElement]:
        """Return what matches in the notebook."""
        return self.driver.find_elements(By.CSS_SELECTOR, f".jp-NotebookPanel {selector}")

    def until(self, true: Callable[[], Any], what: str) -> Any:
        """Wait for a true answer and return it."""
        try:
            return WebDriverWait(self.driver, WAIT_S, poll_frequency=0.1).until(lambda _: true())
        except TimeoutException:
            raise AssertionError(f"waited {WAIT_S} s for {what}; cells: {self.prompts()}") from None

    def open(self, address: str) -> None:
        """Open the address and wait for its kernel."""
        self.driver.get(address)
        self.until(lambda: self.prompts() and self.is_idle(), "a notebook with an idle kernel")

    def is_idle(self) -> bool:
        """Say whether the kernel is connected and has nothing to do."""
        script = "return document.querySelector(arguments[0])?.textContent ?? ''"
        return IDLE in self.driver.execute_script(script, STATUS)

    def prompts(self) -> list[str]:
        """Return what stands beside each code cell: ``[ ]:``, ``[*]:`` while it runs, ``[3]:``."""
        cells = ".jp-NotebookPanel .jp-CodeCell .jp-InputPrompt"
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
        return self.driver.execute_script(script, cells)

    def bad_outputs(self) -> list[str]:
        """Return the text of errors, and of what was written to stderr."""
        return [output.text for selector in BAD for output in self.all(selector)]

    def run_all(self) -> None:
        """Choose *Run all cells* in the menu and wait for the last cell, or the first error."""
        bar = self.driver.find_elements(By.CSS_SELECTOR, ".lm-MenuBar-item")
        next(item for item in bar if item.text == "Run").click()
        find = self.driver.find_elements
        self.until(lambda: find(By.CSS_SELECTOR, RUN_ALL), "the Run menu")[0].click()
        self.until(self._has_run, "every cell to have run")

    def _has_run(self) -> bool:
        done = all(prompt.strip("[]: ").isdigit() for prompt in self.prompts())
        return bool((done or self.bad_outputs()) and self.is_idle())

    def pictures(self) -> list[WebElement]:
        """Return the pictures that cells put out, complete."""

        def complete() -> list[WebElement] | None:
            found = self.all(".jp-OutputArea-output img")
            return found if found and all(self.content(image) for image in found) else None

        return self.until(complete, "pictures")

    def content(self, image: WebElement) -> str | None:
        """Return a picture as the text of a PNG, or None while it loads."""
        return self.driver.execute_script(_CONTENT, image)

    def next_content(self, image: WebElement, before: str | None) -> str:
        """Wait for a picture to look different."""
        return self.until(
            lambda: (now := self.content(image)) != before and now, "a picture that changes"
        )

    def look_at(self, element: WebElement) -> None:
        """Bring an element to the middle of the window."""
        script = "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})"
        self.driver.execute_script(script, element)


@dataclass(frozen=True)
class Slider:
    """An ipywidgets slider, named by the words beside it."""

    page: NotebookPage
    name: str

    def _part(self, selector: str) -> WebElement:
        for slider in self.page.all(".widget-slider"):
            if slider.find_element(By.CSS_SELECTOR, ".widget-label").text == self.name:
                return slider.find_element(By.CSS_SELECTOR, selector)
        raise AssertionError(f"no slider is called {self.name}")

    def value(self) -> float:
        """Return the number it shows."""
        return float(self._part(".widget-readout").text)

    def press(self, key: str) -> None:
        """Press a key on its handle."""
        handle = self._part(".noUi-handle")
        self.page.look_at(handle)
        handle.send_keys(key)
