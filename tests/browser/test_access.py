"""Every page by keyboard alone, and every text readable (WCAG 2.1 AA), dialogs and notices included, in both themes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.browser.contrast import WEAK_TEXTS
from tests.browser.looker import Looker
from tests.support.node_client import NodeClient

# What can be used, in the order of the document; one of a group of radio buttons would be enough, there are none.
USABLE = """() => {
  const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")];
  const shown = all.filter((each) => each.checkVisibility() && !each.disabled && each.tabIndex >= 0);
  shown.forEach((each, at) => { each.dataset.place = at; });
  return shown.length;
}"""
# Each focus from now on: the place of what has it, whether that is visible, and what it is.
FOLLOW = """() => {
  window.followed = [];
  document.addEventListener("focusin", ({target}) => {
    const {outlineStyle, outlineWidth} = getComputedStyle(target);
    window.followed.push([target.dataset.place ?? null, outlineStyle === "solid" && outlineWidth !== "0px", target.outerHTML.slice(0, 120)]);
  });
}"""


@pytest.fixture
def addresses(node: NodeClient) -> list[str]:
    """Each page, with something on it."""
    channel = node.connect(client_properties={"connection_name": "worker"}).channel()
    for name in ("orders", "returns"):
        arguments = {"x-max-length": 9, "x-dead-letter-exchange": "gone"}
        channel.queue_declare(name, arguments=arguments)
        channel.queue_bind(name, "amq.topic", "a.#")
        channel.basic_publish("", name, b"x")
    channel.basic_consume("orders", lambda *_: None)
    limits = {"pattern": ".*", "definition": {"max-length": 5}, "apply-to": "queues"}
    node.api("PUT", "/api/policies/%2F/limits", limits)
    shovel = {"src-uri": [], "src-queue": "a", "dest-uri": "amqp://", "dest-queue": "b"}
    node.api("PUT", "/api/parameters/shovel/%2F/still", {"value": shovel})
    node.import_from_itself("nosuch")
    (row,) = node.get("/api/connections")
    client = quote(row["name"], safe="")
    pins = quote(json.dumps([["/", "orders"], ["/", "returns"]]))
    return [
        "overview", "overview/definitions", "queues", "queues/%2F/orders", f"queues/compare?pinned={pins}", "exchanges",
        "exchanges/%2F/amq.topic?key=a.b&headers=%7B%7D", "connections", f"connections/{client}", "channels",
        f"channels/{client}%20(1)", "consumers", "policies", "admin/users", "admin/users/guest", "admin/vhosts",
        "admin/vhosts/%2F", "admin/permissions", "admin/parameters", "admin/shovels", "admin/import", "admin/flags", "admin/configuration", "node",
        "node/log", "queues/%2F/nosuch",
    ]  # fmt: skip


def shown(page: Any) -> None:
    page.locator("main :is(table, .figures, .log, input[type=file], [role=alert])").first.wait_for()
    if "?key=" in page.url:
        page.get_by_text("It would go to").wait_for()  # what a second answer brings


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_can_be_read(
    look: Callable[..., Looker], addresses: list[str], theme: str
) -> None:
    looker = look(
        color_scheme=theme, reduced_motion="reduce", viewport={"width": 1280, "height": 900}
    )
    page = looker.page
    page.goto(looker.base)
    page.get_by_label("Password").wait_for()
    assert page.evaluate(WEAK_TEXTS) == [], "login"
    looker.enter()
    weak = {}
    for address in addresses:
        looker.go(address)
        shown(page)
        page.evaluate(
            "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
        )
        weak[address] = page.evaluate(WEAK_TEXTS)
    page.keyboard.press("Control+k")
    page.get_by_role("listbox", name="Found").get_by_role("option").first.wait_for()
    weak["search"] = page.evaluate(WEAK_TEXTS)
    page.keyboard.press("Escape")
    for address, button in (
        ("queues/%2F/orders", "Delete…"), ("connections", "Close…"), ("policies", "Delete…"),
        ("admin/users/guest", "Delete…"),
    ):  # fmt: skip
        looker.go(address)
        if address == "connections":
            page.get_by_label("All on this page").check()
        page.get_by_role("button", name=button).first.click()
        page.get_by_role("dialog").wait_for()
        weak[f"{address}: {button}"] = page.evaluate(WEAK_TEXTS)
        page.keyboard.press("Escape")
    assert {address: found for address, found in weak.items() if found} == {}


def test_a_text_that_cannot_be_read_is_found(look: Callable[..., Looker]) -> None:
    looker = look()
    looker.page.set_content("<p>good</p><p style='color: #888'>weak</p>")
    assert [text for text, *_ in looker.page.evaluate(WEAK_TEXTS)] == ["weak"]


def test_everything_is_reached_by_keyboard_in_the_order_of_the_page(
    look: Callable[..., Looker], addresses: list[str]
) -> None:
    looker = look(reduced_motion="reduce", viewport={"width": 1280, "height": 900}).enter()
    page = looker.page
    page.get_by_text("All well").wait_for()
    page.get_by_role(
        "button", name="Pause"
    ).click()  # what is asked again meanwhile would not be marked
    page.evaluate(FOLLOW)
    for address in addresses:
        looker.go(address)
        shown(page)
        page.wait_for_load_state("networkidle")
        count = page.evaluate(USABLE)
        page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges()")
        page.locator(".skip").focus()
        page.evaluate("window.followed = []")
        for _ in range(1, count):
            page.keyboard.press("Tab")
        followed = page.evaluate("window.followed")
        for place, (at, is_visible, what) in enumerate(followed, 1):
            assert (at, is_visible) == (str(place), True), (address, place, what)
        assert len(followed) == count - 1, address


def test_what_a_mark_means_is_said_to_the_keyboard(
    look: Callable[..., Looker], addresses: list[str]
) -> None:
    looker = look(viewport={"width": 1280, "height": 900}).enter()
    looker.go("queues/%2F/orders")
    mark = looker.page.locator("abbr[title]").first
    said = "getComputedStyle(document.activeElement, '::after').content"
    mark.wait_for()
    looker.page.locator(".top button").last.focus()
    looker.page.keyboard.press("Tab")
    assert looker.page.evaluate(said) == json.dumps(mark.get_attribute("title"))


def test_a_dialog_keeps_the_keyboard_and_gives_it_back(
    look: Callable[..., Looker], addresses: list[str]
) -> None:
    looker = look().enter()
    page = looker.page
    looker.go("queues/%2F/orders")
    button = page.get_by_role("button", name="Delete…")
    button.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    for _ in range(8):
        page.keyboard.press("Tab")
        inside = "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
        assert page.evaluate(inside)
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert page.evaluate("document.activeElement.textContent") == "Delete…"
