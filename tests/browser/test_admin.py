"""An administrator's pages, the node's, and definitions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pika
import pytest

from tests.browser.looker import HOSTILE, Looker
from tests.support.node_client import NodeClient

ADDRESSES = (
    "admin/users", "admin/users/app", "admin/vhosts", "admin/vhosts/shop", "admin/permissions", "admin/parameters", "admin/shovels", "admin/import",
    "admin/flags", "admin/configuration?all=1", "node", "node/log", "overview/definitions",
)  # fmt: skip


def fill(node: NodeClient) -> None:
    node.vhost("shop")
    node.user("app", "shop", tags="monitoring")
    topic = {"exchange": "amq.topic", "write": "^a", "read": "^b"}
    node.api("PUT", "/api/topic-permissions/shop/app", topic)
    node.api("PUT", "/api/vhost-limits/shop/max-queues", {"value": 5})
    node.api("PUT", "/api/global-parameters/owner", {"value": {"team": "x" * 80}})
    shovel = {"src-uri": [], "src-queue": "a", "dest-uri": "amqp://", "dest-queue": "b"}
    node.api("PUT", "/api/parameters/shovel/%2F/still", {"value": shovel})
    node.import_from_itself("nosuch")


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_every_page_is_shown_without_a_complaint(
    look: Callable[..., Looker], node: NodeClient, theme: str, width: int
) -> None:
    fill(node)
    looker = look(color_scheme=theme, viewport={"width": width, "height": 800}).enter()
    for address in ADDRESSES:
        looker.go(address)
        looker.page.locator("main :is(table, .log, input[type=file])").first.wait_for()
        scrolls = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not looker.page.evaluate(scrolls), address
    assert looker.complaints == []


@pytest.mark.parametrize("width", [1280, 390])
def test_long_words_without_a_space_are_broken(
    look: Callable[..., Looker], node: NodeClient, width: int
) -> None:
    word = "x" * 200
    node.api("PUT", "/api/users/bob", {"password": "x", "tags": f"{word},{word}y"})
    arguments = {"x-dead-letter-exchange": word, "x-dead-letter-routing-key": word}
    node.api("PUT", "/api/queues/%2F/q", {"durable": True, "arguments": arguments})
    looker = look(viewport={"width": width, "height": 800}).enter()
    for address in ("admin/users", "admin/users/bob", "queues/%2F/q"):
        looker.go(address)
        looker.page.get_by_text(word).locator("visible=true").first.wait_for()
        scrolls = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not looker.page.evaluate(scrolls), address


def test_names_that_are_hostile_are_text(look: Callable[..., Looker], node: NodeClient) -> None:
    name = quote(HOSTILE, safe="")
    node.api("PUT", f"/api/vhosts/{name}", {"description": HOSTILE, "tags": HOSTILE})
    node.api("PUT", f"/api/users/{name}", {"password": "x", "tags": HOSTILE})
    rights = {"configure": "<b>.*", "write": "<i>", "read": "<img src=x>"}
    node.api("PUT", f"/api/permissions/{name}/{name}", rights)
    node.api("PUT", f"/api/topic-permissions/{name}/{name}", {"exchange": HOSTILE, **rights})
    node.api("PUT", f"/api/global-parameters/{name}", {"value": HOSTILE})
    policy = {"pattern": "<b>", "definition": {"max-length": 1}, "apply-to": "queues"}
    node.api("PUT", f"/api/operator-policies/{name}/{name}", policy)
    looker = look().enter()
    for address in (
        *ADDRESSES, "policies", f"admin/users/{name}", f"admin/vhosts/{name}", f"admin/users/no{name}",
        f"node/log?name={name}", f"{name}/{name}?vhost={name}",
    ):  # fmt: skip
        looker.go(address)
        looker.page.locator(
            "main :is(table, .log, .empty, input[type=file], [role=alert])"
        ).first.wait_for()
        assert (
            looker.page.locator("main :is(b:not(:empty), i, img)").filter(has_text="<").count() == 0
        )
        assert looker.page.locator("img").count() == 0
    looker.page.keyboard.press("Control+k")
    looker.page.get_by_role("combobox").and_(looker.page.locator(":focus")).wait_for()
    looker.page.keyboard.type("img src")
    looker.page.get_by_role("listbox").get_by_text("virtual host").wait_for()
    assert looker.page.locator("img").count() == 0
    assert [text for text in looker.complaints if "404" not in text] == []


def test_a_user_is_made_permitted_changed_and_deleted(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    looker = look(viewport={"width": 1280, "height": 1000}).enter()
    page = looker.page
    looker.go("admin/users")
    page.get_by_text("Add a user").click()
    page.get_by_label("Name", exact=True).fill("app")
    page.get_by_label("Password", exact=True).fill("first")
    page.get_by_role("button", name="Add").click()
    looker.sees("app is there")
    page.get_by_role("link", name="app", exact=True).click()
    looker.sees("It may enter no virtual host")
    page.locator("main").get_by_label("Virtual host", exact=True).first.fill("/")
    page.get_by_label("configure").fill("^app-")
    page.get_by_role("button", name="Permit").click()
    page.get_by_role("row").filter(has_text="^app-").wait_for()
    page.get_by_text("Change tags or password").click()
    page.get_by_label("monitoring").check()
    page.get_by_role("button", name="Save", exact=True).last.click()
    looker.sees("Tagged monitoring")
    assert node.connect("guest").is_open
    assert node.get("/api/permissions/%2F/app")["configure"] == "^app-"
    assert node.get("/api/users/app")["tags"] == ["monitoring"]
    login = node.api("POST", "/api/login", {"username": "app", "password": "first"})
    assert login.status == 200, "the password stayed as it was"
    page.get_by_label("Connections").fill("7")
    page.get_by_role("button", name="Set").first.click()
    looker.sees("Saved.")
    assert node.get("/api/user-limits/app")[0]["value"] == {"max-connections": 7}
    page.get_by_role("button", name="Take away…").click()
    assert node.get("/api/users/app/permissions"), "nothing goes by one click"
    page.get_by_role("dialog").get_by_role("button", name="Take away").click()
    looker.sees("It may enter no virtual host")
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    looker.arrives("admin/users")
    looker.sees("app is deleted.")
    assert [row["name"] for row in node.get("/api/users")] == ["guest"]
    assert looker.complaints == []


def test_a_virtual_host_goes_only_by_its_name(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    node.vhost("shop")
    node.channel(vhost="shop").queue_declare("q")
    looker = look().enter()
    looker.go("admin/vhosts/shop")
    looker.sees("1 queue with 0 messages")
    looker.page.get_by_role("button", name="Delete…").click()
    dialog = looker.page.get_by_role("dialog")
    button = dialog.get_by_role("button", name="Delete")
    assert button.is_disabled()
    dialog.get_by_role("textbox").fill("shop")
    button.click()
    looker.arrives("admin/vhosts")
    assert [row["name"] for row in node.get("/api/vhosts")] == ["/"]


def test_definitions_are_looked_at_before_they_are_taken_over(
    look: Callable[..., Looker], node: NodeClient, tmp_path: Path
) -> None:
    looker = look(accept_downloads=True).enter()
    looker.go("overview/definitions")
    with looker.page.expect_download() as download:
        looker.page.get_by_role("button", name="Save as a file").click()
    exported = json.loads(Path(download.value.path()).read_text())
    assert exported["users"][0]["name"] == "guest"
    exported["queues"] = [{"name": "fresh", "vhost": "/", "durable": True, "arguments": {}}]
    exported["users"][0]["tags"] = ["administrator", "night-shift"]
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(exported))
    looker.page.get_by_label("File").set_input_files(str(file))
    looker.page.get_by_role("row").filter(has_text="night-shift").get_by_text("changed").wait_for()
    assert node.get("/api/queues") == []
    looker.page.get_by_role("button", name="Take it over").click()
    looker.sees("was taken over")
    assert [row["name"] for row in node.get("/api/queues")] == ["fresh"]
    file.write_text("no JSON")
    looker.page.get_by_label("File").set_input_files([])
    looker.page.get_by_label("File").set_input_files(str(file))
    looker.page.get_by_role("alert").wait_for()
    assert looker.complaints == []


def test_an_operator_policy_says_what_it_would_drop(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    channel = node.channel()
    channel.queue_declare("orders")
    for _ in range(5):
        channel.basic_publish("", "orders", b"x" * 100)
    looker = look(viewport={"width": 1280, "height": 1000}).enter()
    looker.go("policies")
    looker.page.get_by_text("Add an operator policy").click()
    form = looker.page.locator("details[open]")
    form.get_by_label("Name", exact=True).fill("cap")
    form.get_by_label("Pattern").fill("^orders")
    form.get_by_label("Max length bytes").fill("250")
    form.get_by_text("about 3 ready messages, the oldest of each queue").wait_for()
    form.get_by_text("for good").wait_for()
    form.get_by_role("button", name="Save").click()
    looker.page.get_by_role("row").filter(has_text="cap").wait_for()
    assert channel.queue_declare("orders", passive=True).method.message_count == 2
    assert looker.complaints == []


def test_the_log_is_live_and_filtered(look: Callable[..., Looker], node: NodeClient) -> None:
    looker = look().enter()
    looker.go("node/log")
    log = looker.page.get_by_role("log")
    log.get_by_text("Server startup complete").wait_for()
    node.vhost("fresh-one")
    log.get_by_text("/api/vhosts/fresh-one").wait_for()
    looker.page.get_by_label("Filter").fill("fresh-one")
    looker.page.keyboard.press("Enter")
    log.get_by_text("Server startup complete").wait_for(state="detached")
    looker.page.get_by_label("At least").select_option("error")
    log.get_by_text("No line is like this.").wait_for()
    assert "level=error" in looker.page.url
    assert looker.complaints == []


def test_a_backup_is_begun_and_watched(
    look: Callable[..., Looker], node: NodeClient, tmp_path: Path
) -> None:
    channel = node.channel()
    channel.queue_declare("orders", durable=True)
    channel.basic_publish("", "orders", b"x", pika.BasicProperties(delivery_mode=2))
    looker = look(viewport={"width": 1280, "height": 1000}).enter()
    looker.go("node")
    looker.page.get_by_text("Back up").click()
    looker.page.get_by_label("Directory on the node's machine").fill("not/absolute")
    looker.page.get_by_role("button", name="Start").click()
    looker.page.locator("details").get_by_role("alert").wait_for()
    looker.page.get_by_label("Directory on the node's machine").fill(str(tmp_path / "monday"))
    looker.page.get_by_role("button", name="Start").click()
    looker.sees("done")
    looker.sees("1 message in 1 queue")
    assert [text for text in looker.complaints if "400" not in text] == []


def test_a_backup_ends_with_the_node_that_made_it(
    look: Callable[..., Looker], tmp_path: Path
) -> None:
    looker = look(viewport={"width": 1280, "height": 1000}).enter()
    looker.go("node")
    looker.page.get_by_text("Back up").click()
    begun = {"state": "writing", "directory": "/monday", "reason": ""}
    figures = dict.fromkeys(("files_done", "files", "bytes_done", "bytes", "messages", "queues"), 1)

    def answer(route: Any) -> None:
        if route.request.method == "POST":
            route.fulfill(json={**begun, **figures})
        else:
            route.fulfill(status=404, json={"error": "Object Not Found", "reason": "Not Found"})

    looker.page.route("**/api/burrowmq/backup", answer)
    looker.page.get_by_label("Directory on the node's machine").fill(str(tmp_path / "monday"))
    looker.page.get_by_role("button", name="Start").click()
    looker.sees("failed, the node was stopped before it was done")
    assert looker.page.get_by_role("button", name="Start").is_enabled()


def test_a_policy_says_where_it_is_in_force(look: Callable[..., Looker], node: NodeClient) -> None:
    for name in ("orders", "returns"):
        node.channel().queue_declare(name)
    for name, pattern, priority in (("wide", ".*", 0), ("narrow", "^orders", 5)):
        body = {"pattern": pattern, "definition": {"max-length": 5}, "apply-to": "queues"}
        node.api("PUT", f"/api/policies/%2F/{name}", {**body, "priority": priority})
    looker = look(viewport={"width": 1280, "height": 1000}).enter()
    looker.go("policies")
    row = looker.page.get_by_role("row").filter(has_text="wide")
    row.get_by_text("Lim 5").wait_for()
    assert row.get_by_role("cell").all_inner_texts()[5:8] == ["0", "1", "1"]
    assert looker.complaints == []


def test_a_filter_that_finds_nothing_does_not_say_that_there_is_nothing(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    body = {"pattern": ".*", "definition": {"max-length": 5}, "apply-to": "queues"}
    node.api("PUT", "/api/policies/%2F/kept", body)
    looker = look().enter()
    looker.go("policies?name=nosuch")
    looker.page.get_by_text("Nothing has such a name.").first.wait_for()
    assert looker.page.get_by_text("No policy: one sets").count() == 0
    looker.go("policies")
    looker.sees("1 policy")


def test_a_shovel_is_added_watched_and_deleted(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    channel = node.channel()
    channel.queue_declare("here", durable=True)
    channel.basic_publish("", "here", b"x")
    looker = look().enter()
    looker.go("admin/shovels")
    looker.sees("No shovel: one moves messages")
    page = looker.page
    page.get_by_text("Add a shovel").click()
    for label, text in (("Name", "mine"), ("Source queue", "here"), ("Destination queue", "there")):
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Add", exact=True).click()
    looker.sees("1 moved")
    assert channel.queue_declare("there", passive=True).method.message_count == 1
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    looker.sees("No shovel: one moves messages")
    assert looker.complaints == []


def test_an_import_is_watched_and_stopped(look: Callable[..., Looker], node: NodeClient) -> None:
    looker = look().enter()
    looker.go("admin/import")
    looker.sees("Nothing was imported since this node started")
    channel = node.channel()
    channel.queue_declare("here", durable=True)
    channel.basic_consume("here", lambda *_: None)
    node.import_from_itself("here")
    looker.sees("the queue there has consumers: stop them")
    page = looker.page
    page.get_by_role("button", name="Stop…").click()
    assert node.get("/api/burrowmq/import")["state"] == "running", "nothing goes by one click"
    page.get_by_role("dialog").get_by_role("button", name="Stop", exact=True).click()
    page.locator("main p").get_by_text("stopped", exact=True).wait_for()
    page.get_by_role("button", name="Stop…").wait_for(state="detached")
    assert node.get("/api/burrowmq/import")["state"] == "stopped"
    assert [text for text in looker.complaints if "404" not in text] == []


def test_what_is_in_a_queue_is_moved_to_another(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    channel = node.channel()
    channel.queue_declare("full", durable=True)
    for _ in range(3):
        channel.basic_publish("", "full", b"x")
    looker = look().enter()
    looker.go("queues/%2F/full")
    looker.page.get_by_text("Move messages").click()
    looker.page.get_by_label("To the queue").fill("empty")
    looker.page.get_by_role("button", name="Move", exact=True).click()
    looker.sees("They are on their way to empty")
    looker.go("queues/%2F/empty")
    looker.sees("3 ready")
    assert looker.complaints == []
