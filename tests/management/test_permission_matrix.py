"""What a user may do over HTTP is what it may do over AMQP, whatever its tag: verb by tag by right, on one node.

For each of the eight sets of rights (configure, write, read) one user asks over AMQP, and then with each of the four tags
over HTTP. The outcome of a request is whether it was refused for want of rights; anything else counts as allowed.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from tests.support.served import Served, serving

TAGS = ("management", "policymaker", "monitoring", "administrator")
RIGHTS = list(itertools.product((False, True), repeat=3))
NAME = "matrix"
BINDING = {"routing_key": "k"}
PUBLISH = {"properties": {}, "routing_key": "k", "payload": "", "payload_encoding": "string"}
GET = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
Verb = tuple[str, str, Any]
# What is asked: over HTTP, and over AMQP.
OPERATIONS: dict[str, tuple[Verb, Callable[[BlockingChannel], Any]]] = {
    "declare a queue": (
        ("PUT", "queues/%2F/new-q", {}),
        lambda c: c.queue_declare("new-q", durable=True),
    ),
    "delete a queue": (("DELETE", "queues/%2F/old-q", None), lambda c: c.queue_delete("old-q")),
    "purge a queue": (("DELETE", "queues/%2F/q/contents", None), lambda c: c.queue_purge("q")),
    "get a message": (("POST", "queues/%2F/q/get", GET), lambda c: c.basic_get("q")),
    "declare an exchange": (
        ("PUT", "exchanges/%2F/new-x", {"type": "direct"}),
        lambda c: c.exchange_declare("new-x", "direct", durable=True),
    ),
    "delete an exchange": (
        ("DELETE", "exchanges/%2F/old-x", None),
        lambda c: c.exchange_delete("old-x"),
    ),
    "publish": (
        ("POST", "exchanges/%2F/x/publish", PUBLISH),
        lambda c: (c.basic_publish("x", "k", b""), c.queue_declare("q", passive=True)),
    ),
    "bind a queue": (
        ("POST", "bindings/%2F/e/x/q/q", BINDING),
        lambda c: c.queue_bind("q", "x", "k"),
    ),
    "unbind a queue": (
        ("DELETE", "bindings/%2F/e/x/q/q/old", None),
        lambda c: c.queue_unbind("q", "x", "old"),
    ),
    "unbind an exchange": (
        ("DELETE", "bindings/%2F/e/x/e/y/old", None),
        lambda c: c.exchange_unbind("y", "x", "old"),
    ),
    "bind an exchange": (
        ("POST", "bindings/%2F/e/x/e/y", BINDING),
        lambda c: c.exchange_bind("y", "x", "k"),
    ),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A node for all users of the matrix; those over AMQP come by its socket."""
    with serving(tmp_path_factory.mktemp("matrix") / "data") as running:
        yield running


def prepare(served: Served) -> None:
    """Make what is deleted, and remove what is made, as the administrator."""
    for kind, name in (("queues", "q"), ("queues", "old-q"), ("exchanges", "x"),
                       ("exchanges", "y"), ("exchanges", "old-x")):  # fmt: skip
        assert served.api("PUT", f"/api/{kind}/%2F/{name}", {}).status in (201, 204)
    for kind, name in (("queues", "new-q"), ("exchanges", "new-x")):
        served.api("DELETE", f"/api/{kind}/%2F/{name}")
    for target in ("q/q", "e/y"):
        served.api("POST", f"/api/bindings/%2F/e/x/{target}", {"routing_key": "old"})


def over_amqp(served: Served, ask: Callable[[BlockingChannel], Any]) -> bool:
    """Whether it is allowed."""
    listeners = served.get("/api/overview")["listeners"]
    port = next(each["port"] for each in listeners if each["protocol"] == "amqp")
    credentials = pika.PlainCredentials(NAME, NAME)
    parameters = pika.ConnectionParameters("127.0.0.1", port, credentials=credentials)
    with contextlib.closing(pika.BlockingConnection(parameters)) as connection:
        try:
            ask(connection.channel())
        except ChannelClosedByBroker as closed:
            return bool(closed.reply_code != 403)
    return True


def over_http(served: Served, verb: Verb) -> bool:
    """Whether it is allowed: RabbitMQ says 401, and 400 with AMQP's words for a message that is published."""
    method, path, body = verb
    answer = served.api(method, f"/api/{path}", body, login=f"{NAME}:{NAME}")
    is_refused = answer.status == 401 or "ACCESS_REFUSED" in str(answer.body)
    assert is_refused or answer.status in (200, 201, 204), (verb, answer)
    return not is_refused


@pytest.mark.slow
@pytest.mark.parametrize(
    "rights", RIGHTS, ids=lambda each: "".join("cwr-"[i if on else 3] for i, on in enumerate(each))
)
def test_http_allows_what_amqp_allows(served: Served, rights: tuple[bool, bool, bool]) -> None:
    patterns = [".*" if may else "^$" for may in rights]
    assert served.ctl("-q", "add_user", NAME, NAME).code in (0, 70)
    assert served.ctl("-q", "set_permissions", NAME, *patterns).code == 0
    found = {}
    for name, (verb, ask) in OPERATIONS.items():
        prepare(served)
        wanted = over_amqp(served, ask)
        for tag in TAGS:
            assert served.ctl("-q", "set_user_tags", NAME, tag).code == 0
            prepare(served)
            found[name, tag] = (wanted, over_http(served, verb))
    assert {key: both for key, both in found.items() if both[0] != both[1]} == {}


@pytest.mark.slow
def test_without_a_tag_or_a_permission_nothing_is_allowed(served: Served) -> None:
    prepare(served)
    assert served.ctl("-q", "add_user", NAME, NAME).code in (0, 70)
    assert served.ctl("-q", "set_permissions", NAME, ".*", ".*", ".*").code == 0
    assert served.ctl("-q", "set_user_tags", NAME).code == 0
    assert not any(over_http(served, verb) for verb, _ in OPERATIONS.values())
    assert served.ctl("-q", "clear_permissions", NAME).code == 0
    for tag in TAGS:
        assert served.ctl("-q", "set_user_tags", NAME, tag).code == 0
        for name, (verb, _) in OPERATIONS.items():
            assert not over_http(served, verb), (tag, name)
