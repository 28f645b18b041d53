"""Every page in every state that an operator may meet it in: nothing there, much, hostile, forbidden, away, in trouble.

`pytest tests/browser/test_states.py -m "slow or long" -s` prints the table of docs/management-ui.md; with
BURROWMQ_TEST_PICTURES=DIR each cell leaves a picture there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pika
import pytest

from tests.browser.contrast import WEAK_TEXTS
from tests.browser.looker import HOSTILE, Looker
from tests.crash.faulty_disk import FaultyNode
from tests.support.node_client import NodeClient

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
ANYTHING = "main :is(table, .figures, .log, .pinned, input[type=file], .empty, [role=alert])"
MANY = 1_000
CLIENTS = 120
PERSISTENT = pika.BasicProperties(delivery_mode=2)
GIVES_WAY = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"  # no scrolling sideways
# What a page says of something that it forgot to ask whether it is there.
FORGOTTEN = r"""() => (document.body.innerText.match(/\b(undefined|NaN|null|Infinity|Invalid Date)\b|\[object/g) ?? [])"""


class Scene(NamedTuple):
    """A node, what is on it, and how it is called."""

    node: NodeClient
    process: FaultyNode
    name: str
    user: str = "guest"

    def addresses(self) -> dict[str, str]:
        """Each page of the one thing of its kind."""
        name = quote(self.name, safe="")
        rows = self.node.get("/api/connections")
        rows.sort(key=lambda row: row["state"] != "blocked")
        client = quote(rows[0]["name"], safe="") if rows else "nobody"
        pins = quote(json.dumps([["/", self.name], ["/", "other"]]))
        return {
            "overview": "overview", "definitions": "overview/definitions", "queues": "queues", "queue": f"queues/%2F/{name}",
            "compare": f"queues/compare?pinned={pins}", "exchanges": "exchanges", "exchange": f"exchanges/%2F/{name}?key=k",
            "connections": "connections", "connection": f"connections/{client}", "channels": "channels",
            "channel": f"channels/{client}%20(1)", "consumers": "consumers", "policies": "policies", "users": "admin/users",
            "user": f"admin/users/{name}", "vhosts": "admin/vhosts", "vhost": f"admin/vhosts/{name}",
            "permissions": "admin/permissions", "parameters": "admin/parameters", "shovels": "admin/shovels", "import": "admin/import", "flags": "admin/flags",
            "configuration": "admin/configuration", "node": "node", "log": "node/log",
        }  # fmt: skip

    def fill(self) -> None:
        """One of each."""
        name = quote(self.name, safe="")
        properties = {"connection_name": self.name, "product": self.name}
        channel = self.node.connect(client_properties=properties).channel()
        channel.exchange_declare(self.name, "topic", durable=True)
        channel.queue_declare(self.name, durable=True, arguments={"x-max-length": 9})
        channel.queue_bind(self.name, self.name, "k")
        for _ in range(3):
            channel.basic_publish("", self.name, b"x", PERSISTENT)
        channel.basic_consume(self.name, lambda *_: None)
        self.node.api("PUT", f"/api/vhosts/{name}", {"description": self.name})
        self.node.api("PUT", f"/api/users/{name}", {"password": "x", "tags": "management"})
        rights = {"configure": "", "write": "^a", "read": ".*"}
        self.node.api("PUT", f"/api/permissions/{name}/{name}", rights)
        policy = {"pattern": "^", "definition": {"max-length": 5}, "apply-to": "queues"}
        for kind in ("policies", "operator-policies"):
            self.node.api("PUT", f"/api/{kind}/%2F/{name}", policy)
        self.node.api("PUT", f"/api/global-parameters/{name}", {"value": {self.name: 1}})
        shovel = {"src-uri": [], "src-queue": self.name, "dest-uri": [], "dest-queue": self.name}
        self.node.api("PUT", f"/api/parameters/shovel/%2F/{name}", {"value": shovel})


def nothing(scene: Scene) -> None:
    """A node as it is installed."""


def one(scene: Scene) -> None:
    scene.fill()


def many(scene: Scene) -> None:
    """More of everything than a page shows."""
    names = [f"{scene.name}.{at:04}" for at in range(MANY)]
    common = {"vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
    rule = {"vhost": "/", "apply-to": "queues", "definition": {"max-length": 5}, "priority": 0}
    document = {
        "queues": [{"name": name, **common} for name in names],
        "exchanges": [{"name": name, "type": "topic", "internal": False, **common} for name in names],
        "bindings": [{"source": name, "vhost": "/", "destination": scene.name, "destination_type": "queue", "routing_key": "k",
                      "arguments": {}} for name in names],
        "users": [{"name": name, "password_hash": "", "tags": "management"} for name in names],
        "permissions": [{"user": name, "vhost": "/", "configure": "", "write": "", "read": ".*"} for name in names],
        "policies": [{"name": name, "pattern": f"^{name}$", **rule} for name in names],
        "global_parameters": [{"name": name, "value": 1} for name in names],
    }  # fmt: skip
    scene.fill()
    answer = scene.node.api("POST", "/api/definitions", document)
    assert answer.status == 204, answer
    for name in names[:CLIENTS]:
        scene.node.api("PUT", f"/api/vhosts/{name}", {})
        channel = scene.node.connect(client_properties={"connection_name": name}).channel()
        channel.basic_consume(scene.name, lambda *_: None)


def may_not(scene: Scene) -> None:
    """Somebody with a tag and no permission."""
    scene.fill()
    scene.node.user(scene.user, tags="management")


def alarm(scene: Scene) -> None:
    scene.fill()
    scene.node.ctl("set_vm_memory_high_watermark", "absolute", "1MB")
    publisher = scene.node.connect(client_properties={"connection_name": "publisher"}).channel()
    publisher.basic_publish("", scene.name, b"x")


def refused(scene: Scene) -> None:
    """The disk refuses the files of the queue."""
    scene.fill()
    part = scene.process.queue_files(scene.name)
    scene.process.refuse(
        *(
            {"operation": each, "part": part, "error": "EIO"}
            for each in ("pwrite", "pwritev", "fdatasync", "open")
        )
    )
    channel = scene.node.channel()
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.NackError):
        channel.basic_publish("", scene.name, b"x" * 100, PERSISTENT)


def as_it_is(looker: Looker) -> None:
    """Nothing is done to the browser."""


def offline(looker: Looker) -> None:
    """The node goes away under the page."""
    looker.context.set_offline(True)
    looker.page.clock.fast_forward(6_000)


def paused(looker: Looker) -> None:
    button = looker.page.get_by_role("button", name="Pause")
    if button.is_visible():
        button.click()


GONE = "It is gone, or was never there."
FORBIDDEN = "This user has not the tag or the permission for it."
OBJECTS = ("queue", "exchange", "connection", "channel", "user", "vhost")
# What is read once, when the page opens, is not old: these say nothing until something is asked for.
READ_ONCE = {"definitions", "flags", "configuration"}
ADMIN = ("users", "user", "vhosts", "vhost", "permissions", "parameters", "shovels", "flags", "configuration", "definitions")  # fmt: skip


class State(NamedTuple):
    """How the node is, how the browser is, and what pages say then: what is not named is only shown."""

    arrange: Callable[[Scene], None]
    says: Mapping[str, str] = {}
    meanwhile: Callable[[Looker], None] = as_it_is
    everywhere: str = ""
    name: str = "orders"
    user: str = "guest"
    viewport: Mapping[str, int] = WIDE
    theme: str = "light"


STATES = {
    "empty": State(
        nothing,
        {
            **dict.fromkeys(OBJECTS, GONE),
            "overview": "All well",
            "compare": "which is not there",
            "queues": "No queue yet",
            "connections": "No client is connected.",
            "channels": "No channel is open.",
            "consumers": "Nobody consumes anything.",
            "policies": "No policy: one sets limits",
            "parameters": "None is set.",
            "shovels": "No shovel: one moves messages",
        },
    ),
    "one": State(one, {"queue": "Why it is so"}),
    "one, dark": State(one, theme="dark"),
    "one, narrow": State(one, viewport=NARROW),
    "1,000": State(many, {"queues": "Page 1 of", "users": "Page 1 of", "policies": "Page 1 of"}),
    "1,000, narrow, dark": State(many, viewport=NARROW, theme="dark"),
    "hostile names": State(one, {"queue": "Why it is so"}, name=HOSTILE),
    "no rights": State(
        may_not,
        {
            "overview": "All well",
            "queues": "no queue in the virtual hosts that this user has a permission in",
            "queue": FORBIDDEN,
            "exchange": FORBIDDEN,
            **dict.fromkeys(ADMIN, "for users with the tag administrator."),
            "node": "for the tags monitoring and administrator.",
            "log": "for the tags monitoring and administrator.",
        },
        user="clerk",
    ),
    "node away": State(one, meanwhile=offline, everywhere="stale"),
    "paused": State(one, meanwhile=paused, everywhere="paused"),
    "memory alarm": State(
        alarm,
        {
            "overview": "). The process holds",
            "connections": "alarm",
            "connection": "The node is low on memory: publishers wait",
        },
        everywhere="memory alarm",
    ),
    "refused queue": State(
        refused,
        {
            "overview": "until it does not: queue 'orders'",
            "queue": "The disk refuses",
            "queues": "blocked",
        },
        everywhere="queues blocked",
    ),
}
IN_EVERY_RUN = {"empty", "one", "no rights"}


@pytest.fixture
def process(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[FaultyNode]:
    """A node whose disk can be broken; it checks itself, but where that would take it minutes for so many objects."""
    (tmp_path / "faults").write_text("[]")
    found = FaultyNode(
        tmp_path / "data",
        {"failed_logins.delay": "0", "store_commit_log": "off"},
        environment={"FAULTS": str(tmp_path / "faults")},
        program=(sys.executable, "-m", "tests.support.faulty_node"),
        is_verified=STATES[request.node.callspec.params["title"]].arrange is not many,
    )
    found.start()
    yield found
    assert not found.has_broken_an_invariant, found.log_of_this_start()[-4000:]
    found.kill()


def picture(looker: Looker, state: str, page: str) -> None:
    folder = os.environ.get("BURROWMQ_TEST_PICTURES")
    if folder:
        name = f"{state.replace(', ', '-').replace(' ', '-')}-{page}.png"
        looker.page.screenshot(path=str(Path(folder) / name))


def faults(looker: Looker) -> list[Any]:
    """What no page may do in any state."""
    page = looker.page
    found: list[Any] = [*page.evaluate(WEAK_TEXTS), *page.evaluate(FORGOTTEN)]
    if not page.evaluate(GIVES_WAY):
        found.append("scrolls sideways")
    if page.locator("img").count():
        found.append("markup of a name")
    return found


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "title",
    [each if each in IN_EVERY_RUN else pytest.param(each, marks=pytest.mark.long) for each in STATES],
)  # fmt: skip
def test_each_page_in_this_state(
    look: Callable[..., Looker], node: NodeClient, process: FaultyNode, title: str
) -> None:
    state = STATES[title]
    scene = Scene(node, process, state.name, state.user)
    state.arrange(scene)
    addresses = scene.addresses()
    looker = look(color_scheme=state.theme, viewport=dict(state.viewport), reduced_motion="reduce")
    if state.meanwhile is offline:
        looker.page.clock.install()
    looker.log_in(state.user, state.user)
    looker.page.get_by_role("navigation", name="Pages").first.wait_for()
    wrong: dict[str, Any] = {}
    cells = []
    for page, address in addresses.items():
        looker.go(address)
        looker.page.locator(ANYTHING).first.wait_for()
        looker.page.wait_for_load_state("networkidle")
        state.meanwhile(looker)
        everywhere = "" if state.meanwhile is offline and page in READ_ONCE else state.everywhere
        for words in filter(None, (state.says.get(page), everywhere)):
            try:
                looker.page.get_by_text(words).first.wait_for(state="attached", timeout=5_000)
            except Exception:
                wrong[f"{page} says"] = words
        if found := faults(looker):
            wrong[page] = found
        picture(looker, title, page)
        if state.meanwhile is offline:
            looker.context.set_offline(False)
            looker.page.clock.fast_forward(60_000)
        cells.append("✓" if not {page, f"{page} says"} & wrong.keys() else "✗")
    print(f"| {title} | {' | '.join(cells)} |")
    # Chromium tells the console of every answer that is no success.
    told = [text for text in looker.complaints if "Failed to load resource" not in text]
    assert (wrong, told) == ({}, [])
