"""Charts of what was, in Chromium: ranges in the address, lines in lists, what a poll brings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.looker import Looker
from tests.support.black_box import own_broker
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient

__all__ = ["own_broker"]


@pytest.fixture
def process(own_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    """A node that takes a sample ten times a second."""
    return own_broker(failed_logins__delay="0", collect_statistics_interval="100")


@pytest.fixture
def looker(browser: Any, process: BrokerProcess) -> Iterator[Looker]:
    """Somebody who has logged in."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield Looker(context, process).enter()
    context.close()


def asked_for(looker: Looker) -> list[str]:
    """The paths that the page asks for from now on."""
    paths: list[str] = []
    looker.page.on("request", lambda request: paths.append(request.url.partition("/api/")[2]))
    return paths


def filled(node: NodeClient, name: str, count: int) -> None:
    channel = node.channel()
    channel.queue_declare(name)
    for _ in range(count):
        channel.basic_publish("", name, b"x")


def test_the_range_is_in_the_address(looker: Looker, node: NodeClient) -> None:
    filled(node, "orders", 3)
    looker.go("overview")
    looker.page.locator(".plot canvas").nth(2).wait_for()
    for name, seconds in (("1 min", "60"), ("24 h", "86400"), ("8 h", "28800"), ("1 h", "3600")):
        with looker.page.expect_request(re.compile(rf"pages/overview\?history={seconds}")):
            looker.page.get_by_role("button", name=name, exact=True).click()
        looker.page.wait_for_url(re.compile(rf"range={seconds}"))
        chosen = looker.page.get_by_role("button", name=name, exact=True)
        assert chosen.get_attribute("aria-pressed") == "true"
    looker.page.go_back()
    looker.page.wait_for_url(re.compile("range=28800"))
    looker.page.reload()
    looker.page.locator(".ranges [aria-pressed=true]").get_by_text("8 h").wait_for()
    looker.page.get_by_role("button", name="Table").nth(1).click()
    assert looker.page.locator("figure table").locator("tbody tr").count() > 10
    assert looker.complaints == []


def test_a_queue_s_past_is_there_when_its_page_opens(looker: Looker, node: NodeClient) -> None:
    filled(node, "orders", 25)
    looker.go("queues/%2F/orders?range=60")
    looker.page.locator(".key--ready b").get_by_text("25").wait_for()
    looker.page.locator(".plot canvas").nth(1).wait_for()
    assert looker.page.get_by_role("button", name="24 h").count() == 0
    looker.page.get_by_role("button", name="Table").first.click()
    figures = looker.page.locator("figure table tbody tr td:nth-child(2)").all_text_contents()
    assert figures[-1] == "0"  # before the queue was declared
    assert "25" in figures
    assert looker.complaints == []


def test_the_list_asks_for_lines_once_and_then_for_figures(
    looker: Looker, node: NodeClient
) -> None:
    filled(node, "orders", 5)
    paths = asked_for(looker)
    looker.go("queues")
    looker.page.locator("svg.spark").first.wait_for()
    looker.page.wait_for_timeout(5500)
    lists = [path for path in paths if path.startswith("queues?")]
    assert len(lists) >= 2
    assert ["history=3600" in path for path in lists] == [True] + [False] * (len(lists) - 1)
    assert looker.page.locator("svg.spark").count() == 1
    assert looker.complaints == []
