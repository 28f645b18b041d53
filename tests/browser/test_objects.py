"""Exchanges, connections, channels, consumers and queues in Chromium, on one node for all of this module.

The node's world has a hostile string wherever one can be; each test that changes something uses names of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.browser.looker import HOSTILE, SHOWN, Looker
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient

WIDE = {"width": 1280, "height": 1000}
HELD = "work.held"


class World(NamedTuple):
    """The node, and the connection of the hostile client."""

    node: NodeClient
    client: str

    def channel(self, **properties: str) -> BlockingChannel:
        return self.node.connect(client_properties=properties).channel()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    settings = {"failed_logins.delay": "0"}
    process = BrokerProcess(tmp_path_factory.mktemp("objects") / "data", settings, {})
    process.start()
    node = NodeClient(process)
    hostile = {"connection_name": HOSTILE, "product": HOSTILE, HOSTILE: HOSTILE}
    channel = node.connect(client_properties=hostile).channel()
    channel.exchange_declare(HOSTILE, "topic", arguments={"alternate-exchange": HOSTILE})
    for name in (HOSTILE, HELD):
        channel.queue_declare(name, arguments={"x-dead-letter-exchange": HOSTILE})
        channel.queue_bind(name, HOSTILE, HOSTILE, {HOSTILE: HOSTILE})
        channel.basic_publish("", name, b"x")
        channel.basic_consume(name, lambda *_: None, consumer_tag=f"{HOSTILE} {name}")
    rows = node.get("/api/connections")
    yield World(node, next(row["name"] for row in rows if row["user_provided_name"] == HOSTILE))
    node.disconnect()
    assert not process.has_broken_an_invariant
    process.kill()


@pytest.fixture
def process(world: World) -> BrokerProcess:
    """`look` looks at the world's node."""
    return world.node.process


def at(*parts: str) -> str:
    return "/".join(quote(part, safe="") for part in parts)


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_each_page_shows_hostile_strings_as_text(
    look: Callable[..., Looker], world: World, theme: str, width: int
) -> None:
    looker = look(color_scheme=theme, viewport={"width": width, "height": 800}).enter()
    key = quote(HOSTILE, safe="")
    for address in (
        "exchanges",
        f"{at('exchanges', '/', HOSTILE)}?key={key}",
        f"{at('exchanges', '/', HOSTILE)}?key=other",
        "connections",
        at("connections", world.client),
        "channels",
        at("channels", f"{world.client} (1)"),
        "consumers",
        "queues",
        at("queues", "/", HOSTILE),
    ):
        looker.go(address)
        looker.page.locator("main :is(table, dl)").get_by_text("onerror").first.wait_for(
            state="attached"
        )
        scrolls = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not looker.page.evaluate(scrolls), address
        assert looker.page.locator("img").count() == 0
    looker.go(at("queues", "/", HOSTILE))
    looker.page.locator("h1").get_by_text(SHOWN).wait_for()
    assert looker.complaints == []


def test_where_a_key_would_go_and_why_not_elsewhere(
    look: Callable[..., Looker], world: World
) -> None:
    channel = world.channel()
    channel.exchange_declare("events", "topic")
    for name, key in (("created", "order.created"), ("paid", "order.paid"), ("all", "#")):
        channel.queue_declare(f"w.{name}")
        channel.queue_bind(f"w.{name}", "events", key)
    world.node.user("writer", "/")
    world.node.permit("writer", "/", write="^none$")
    looker = look(viewport=WIDE).enter()
    looker.go("exchanges")
    looker.page.get_by_role("link", name="events", exact=True).click()
    where = looker.page.get_by_role("region", name="Where would this key go?")
    where.get_by_label("Routing key").fill("order.created")
    where.get_by_label("Published by").fill("writer")
    looker.page.keyboard.press("Enter")
    where.get_by_text("It would go to 2 queues").wait_for()
    where.get_by_text("A publish would be refused: ACCESS_REFUSED").wait_for()
    assert where.get_by_role("row").filter(has_text="w.created").count() == 1
    missed = where.get_by_role("row").filter(has_text="w.paid")
    missed.get_by_text("word 2 is 'created', not 'paid'").wait_for()
    # The address is the question: who gets it sees the same.
    looker.page.reload()
    where.get_by_text("It would go to 2 queues").wait_for()
    assert where.get_by_label("Routing key").input_value() == "order.created"
    assert channel.queue_declare("w.all", passive=True).method.message_count == 0
    assert looker.complaints == []


def test_bind_publish_get_unbind_and_delete(look: Callable[..., Looker], world: World) -> None:
    world.channel().queue_declare("b.queue", durable=True)
    looker = look(viewport=WIDE).enter()
    page = looker.page
    looker.go("exchanges")
    page.get_by_text("Declare an exchange").click()
    page.get_by_label("Name", exact=True).fill("b.headers")
    page.get_by_label("Type").select_option("headers")
    page.get_by_role("button", name="Declare").click()
    page.get_by_role("link", name="b.headers").first.click()
    looker.sees("Nothing is bound to it")
    page.get_by_text("Bind something to it").click()
    page.get_by_label("Its name").fill("b.queue")
    form = page.locator("form").filter(has=page.get_by_role("button", name="Bind"))
    form.nth(0).get_by_role("button", name="Add one").click()
    page.get_by_label("Arguments: name 1").fill("size")
    page.get_by_label("Arguments: type 1").select_option("number")
    page.get_by_label("Arguments: value 1").fill("three")
    form.nth(0).get_by_role("button", name="Bind").click()
    looker.sees("size: three is no number.")
    page.get_by_label("Arguments: value 1").fill("3")
    form.nth(0).get_by_role("button", name="Bind").click()
    looker.sees('{"size":3}')
    page.get_by_text("Publish a message").click()
    publish = page.locator("form").filter(has=page.get_by_role("button", name="Publish"))
    for type_, words in (("text", "no queue took it"), ("number", "in a queue")):
        if type_ == "text":
            publish.get_by_role("button", name="Add one").click()
        page.get_by_label("Headers: name 1").last.fill("size")
        page.get_by_label("Headers: type 1").last.select_option(type_)
        page.get_by_label("Headers: value 1").last.fill("3")
        publish.get_by_label("Body", exact=True).fill('{"a": 1}')
        publish.get_by_role("button", name="Publish").click()
        publish.get_by_text(words).wait_for()
    page.get_by_role("link", name="b.queue").first.click()
    page.get_by_text("Get messages").click()
    page.get_by_label("And then").select_option("ack_requeue_false")
    looker.sees("They are acknowledged: gone for good.")
    page.get_by_role("button", name="Get", exact=True).click()
    page.locator("article").get_by_text('{"a": 1}').wait_for()
    page.locator("article").get_by_text("header size").wait_for()
    page.get_by_role("row").filter(has_text="b.headers").get_by_role("button").last.click()
    page.get_by_role("row").filter(has_text="b.headers").wait_for(state="detached")
    looker.go(at("exchanges", "/", "b.headers"))
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    looker.arrives("exchanges")
    assert world.node.api("GET", "/api/exchanges/%2F/b.headers").status == 404
    assert looker.complaints == []


def test_who_holds_the_oldest_message_and_is_closed_with_a_reason(
    look: Callable[..., Looker], world: World
) -> None:
    held = world.node.connect(client_properties={"connection_name": "the slow one"})
    channel = held.channel()
    channel.basic_qos(prefetch_count=7)
    channel.queue_declare("h.queue")
    for _ in range(3):
        channel.basic_publish("", "h.queue", b"x")
    channel.basic_consume("h.queue", lambda *_: None, consumer_tag="sleeper")
    looker = look(viewport=WIDE).enter()
    looker.go(at("queues", "/", "h.queue"))
    table = looker.page.get_by_role("table", name="Who holds unacked messages")
    table.get_by_role("link", name="the slow one (1)").click()
    looker.page.get_by_role("cell", name="sleeper", exact=True).first.wait_for()
    looker.sees("7 prefetch of a consumer")
    looker.page.get_by_role("link", name="the slow one").click()
    looker.page.get_by_role("button", name="Close…").click()
    dialog = looker.page.get_by_role("dialog")
    dialog.get_by_text("3 unacked messages go back").wait_for()
    dialog.get_by_label("Reason").fill("it holds all up: größer als 漢")
    dialog.get_by_role("button", name="Close").click()
    dialog.wait_for(state="detached")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        for _ in range(5):
            held.process_data_events(5)
    assert closed.value.reply_text == "CONNECTION_FORCED - it holds all up: größer als 漢"
    looker.page.reload()
    looker.sees("It is gone")
    assert [text for text in looker.complaints if "404" not in text] == []


def test_what_each_tag_sees(look: Callable[..., Looker], world: World) -> None:
    for tag in ("management", "policymaker", "monitoring"):
        world.node.user(f"t.{tag}", tags=tag)
    world.node.permit("t.policymaker", "/", configure="", write="", read="")
    for tag, connections, exchange in (
        ("management", "No client is connected.", "User not authorised to access virtual host"),
        ("policymaker", "No client is connected.", "topic exchange in virtual host /"),
        ("monitoring", "onerror", "topic exchange in virtual host /"),
    ):
        looker = look(viewport=WIDE)
        looker.log_in(f"t.{tag}", f"t.{tag}")
        looker.page.get_by_role("navigation", name="Pages").first.wait_for()
        looker.go("connections")
        looker.sees(connections)
        looker.go(at("exchanges", "/", HOSTILE))
        looker.sees(exchange)
        if tag == "policymaker":
            assert looker.page.get_by_label("Published by").count() == 0
            looker.page.get_by_role("button", name="Unbind").first.click()
            looker.sees("401")
        if tag != "monitoring":
            looker.go(at("connections", world.client))
            looker.sees("User not authorised to access object")
        looker.context.close()


def test_queues_columns_bulk_and_arguments(look: Callable[..., Looker], world: World) -> None:
    channel = world.channel()
    for name in ("q.one", "q.two"):
        channel.queue_declare(name)
        channel.basic_publish("", name, b"x")
    looker = look(viewport=WIDE).enter()
    page = looker.page
    looker.go("queues?name=q.")
    page.get_by_text("Columns").first.click()
    page.get_by_label("Memory", exact=True).check()
    page.get_by_role("columnheader", name="Memory", exact=True).wait_for()
    assert "memory" in page.evaluate("location.hash")
    page.get_by_label("All on this page").check()
    page.get_by_role("button", name="Purge", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("2 ready messages of 2 queues").wait_for()
    assert dialog.get_by_role("button", name="Purge").is_disabled()
    dialog.get_by_role("textbox").fill("purge 2")
    dialog.get_by_role("button", name="Purge").click()
    looker.sees("Purged: 2 of 2.")
    assert channel.queue_declare("q.one", passive=True).method.message_count == 0
    page.get_by_text("Declare a queue").click()
    page.get_by_label("Name", exact=True).fill("q.made")
    page.get_by_label("Max length", exact=False).first.fill("10")
    page.locator("[name=x-dead-letter-routing-key]").fill("q.one")
    page.get_by_label("Dead letters to the default exchange").check()
    page.get_by_role("button", name="Declare").click()
    page.locator("form").get_by_role("link", name="q.made").click()
    path = page.get_by_role("listitem").filter(has_text="q.made")
    path.get_by_role("link", name="q.one").wait_for()
    assert world.node.get("/api/queues/%2F/q.made")["arguments"] == {
        "x-max-length": 10,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "q.one",
    }
    assert looker.complaints == []


def test_a_blocked_connection_says_why(look: Callable[..., Looker], world: World) -> None:
    channel = world.channel(connection_name="publisher")
    looker = look(viewport=WIDE).enter()
    world.node.ctl("set_vm_memory_high_watermark", "absolute", "1MB")
    try:
        channel.basic_publish("", HELD, b"x")
        looker.go("connections?text=blocked")
        row = looker.page.get_by_role("row").filter(has_text="publisher")
        row.get_by_text("alarm", exact=True).wait_for()
        row.get_by_title("since ").get_by_text("for ").wait_for()
        row.get_by_role("link", name="publisher").click()
        looker.sees("The node is low on memory: publishers wait")
        looker.sees(", since ")
    finally:
        world.node.ctl("set_vm_memory_high_watermark", "0.9")
    assert looker.complaints == []


def test_what_is_typed_stays_while_the_page_asks_again(
    look: Callable[..., Looker], world: World
) -> None:
    looker = look(viewport=WIDE).enter()
    looker.go(at("queues", "/", HELD))
    looker.page.get_by_text("Bind it to an exchange").click()
    field: Any = looker.page.get_by_label("Exchange", exact=True)
    field.fill("amq.top")
    with looker.page.expect_response("**/pages/queue/**"):
        pass
    looker.page.locator(".seen").get_by_text(":").wait_for()
    assert field.input_value() == "amq.top"


def test_what_is_gone_is_not_a_node_that_is_away(look: Callable[..., Looker], world: World) -> None:
    channel = world.channel(connection_name="short-lived")
    channel.queue_declare("g.queue")
    looker = look(viewport=WIDE).enter()
    looker.go(at("queues", "/", "g.queue"))
    looker.sees("Why it is so")
    channel.queue_delete("g.queue")
    looker.sees("It is gone, or was never there.")
    looker.sees("Why it is so")
    looker.go("connections?text=short-lived")
    looker.page.get_by_role("link", name="short-lived").click()
    looker.page.get_by_role("heading", name="Channels").wait_for()
    channel.connection.close()
    looker.sees("It has been closed; this is what was last known of it.")
    looker.page.get_by_role("button", name="1 h").click()
    looker.sees("It has been closed; this is what was last known of it.")
    assert looker.page.locator(".away, .badge").count() == 0
    looker.go("queues?name=%5B&regex=1")
    looker.sees("invalid regular expression")
    assert looker.page.get_by_role("table").count() == 0, "a question that is refused has no answer"
    assert [text for text in looker.complaints if "40" not in text] == []


def test_queues_are_pinned_and_compared(look: Callable[..., Looker], world: World) -> None:
    channel = world.channel()
    channel.queue_declare("p.short", arguments={"x-max-length": 9})
    channel.queue_declare("p.long", durable=True)
    for _ in range(3):
        channel.basic_publish("", "p.short", b"x")
    looker = look(viewport=WIDE).enter()
    page = looker.page
    for name in ("p.short", "p.long", HOSTILE):
        looker.go(at("queues", "/", name))
        page.get_by_role("button", name="Pin", exact=True).click()
    page.get_by_role("link", name="Compare with 2 pinned").click()
    figures = page.get_by_role("table", name="Figures", exact=True)
    ready = figures.get_by_role("row").filter(has_text="Ready").get_by_role("cell")
    assert ready.nth(1).inner_text() == "3"
    assert ready.nth(2).inner_text() == "0"
    settings = page.get_by_role("table", name="Settings", exact=True).get_by_role("row")
    settings.filter(has_text="Max length").get_by_text("differs").wait_for()
    settings.filter(has_text="Durable").get_by_text("differs").wait_for()
    assert settings.filter(has_text="Operator policy").get_by_text("differs").count() == 0
    page.get_by_role("button", name="Unpin p.long").click()
    settings.filter(has_text="Durable").get_by_text("differs").wait_for(state="detached")
    page.reload()
    page.get_by_role("button", name="Unpin p.short").wait_for()
    assert page.locator("ul.pinned > li").count() == 2
    channel.queue_delete("p.short")
    looker.sees("which is not there, or not for this user")
    page.get_by_role("button", name="Unpin p.short").click()
    page.get_by_role("button", name="Unpin ").click()
    looker.sees("Nothing is pinned.")
    for text in ("pinned=%5B1%2C%5B%22a%22%5D%5D", "pinned=no"):
        looker.go(f"queues/compare?{text}")
        looker.sees("Nothing is pinned.")
    assert page.locator("img").count() == 0
    assert looker.complaints == []
