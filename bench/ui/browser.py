"""A Chromium, and a page of it that somebody is logged in to.

Owns no state. Playwright is asked for when it is needed: nothing else in `bench` does. Called by the modules beside it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDE = {"width": 1280, "height": 900}


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A running browser.

    Raises: SystemExit, when there is none.
    """
    program = os.environ.get("BURROWMQ_TEST_CHROMIUM")
    program = program or next(filter(None, map(shutil.which, NAMES)), None)
    try:
        driver = importlib.import_module("playwright.sync_api")
    except ModuleNotFoundError:
        raise SystemExit("no playwright: pip install -r requirements-browser.in") from None
    if program is None:
        raise SystemExit("no Chromium: apt-get install chromium, or set BURROWMQ_TEST_CHROMIUM")
    with driver.sync_playwright() as running:
        found = running.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


def log_in(page: Any, base: str) -> None:
    """As guest, by the form: both UIs name its fields alike."""
    page.goto(base)
    page.locator("input[name=username]").fill("guest")
    page.locator("input[name=password]").fill("guest")
    page.keyboard.press("Enter")
    page.locator("nav.rail, #tabs a").first.wait_for()
