"""What a page does not show, or a browser cannot say, is neither lost nor done to something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.looker import Looker
from tests.support.node_client import NodeClient

WIDE = {"width": 1280, "height": 1000}
# Beyond what a double can hold, and a fraction that JavaScript writes as a whole number.
EXACT = '"id":1234567890123456789,"share":1.0'


def test_a_policy_that_is_changed_keeps_what_its_form_has_no_field_for(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    definition = {"dead-letter-exchange": "", "dead-letter-routing-key": "dead", "max-length": 5}
    body = {"pattern": "^a", "definition": definition, "apply-to": "classic_queues", "priority": 3}
    node.api("PUT", "/api/policies/%2F/dead", body)
    looker = look(viewport=WIDE).enter()
    looker.go("policies")
    looker.page.get_by_role("row").filter(has_text="dead").get_by_role(
        "button", name="Edit"
    ).click()
    form = looker.page.locator("details[open]")
    form.get_by_label("Max length", exact=False).first.fill("7")
    form.get_by_role("button", name="Save").click()
    looker.page.get_by_role("row").filter(has_text="Lim 7").wait_for()
    found = node.get("/api/policies/%2F/dead")
    assert found["definition"] == definition | {"max-length": 7}
    assert (found["apply-to"], found["priority"]) == ("classic_queues", 3)
    assert looker.complaints == []


def test_definitions_go_out_and_come_in_to_the_digit(
    look: Callable[..., Looker], node: NodeClient, tmp_path: Path
) -> None:
    node.api("PUT", "/api/queues/%2F/orders", {"durable": True})
    binding = {"routing_key": "", "arguments": {"id": 1234567890123456789, "share": 1.0}}
    node.api("POST", "/api/bindings/%2F/e/amq.headers/q/orders", binding)
    looker = look(accept_downloads=True).enter()
    looker.go("overview/definitions")
    with looker.page.expect_download() as download:
        looker.page.get_by_role("button", name="Save as a file").click()
    text = Path(download.value.path()).read_text()
    assert EXACT in text.replace(" ", "").replace("\n", "")
    file = tmp_path / "definitions.json"
    file.write_text(text)
    node.api("DELETE", "/api/queues/%2F/orders")
    looker.page.get_by_label("File").set_input_files(str(file))
    looker.page.get_by_role("button", name="Take it over").click()
    looker.sees("was taken over")
    (found,) = node.get("/api/bindings/%2F/e/amq.headers/q/orders")
    assert repr(found["arguments"]) == repr(binding["arguments"])
    assert looker.complaints == []


def test_a_global_parameter_is_set_to_the_digit(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    looker = look().enter()
    looker.go("admin/parameters")
    looker.page.get_by_label("Name").fill("owner")
    looker.page.get_by_label("Value as JSON").fill(f"{{{EXACT}}}")
    looker.page.get_by_role("button", name="Set").click()
    looker.sees("owner is set.")
    assert repr(node.get("/api/global-parameters/owner")["value"]) == repr(
        json.loads(f"{{{EXACT}}}")
    )
    assert looker.complaints == []


def test_a_header_is_offered_the_types_that_the_node_takes(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    node.channel().queue_declare("orders")
    looker = look(viewport=WIDE).enter()
    looker.go("queues/%2F/orders")
    looker.page.get_by_text("Publish a message to it").click()
    form = looker.page.locator("form").filter(has=looker.page.get_by_role("button", name="Publish"))
    form.get_by_role("button", name="Add one").click()
    form.get_by_label("Headers: name 1").fill("h")
    types = form.get_by_label("Headers: type 1")
    values = {"number": "1.5", "json": '{"a": [1]}', "text": "x"}
    for kind in [each.get_attribute("value") for each in types.locator("option").all()]:
        types.select_option(kind)
        if kind in values:
            form.get_by_label("Headers: value 1").fill(values[kind])
        form.get_by_role("button", name="Publish").click()
        form.get_by_text("Published, and in a queue.").wait_for()
    assert looker.complaints == []


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_no_browser_can_ask_for_is_not_taken_for_another(
    look: Callable[..., Looker], node: NodeClient, name: str
) -> None:
    channel = node.channel()
    for each in (name, "contents"):
        channel.queue_declare(each)
    looker = look(viewport=WIDE).enter()
    looker.go("queues")
    looker.page.get_by_label(f"Select / {name}", exact=True).check()
    looker.page.get_by_role("button", name="Purge").click()
    dialog = looker.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Purge").click()
    dialog.get_by_text("burrowctl").wait_for()
    dialog.get_by_role("button", name="Cancel").click()
    looker.page.get_by_role("link", name=name, exact=True).click()
    looker.sees("burrowctl")
    assert {row["name"] for row in node.get("/api/queues")} == {name, "contents"}
    assert looker.complaints == []


@pytest.mark.parametrize("kind", ["queues", "exchanges", "connections"])
def test_a_page_that_is_there_no_more_becomes_the_first(
    look: Callable[..., Looker], node: NodeClient, kind: str
) -> None:
    node.channel().queue_declare("orders")
    looker = look(viewport=WIDE).enter()
    looker.go("node")
    looker.arrives("node")
    looker.go(f"{kind}?page=3")
    looker.page.get_by_role("row").nth(1).wait_for()
    looker.page.get_by_role("alert").wait_for(state="detached")
    looker.page.go_back()
    looker.arrives("node")


@pytest.mark.parametrize(
    ("page", "other"),
    [("admin/configuration", "management.tcp.port"), ("node/log", "Server startup complete")],
)
def test_who_goes_back_finds_the_filter_as_it_was(
    look: Callable[..., Looker], node: NodeClient, page: str, other: str
) -> None:
    looker = look(viewport=WIDE).enter()
    looker.go(page)
    looker.page.get_by_label("Filter").fill("memory")
    looker.page.wait_for_url("**?name=memory")
    looker.page.get_by_label("Filter").blur()
    looker.page.go_back()
    looker.sees(other)
    assert looker.page.get_by_label("Filter").input_value() == ""
    assert looker.complaints == []


def test_two_windows_have_one_login(
    look: Callable[..., Looker], node: NodeClient, browser: Any
) -> None:
    node.user("bob", "/", tags="management")
    first = look(viewport=WIDE).enter()
    second = Looker(first.context, node.process)
    second.go("queues")
    second.page.get_by_role("button", name="Log out").click()
    second.log_in("bob", "bob")
    first.page.get_by_role("navigation", name="Pages").get_by_text("bob").wait_for()


def test_a_long_text_is_text_wherever_it_is_cut(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    channel = node.channel()
    channel.queue_declare("orders")
    channel.basic_publish("", "orders", "€".encode() * 20_000)
    looker = look(viewport=WIDE).enter()
    looker.go("queues/%2F/orders")
    looker.page.get_by_text("Get messages").click()
    looker.page.get_by_role("button", name="Get", exact=True).click()
    article = looker.page.locator("article")
    article.get_by_text("Its first 50,000 bytes.").wait_for()
    assert set(article.locator("pre").inner_text()) == {"€"}


def test_a_right_that_is_refused_can_be_mended(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    node.user("bob", "/", tags="management")
    looker = look(viewport=WIDE).enter()
    looker.go("admin/users/bob")
    looker.page.get_by_role("button", name="Change", exact=True).click()
    looker.page.get_by_label("write").first.fill("^(orders")
    looker.page.get_by_role("button", name="Save").first.click()
    looker.page.get_by_role("alert").wait_for()
    assert looker.page.get_by_label("write").first.input_value() == "^(orders"


def test_spaces_of_a_name_are_seen(look: Callable[..., Looker], node: NodeClient) -> None:
    node.channel().queue_declare("  orders ")
    looker = look(viewport=WIDE).enter()
    looker.go("queues")
    assert looker.page.locator("td .name").first.inner_text() == "  orders "
