"""A real node, and a real browser looking at it; skipped by name where there is no browser.

`make test-browser` installs playwright (requirements-browser.in) and says which browser it found. Any Chromium does:
BURROWMQ_TEST_CHROMIUM names one that is not in PATH.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.looker import Looker
from tests.support.black_box import own_broker
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient

__all__ = ["own_broker"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A browser takes seconds."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.needs_server)


def chromium() -> str:
    """The browser's program."""
    named = os.environ.get("BURROWMQ_TEST_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium: apt-get install chromium, or set BURROWMQ_TEST_CHROMIUM")
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A running Chromium; while it is there, playwright's loop runs in this thread, and no other can."""
    reason = "no playwright: make test-browser installs it"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    program = chromium()
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def process(own_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    """A node of the test's own."""
    return own_broker(failed_logins__delay="0")


@pytest.fixture
def node(process: BrokerProcess) -> Iterator[NodeClient]:
    """What its operator and its applications do."""
    client = NodeClient(process)
    yield client
    client.close()


@pytest.fixture
def look(browser: Any, process: BrokerProcess) -> Iterator[Callable[..., Looker]]:
    contexts = []

    def opened(**options: Any) -> Looker:
        contexts.append(browser.new_context(**options))
        return Looker(contexts[-1], process)

    yield opened
    for context in contexts:
        context.close()
