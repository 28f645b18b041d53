"""The frame around all pages: search, themes, a node that goes away, what each tag may see."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.looker import Looker
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient


def test_search_finds_pages_and_everything_with_a_name_by_keyboard(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    for name in ("orders.eu", "orders.us"):
        node.channel().queue_declare(name)
    node.user("orderly")
    looker = look().enter()
    keyboard, options = looker.page.keyboard, looker.page.get_by_role("option")

    def search(text: str) -> None:
        keyboard.press("Control+k")
        looker.page.get_by_role("combobox").and_(looker.page.locator(":focus")).wait_for()
        keyboard.type(text)

    for typed, option, address in (
        ("rdersu", "orders.us", "queues/%2F/orders.us"),
        ("orderly", "orderly", "admin/users/orderly"),
        ("amq.topic", "amq.topic", "exchanges/%2F/amq.topic"),
        ("configur", "Configuration", "admin/configuration"),
    ):
        search(typed)
        options.get_by_text(option, exact=True).first.wait_for()
        keyboard.press("Enter")
        looker.arrives(address)
    search("orders")
    options.get_by_text("orders.us").wait_for()
    keyboard.press("ArrowDown")
    assert looker.page.locator("[aria-selected=true]").inner_text().endswith("orders.us in /")
    keyboard.press("Escape")
    looker.page.get_by_role("dialog").wait_for(state="detached")
    assert looker.complaints == []


def test_a_keyboard_is_enough(look: Callable[..., Looker], node: NodeClient) -> None:
    node.channel().queue_declare("orders")
    looker = look().enter()
    keyboard = looker.page.keyboard
    looker.page.get_by_text("All well").wait_for()
    looker.page.evaluate("document.activeElement.blur()")
    seen = []
    for _ in range(11):
        keyboard.press("Tab")
        seen.append(looker.page.evaluate("document.activeElement.textContent"))
        assert (
            looker.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        )
    assert seen[0] == "To the page"
    assert [text[1:] for text in seen[1:9]] == [
        "Overview", "Queues", "Exchanges", "Connections", "Channels", "Policies", "Admin", "Node",
    ]  # fmt: skip
    looker.go("queues")
    looker.page.get_by_role("link", name="orders").wait_for()
    looker.page.evaluate("document.activeElement.blur()")
    keyboard.press("/")
    keyboard.type("nosuch")
    looker.sees("No queue has such a name.")


def test_arrows_go_from_the_filter_to_the_rows(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    for name in ("orders", "returns", "shop"):
        node.channel().queue_declare(name)
    looker = look().enter()
    looker.go("queues")
    looker.page.get_by_role("link", name="shop").wait_for()
    keyboard, focus = looker.page.keyboard, "document.activeElement.textContent"
    keyboard.press("ArrowDown")
    assert looker.page.evaluate("document.activeElement.tagName") in ("BODY", "MAIN"), "scrolls"
    keyboard.press("/")
    keyboard.press("ArrowDown")
    assert looker.page.evaluate(focus) == "orders"
    keyboard.press("ArrowDown")
    keyboard.press("ArrowDown")
    keyboard.press("ArrowDown")
    assert looker.page.evaluate(focus) == "shop", "the last one stays"
    keyboard.press("ArrowUp")
    assert looker.page.evaluate(focus) == "returns"
    looker.page.get_by_label("Select / orders").focus()
    keyboard.press("ArrowDown")
    keyboard.press("Space")
    assert looker.page.get_by_label("Select / returns").is_checked()
    looker.page.get_by_role("link", name="returns").focus()
    keyboard.press("Enter")
    looker.arrives("queues/%2F/returns")


def test_search_answers_questions_in_the_virtual_host_that_is_chosen(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    node.vhost("shop")
    node.user("buyer", "shop")
    node.api("PUT", "/api/permissions/shop/guest", {"configure": "", "write": "", "read": ".*"})
    for user, name in (("buyer", "first"), ("buyer", "second")):
        connection = node.connect(user, "shop", client_properties={"connection_name": name})
        connection.channel().queue_declare(f"queue of {name}")
    node.channel().queue_declare("elsewhere")
    looker = look().enter()
    page = looker.page
    page.locator(".vhosts select").select_option("shop")
    page.get_by_text("2 queues").wait_for()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").and_(page.locator(":focus")).wait_for()
    page.keyboard.type("who sends")
    page.get_by_role("option").filter(has_text="who sends most").wait_for()
    page.keyboard.press("Enter")
    looker.arrives("connections")
    head = page.get_by_role("columnheader", name="From it")
    head.and_(page.locator("[aria-sort=descending]")).wait_for()
    page.get_by_text("2 connections").wait_for()
    page.get_by_role("navigation", name="Pages").first.get_by_role("link", name="Queues").click()
    page.get_by_role("link", name="queue of first").click()
    page.get_by_text("Why it is so").wait_for()
    page.locator("h1").get_by_role("link", name="Queues").click()
    page.get_by_text("2 queues").wait_for()
    page.locator(".vhosts select").select_option("")
    page.get_by_text("3 queues").wait_for()
    assert looker.complaints == []


def test_theme_pause_and_zone_are_kept(look: Callable[..., Looker], node: NodeClient) -> None:
    looker = look(color_scheme="light", timezone_id="Asia/Tokyo")
    page = looker.page
    page.clock.install()
    looker.enter()
    page.get_by_role("button", name="Theme: system").click()
    page.get_by_role("button", name="Theme: light").click()
    page.locator(".seen button").click()
    page.get_by_text("UTC").wait_for()
    page.get_by_role("button", name="Table").first.click()
    shown = page.locator("figure tbody td").first.inner_text()
    assert shown[:2] == page.evaluate("new Date().toISOString().slice(11, 13)"), "in the charts too"
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(20, 22, 26)"
    page.reload()
    page.get_by_role("button", name="Theme: dark").wait_for()
    page.get_by_text("UTC").wait_for()
    assert page.evaluate(background) == "rgb(20, 22, 26)"
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("status").get_by_text("paused").wait_for()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.fast_forward(30_000)
    assert asked == []
    with page.expect_request("**/api/**"):
        page.get_by_role("button", name="Go on").click()


def test_a_form_outlives_the_node(look: Callable[..., Looker], process: BrokerProcess) -> None:
    looker = look()
    looker.page.clock.install()
    looker.enter()
    looker.go("admin/users")
    looker.page.get_by_role("link", name="guest").wait_for()
    looker.page.get_by_text("Add a user").click()
    looker.page.get_by_label("Name", exact=True).fill("half-typed")
    assert process.stop() == 0
    looker.page.clock.fast_forward(6_000)
    looker.page.get_by_text("stale", exact=True).wait_for()
    looker.page.get_by_text("The node gives no answer. The figures are those of").wait_for()
    assert looker.page.get_by_role("link", name="guest").is_visible(), "what was there stays"
    process.start()
    looker.page.clock.fast_forward(60_000)
    dialog = looker.page.get_by_role("dialog", name="Log in again")
    dialog.get_by_label("Name").fill("guest", timeout=30_000)
    dialog.get_by_label("Password").fill("guest")
    looker.page.keyboard.press("Enter")
    dialog.wait_for(state="detached")
    assert looker.page.get_by_label("Name", exact=True).input_value() == "half-typed"
    looker.page.get_by_text("stale", exact=True).wait_for(state="detached")


def test_who_has_to_log_in_again_cannot_leave_that_by_esc(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    """Chromium closes a dialog at the second Esc, whatever its page says; the page behind it stands still."""
    node.user("anna", "/", tags="administrator")
    looker = look()
    looker.log_in("anna", "anna")
    looker.page.get_by_role("navigation", name="Pages").first.wait_for()
    node.api("PUT", "/api/users/anna", {"password": "other", "tags": "administrator"})
    dialog = looker.page.get_by_role("dialog", name="Log in again")
    dialog.get_by_text("knows this login no more").wait_for()
    for _ in range(4):
        looker.page.keyboard.press("Escape")
    dialog.get_by_label("Name").fill("anna")
    dialog.get_by_label("Password").fill("other")
    looker.page.keyboard.press("Enter")
    dialog.wait_for(state="detached")


def test_what_was_not_answered_is_neither_done_nor_tried_again(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    looker = look().enter()
    looker.go("exchanges")
    looker.page.get_by_text("Declare an exchange").click()
    looker.page.get_by_label("Name").last.fill("e")
    for path in ("exchanges/**", "login"):
        looker.page.route(f"**/api/{path}", lambda route: route.abort())
    looker.page.get_by_role("button", name="Declare", exact=True).click()
    looker.page.get_by_text("Whether it was done is not known").wait_for()
    looker.page.get_by_role("button", name="Log out").click()
    looker.page.get_by_text("nobody was logged out").wait_for()
    assert looker.page.get_by_role("navigation", name="Pages").first.is_visible()


def test_an_address_of_no_page_shows_the_first(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    looker = look().enter()
    looker.go("nosuch/page")
    looker.sees("All well on")


def test_a_node_that_hangs_is_told_like_one_that_is_away(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    looker = look()
    looker.page.clock.install()
    looker.enter()
    looker.go("queues")
    looker.page.get_by_text("0 queues").wait_for()
    looker.page.route("**/api/**", lambda _: None)  # no answer
    for _ in range(5):
        looker.page.clock.fast_forward(6_000)
    looker.page.get_by_text("The node gives no answer. The figures are those of").wait_for()
    looker.go("exchanges")
    looker.page.locator("main").get_by_text("Filter").wait_for()
    looker.page.clock.fast_forward(20_000)
    looker.page.locator("main").get_by_text("The node gives no answer.").wait_for()
    looker.page.unroute("**/api/**")
    looker.go("queues")
    looker.page.get_by_text("0 queues").wait_for()
    looker.page.get_by_text("stale", exact=True).wait_for(state="detached")


@pytest.mark.parametrize(
    ("tag", "sees", "not_"),
    [
        ("management", {"queues", "exchanges"}, {"admin", "node", "node/log", "overview/definitions"}),
        ("policymaker", {"policies"}, {"admin", "node"}),
        ("monitoring", {"node", "node/log"}, {"admin", "overview/definitions"}),
        ("administrator", {"admin", "node", "node/log", "overview/definitions", "policies"}, set()),
    ],
)  # fmt: skip
def test_what_each_tag_may_see(
    look: Callable[..., Looker], node: NodeClient, tag: str, sees: set[str], not_: set[str]
) -> None:
    node.user("somebody", "/", tags=tag)
    looker = look()
    looker.log_in("somebody", "somebody")
    looker.page.get_by_role("navigation", name="Pages").first.wait_for()
    for address in sorted(sees | not_):
        looker.go(address)
        looker.page.locator("main :is(table, p, form, .log)").first.wait_for()
        refused = looker.page.locator("main").get_by_text("with the tag").count()
        refused += looker.page.locator("main").get_by_text("for the tags").count()
        assert bool(refused) == (address in not_), address
    looker.go("policies")
    looker.page.get_by_role("heading", name="Operator policies").wait_for()
    forms = looker.page.get_by_text("Add a policy").count()
    operators = looker.page.get_by_text("Add an operator policy").count()
    assert (forms, operators) == (tag in ("policymaker", "administrator"), tag == "administrator")
    assert looker.complaints == [], "nobody asks for what is refused"


def test_a_page_that_is_shown_again_and_again_asks_once_a_round(
    look: Callable[..., Looker],
) -> None:
    looker = look().enter()
    looker.go("exchanges")
    looker.sees("amq.direct")
    asked: list[str] = []
    looker.page.on("request", lambda request: asked.append(request.url))
    show = "document.dispatchEvent(new Event('visibilitychange'));"
    looker.page.evaluate(show * 5)  # before the first is answered
    looker.page.wait_for_timeout(1000)
    at_once = sum("/api/exchanges" in url for url in asked)
    looker.page.wait_for_timeout(6000)
    assert at_once == 5
    assert sum("/api/exchanges" in url for url in asked) - at_once <= 1
