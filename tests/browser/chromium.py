"""Chromium without a window, driven by Selenium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PROGRAMS = ("chromium", "chromedriver")
PACKAGES = "apt-get install chromium chromium-driver"

# What a browser does on its own is off: a test must not wait for it, nor the network hear of it.
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1000",
)


def missing() -> list[str]:
    """Return the programs that are not here."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


@contextmanager
def running(profile: Path) -> Iterator[Chrome]:
    """Start a browser with a fresh profile, and end it."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    # both paths given, nothing is looked for, or fetched
    options.binary_location = shutil.which(PROGRAMS[0]) or ""
    driver = Chrome(options=options, service=ChromeService(shutil.which(PROGRAMS[1])))
    try:
        yield driver
    finally:
        driver.quit()
