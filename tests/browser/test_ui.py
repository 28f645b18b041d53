"""The management UI in Chromium, against a real node."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pika
import pytest

from tests.browser.looker import HOSTILE, SHOWN, Looker
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient

PAGES = ("overview", "queues", "exchanges", "connections", "channels", "policies", "admin", "node")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_is_shown_without_a_complaint(
    look: Callable[..., Looker], node: NodeClient, theme: str, width: int
) -> None:
    channel = node.channel()
    channel.queue_declare("orders")
    channel.basic_consume("orders", print)
    looker = look(color_scheme=theme, viewport={"width": width, "height": 800}).enter()
    for name in PAGES:
        link = looker.page.get_by_role("link", name=name.capitalize(), exact=True)
        link.click()
        looker.arrives(name)
        looker.page.locator("main :is(table, p, form)").first.wait_for()
        scrolls = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not looker.page.evaluate(scrolls), name
    looker.go("queues/%2F/orders")
    looker.sees("Why it is so")
    looker.sees("consumer capacity")
    assert looker.complaints == []


def test_a_small_window_is_wide_enough(look: Callable[..., Looker], node: NodeClient) -> None:
    """The pages whose tables stood out to the right of it, with names that have no place to break."""
    channel = node.channel()
    names = ["W" * 255, "M" * 255]
    for name in names:
        channel.queue_declare(name)
    node.api("PUT", f"/api/users/{'U' * 200}", {"password": "x", "tags": "management"})
    looker = look(viewport={"width": 360, "height": 740}).enter()
    pinned = quote(json.dumps([["/", name] for name in names]))
    for address in ("admin/users", "node", f"queues/compare?pinned={pinned}", "exchanges"):
        looker.go(address)
        looker.page.locator("main table").first.wait_for()
        scrolls = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not looker.page.evaluate(scrolls), address


def test_hostile_names_are_text(look: Callable[..., Looker], node: NodeClient) -> None:
    channel = node.channel()
    channel.queue_declare(HOSTILE, arguments={"x-dead-letter-exchange": HOSTILE})
    channel.exchange_declare(HOSTILE)
    properties = pika.BasicProperties(headers={HOSTILE: HOSTILE}, content_type=HOSTILE)
    channel.basic_publish("", HOSTILE, HOSTILE.encode(), properties)
    node.api("PUT", f"/api/users/{quote(HOSTILE)}", {"password": "x", "tags": HOSTILE})
    node.api("PUT", f"/api/vhosts/{quote(HOSTILE, safe='')}", {})
    node.api(
        "PUT",
        f"/api/policies/%2F/{quote(HOSTILE, safe='')}",
        {"pattern": "^$", "definition": {"max-length": 1}},
    )
    looker = look(viewport={"width": 1280, "height": 900}).enter()
    for name in PAGES:
        looker.go(name)
        looker.page.locator("main :is(table, p, form)").first.wait_for()
    looker.go(f"queues/%2F/{quote(HOSTILE, safe='')}")
    looker.page.locator("h1").get_by_text(SHOWN).wait_for()
    looker.page.get_by_text("Get messages").click()
    looker.page.get_by_role("button", name="Get", exact=True).click()
    looker.page.locator("article pre").get_by_text("onerror=alert(1)").wait_for()
    looker.go(f"queues/%2F/{quote('no ' + HOSTILE, safe='')}")
    looker.page.get_by_role("alert").first.wait_for()
    looker.page.keyboard.press("Control+k")
    looker.page.get_by_placeholder("A page, a queue").fill("<img")
    looker.page.get_by_role("listbox").get_by_text("onerror").first.wait_for()
    assert looker.page.locator("img").count() == 0
    # What is not there is a 404, which Chromium tells the console of.
    assert [text for text in looker.complaints if "404" not in text] == []


@pytest.fixture
def elsewhere() -> Iterator[Callable[[str], str]]:
    """Serves one page from another origin."""
    body = b""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Not here."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    def serve(page: str) -> str:
        nonlocal body
        body = page.encode()
        # Another origin for the browser, and another site too.
        return f"http://localhost:{server.server_port}/"

    yield serve
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("keeps", ["a cookie", "a password"])
def test_a_page_of_another_origin_makes_no_administrator(
    look: Callable[..., Looker], node: NodeClient, elsewhere: Callable[[str], str], keeps: str
) -> None:
    """The form that did it: a browser sends it unasked, with what it keeps for the server."""
    password = {"username": "guest", "password": "guest"}
    looker = look() if keeps == "a cookie" else look(http_credentials=password)
    if keeps == "a cookie":
        looker.enter()
    else:
        looker.page.goto(f"{looker.base}api/whoami")
    looker.page.goto(
        elsewhere(
            f"<form method=post enctype=text/plain action='{looker.base}api/definitions'>"
            """<input name='{"users":[{"name":"mallory","password":"x","tags":"administrator"}],"x":"' value='"}'>"""
            "</form><script>document.forms[0].submit()</script>"
        )
    )
    looker.page.wait_for_url(f"{looker.base}**")
    assert "forbidden" in looker.page.content()
    assert [row["name"] for row in node.get("/api/users")] == ["guest"]


def test_no_page_frames_the_ui(
    look: Callable[..., Looker], elsewhere: Callable[[str], str], process: BrokerProcess
) -> None:
    looker = look().enter()
    looker.page.goto(elsewhere(f"<iframe src='{looker.base}'></iframe>"))
    looker.page.locator("iframe").wait_for(state="attached")
    looker.page.wait_for_timeout(500)
    assert looker.page.frames[1].locator("#app").count() == 0
    assert any("frame-ancestors 'none'" in text for text in looker.complaints)


def test_the_words_of_a_login(look: Callable[..., Looker], node: NodeClient) -> None:
    node.user("plain")
    looker = look()
    for name, password, words in (
        ("guest", "wrong", "name or the password is wrong"),
        ("plain", "plain", "set_user_tags"),
    ):
        looker.log_in(name, password)
        looker.page.get_by_role("alert").get_by_text(words).wait_for()
    looker.enter()
    cookies = looker.context.cookies()
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]
    assert looker.page.evaluate("document.cookie") == ""
    looker.page.get_by_role("button", name="Log out").click()
    looker.page.get_by_label("Password").wait_for()
    assert looker.context.cookies() == []


def test_a_limit_is_traced_to_its_policy(look: Callable[..., Looker], node: NodeClient) -> None:
    channel = node.channel()
    channel.queue_declare("orders", arguments={"x-max-length": 9000})
    body = {"pattern": "^orders", "definition": {"max-length": 5000}, "apply-to": "queues"}
    node.api("PUT", "/api/policies/%2F/limits", body)
    for _ in range(3):
        channel.basic_publish("", "orders", b"hello")
    looker = look(viewport={"width": 1280, "height": 1000}).enter()
    looker.go("queues")
    looker.page.get_by_role("link", name="orders", exact=True).click()
    row = looker.page.get_by_role("row").filter(has_text="Max length")
    row.get_by_text("5,000").wait_for()
    assert "9,000 of the declaration" in row.inner_text().replace("\n", " ")
    looker.page.get_by_text("Get messages").click()
    looker.page.get_by_role("button", name="Get", exact=True).click()
    looker.sees("hello")
    looker.page.get_by_role("button", name="Purge…").click()
    dialog = looker.page.get_by_role("dialog")
    dialog.get_by_text("3 ready messages of").wait_for()
    dialog.get_by_role("button", name="Purge").click()
    dialog.wait_for(state="detached")
    assert channel.queue_declare("orders", passive=True).method.message_count == 0
    row.get_by_role("link", name="limits").click()
    looker.sees("^orders")
    assert looker.complaints == []


def test_a_policy_shows_what_it_would_do_before_it_does(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    channel = node.channel()
    for name in ("orders", "other"):
        channel.queue_declare(name)
        for _ in range(5):
            channel.basic_publish("", name, b"x")
    looker = look(viewport={"width": 1280, "height": 1000}).enter()
    looker.go("policies")
    looker.page.get_by_text("Add a policy").click()
    looker.page.get_by_label("Name", exact=True).fill("limits")
    looker.page.get_by_label("Pattern").fill("^orders")
    looker.page.get_by_label("Max length", exact=False).first.fill("2")
    looker.sees("It matches 1 queue, and would be in force on 1.")
    looker.sees("3 ready messages, the oldest of each queue, would be dropped")
    assert channel.queue_declare("orders", passive=True).method.message_count == 5
    looker.page.get_by_role("button", name="Save").click()
    looker.page.get_by_role("button", name="Edit").wait_for()
    assert channel.queue_declare("orders", passive=True).method.message_count == 2
    looker.page.get_by_role("button", name="Edit").click()
    assert looker.page.get_by_label("Pattern").input_value() == "^orders"
    looker.page.get_by_role("button", name="Delete…").click()
    looker.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    looker.sees("No policy: one sets limits")
    assert looker.complaints == []


def test_much_is_lost_only_by_who_types_it(look: Callable[..., Looker], node: NodeClient) -> None:
    channel = node.channel()
    for name in ("a", "b"):
        channel.queue_declare(name)
    looker = look().enter()
    looker.go("queues")
    looker.page.get_by_label("All on this page").check()
    looker.page.get_by_role("button", name="Delete", exact=True).click()
    dialog = looker.page.get_by_role("dialog")
    button = dialog.get_by_role("button", name="Delete")
    assert button.is_disabled()
    dialog.get_by_role("textbox").fill("delete 2")
    button.click()
    looker.sees("There is no queue yet")
    assert node.get("/api/queues") == []


def test_by_keyboard_alone(look: Callable[..., Looker], node: NodeClient) -> None:
    node.channel().queue_declare("orders.incoming")
    looker = look().enter()
    looker.page.keyboard.press("Control+k")
    looker.page.get_by_role("combobox").and_(looker.page.locator(":focus")).wait_for()
    looker.page.keyboard.type("incoming")
    looker.page.get_by_role("option", name="orders.incoming").wait_for()
    looker.page.keyboard.press("Enter")
    looker.sees("Why it is so")
    for _ in range(3):
        looker.page.keyboard.press("Tab")
    assert looker.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
