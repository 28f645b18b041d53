"""/api/queues and below."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request
from pika import spec

from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.management import messages
from burrowmq.management.answers.access import TRUSTED
from burrowmq.management.answers.rates import Rates
from burrowmq.management.answers.reply import Call
from burrowmq.management.answers.turns import KEYS_PER_TURN
from burrowmq.management.api import queues
from burrowmq.management.commands import vhosts
from burrowmq.protocol.errors import AmqpError, NotFound
from tests.support.bench.node import NodeBench
from tests.support.bench.world import publish
from tests.support.served import Answer, Served


def test_list_is_the_reduced_set(served: Served) -> None:
    served.bench.queue("unused")
    lazy, orders, unused = served.get("/api/queues")
    assert (lazy["name"], lazy["messages_persistent"], lazy["message_bytes"]) == (
        "lazy",
        3,
        3000,
    )
    assert lazy["message_stats"]["publish"] == 3
    assert lazy["messages_details"] == {"rate": 0.0}
    assert "backing_queue_status" not in lazy
    assert orders["message_stats"]["publish"] == 4
    assert "message_stats" not in unused
    # rabbitmqadmin fails at null.
    assert "owner_pid_details" not in orders
    assert orders["consumers"] == 1
    assert 0 <= orders["consumer_capacity"] <= 1
    assert (lazy["consumers"], lazy["consumer_capacity"]) == (0, 0)
    assert "backing_queue_status" in served.get("/api/queues/detailed")[0]


def test_columns_and_paging(served: Served) -> None:
    assert served.get("/api/queues/%2F?columns=name,messages") == [
        {"name": "lazy", "messages": 3}, {"name": "orders", "messages": 4},
    ]  # fmt: skip
    page = served.get("/api/queues?page=2&page_size=1&columns=name")
    assert page["items"] == [{"name": "orders"}]
    assert (page["page_count"], page["total_count"]) == (2, 2)


def test_one_queue_has_its_consumers(served: Served) -> None:
    queue = served.get("/api/queues/%2F/orders")
    assert queue["consumer_details"][0]["consumer_tag"] == "ctag1"
    assert queue["consumer_details"][0]["channel_details"]["user"] == "guest"
    assert queue["consumer_details"] == [
        row for row in served.get("/api/consumers") if row["queue"]["name"] == "orders"
    ]
    assert queue["backing_queue_status"]["len"] == 3
    missing = served.api("GET", "/api/queues/%2F/nosuch")
    assert (missing.status, missing.body) == (
        404,
        {"error": "Object Not Found", "reason": "Not Found"},
    )
    assert served.api("GET", "/api/queues/nosuch/q").status == 404


def test_declare_delete_purge(served: Served) -> None:
    path = "/api/queues/%2F/a%2Fb"
    body = {
        "durable": "true",
        "auto_delete": "false",
        "arguments": {"x-max-length": 10},
        "node": "rabbit@test",
    }
    assert served.api("PUT", path, body).status == 201
    assert served.api("PUT", path, body).status == 204
    other = served.api("PUT", path, {**body, "arguments": {"x-max-length": 11}})
    assert other.status == 400
    assert "inequivalent arg 'x-max-length' for queue 'a/b' in vhost '/'" in other.body["reason"]
    assert ("queue", '["/","a/b"]') in [row[:2] for row in served.bench.store.load()]
    assert served.api("DELETE", path).status == 204
    assert served.api("DELETE", path).status == 404
    assert served.api("DELETE", "/api/queues/%2F/lazy/contents").status == 204
    assert served.get("/api/queues/%2F/lazy")["messages_ready"] == 0


def test_delete_conditions(served: Served) -> None:
    served.bench.queue("full")
    publish(served.bench.clients[0], "full", 1)
    answer = served.api("DELETE", "/api/queues/%2F/full?if-empty=true")
    assert (answer.status, answer.body["reason"]) == (400, "queue 'full' in vhost '/' not empty")
    answer = served.api("DELETE", "/api/queues/%2F/orders?if-unused=true")
    assert (answer.status, answer.body["reason"]) == (400, "queue 'orders' in vhost '/' in use")


@pytest.mark.parametrize("is_ours", [True, False])
def test_whether_a_queue_elsewhere_is_empty_is_asked(
    served: Served, monkeypatch: pytest.MonkeyPatch, is_ours: bool
) -> None:
    def delete() -> Answer:
        if is_ours:
            body = {"name": "q", "if_empty": True}
            return served.api("POST", "/api/burrowmq/delete-queue", body)
        return served.api("DELETE", "/api/queues/%2F/q?if-empty=true")

    def ask(queue: QueuePort, then: Callable[[AmqpError | None], None]) -> None:
        asyncio.get_running_loop().call_later(0.01, learn, then)

    def learn(then: Callable[[AmqpError | None], None]) -> None:
        if not is_silent:
            messages.hand_in(served.node, "/", "", "q", {}, b"of another front-end")
        then(NotFound("queue 'q' is inaccessible") if is_silent else None)

    served.bench.queue("q")
    queue = served.node.vhosts["/"].queues["q"]
    monkeypatch.setattr(type(queue), "ask", ask)
    is_silent = True
    assert delete().status == 503
    is_silent = False
    assert delete().status == 400
    assert served.node.vhosts["/"].queues["q"] is queue


def test_get_checks_its_body(served: Served) -> None:
    path = "/api/queues/%2F/orders/get"
    assert (
        served.api("POST", path, {"count": 1}).body["reason"]
        == "[{key_missing,ackmode},{key_missing,encoding}]"
    )
    body = {"count": "1", "ackmode": "bogus", "encoding": "auto"}
    assert served.api("POST", path, body).status == 400
    body = {"count": "1", "ackmode": "ack_requeue_true", "encoding": "bogus"}
    reason = "Unsupported encoding. Please use auto or base64."
    assert served.api("POST", path, body).body["reason"] == reason
    missing = served.api("POST", "/api/queues/%2F/nosuch/get", body)
    assert (missing.status, missing.body["reason"]) == (404, "queue_not_found")


@pytest.mark.parametrize(("count", "got"), [(-1, 3), ("-5", 3), (0, 0), (2, 2), (10**30, 3)])
def test_a_count_below_zero_gets_all_that_there_is(
    served: Served, count: int | str, got: int
) -> None:
    """As in RabbitMQ, which counts down until there is nothing left."""
    body = {"count": count, "ackmode": "ack_requeue_true", "encoding": "auto"}
    assert len(served.api("POST", "/api/queues/%2F/lazy/get", body).body) == got


def test_a_queue_in_a_vhost_that_is_not_there(served: Served) -> None:
    answer = served.api("PUT", "/api/queues/nope/q", {})
    assert (answer.status, answer.body) == (
        404,
        {"error": "not_found", "reason": "vhost_not_found"},
    )


def test_whole_numbers_in_arguments_are_longs(served: Served) -> None:
    served.api("PUT", "/api/queues/%2F/counted", {"arguments": {"x-max-length": 5}})
    answer = served.api("PUT", "/api/queues/%2F/counted", {})
    assert "current is the value '5' of type 'long'" in answer.body["reason"]


def test_bindings_of_a_queue(served: Served) -> None:
    rows = served.get("/api/queues/%2F/orders/bindings")
    assert [row["source"] for row in rows] == ["", "amq.topic"]


def test_reserved_names_are_refused(served: Served) -> None:
    assert served.api("PUT", "/api/queues/%2F/amq.mine", {}).status == 401
    client = served.bench.connect(1)
    ((_, made),) = client.call(1, spec.Queue.Declare())
    assert made.queue.startswith("amq.gen-")
    found = {"durable": False, "auto_delete": False}
    assert served.api("PUT", f"/api/queues/%2F/{made.queue}", found).status == 401


def test_a_name_has_no_line_ends(served: Served) -> None:
    """As over AMQP, where nobody could name such a queue."""
    for path in ("queues", "exchanges"):
        assert served.api("PUT", f"/api/{path}/%2F/two%0D%0Alines", {}).status == 201
        assert served.api("PUT", f"/api/{path}/%2F/twolines", {}).status == 204
        assert served.api("GET", f"/api/{path}/%2F/twolines").status == 200
    assert served.api("PUT", "/api/queues/%2F/%0A", {}).status == 400


def test_rebalancing_one_node_changes_nothing(served: Served) -> None:
    assert served.api("POST", "/api/rebalance/queues").status == 204


def test_an_exclusive_queue_is_its_connections(served: Served) -> None:
    owner = served.bench.clients[0].session
    served.bench.queue("mine", durable=False, owner=owner)
    ask = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
    for method, path, body in (
        ("DELETE", "/api/queues/%2F/mine", None),
        ("DELETE", "/api/queues/%2F/mine/contents", None),
        ("POST", "/api/queues/%2F/mine/get", ask),
    ):
        refused = served.api(method, path, body)
        assert (refused.status, refused.body["error"]) == (400, "bad_request")
        assert "cannot obtain exclusive access to locked queue" in refused.body["reason"]
    assert served.ctl("purge_queue", "mine").code == 0


def test_actions_are_for_mirrors(served: Served) -> None:
    path = "/api/queues/%2F/orders/actions"
    assert served.api("POST", path, {"action": "sync"}).status == 204
    refused = served.api("POST", path, {"action": "x"})
    assert (refused.status, refused.body["reason"]) == (400, ["unknown", "x"])
    missing = served.api("POST", "/api/queues/%2F/nosuch/actions", {"action": "sync"})
    assert missing.status == 404


def test_a_list_has_the_past_of_its_rows(served: Served) -> None:
    asked = "/api/queues?page=1&columns=name,messages_details,depths&sort=name"
    row = served.get(f"{asked}&lengths_age=10&lengths_incr=5")["items"][0]
    assert row["name"] == "lazy"
    samples = row["messages_details"]["samples"]
    assert len(samples) == 3
    assert samples[0]["timestamp"] - samples[2]["timestamp"] == 10_000
    row = served.get(f"{asked}&history=3600")["items"][0]
    assert len(row["depths"]) in (1, 61)
    answer = served.api("GET", f"{asked}&lengths_age=0&lengths_incr=5")
    assert answer.status == 400
    assert answer.body == {
        "error": "invalid_range_parameters",
        "reason": "Invalid range parameters: age 0, incr 5",
    }


@pytest.mark.parametrize("by", ["name", "messages", "state"])
def test_a_virtual_host_that_goes_while_its_queues_are_listed(bench: NodeBench, by: str) -> None:
    bench.perform(lambda: vhosts.add_vhost(bench.node, "!brief", None))
    brief = bench.node.vhosts["!brief"]
    request = make_mocked_request("GET", f"/api/queues?page=1&page_size=1&sort={by}")
    call = Call(request, bench.host, TRUSTED, Rates())

    async def listed() -> Any:
        for number in range(KEYS_PER_TURN + 1):
            brief.declare_queue(QueueDeclaration(name=f"a{number}"))
        answer = asyncio.ensure_future(queues.queues(call))
        await asyncio.sleep(0)
        list(vhosts.delete_vhost(bench.node, "!brief"))
        return await answer

    (row,) = json.loads(bench.loop.run_until_complete(listed()).body)["items"]
    assert row["vhost"] == "!brief"


def test_dead_letters_go_where_the_caller_may_write(served: Served) -> None:
    served.api("PUT", "/api/users/plain", {"password": "x", "tags": "management"})
    rights = {"configure": "^mine", "write": "^mine", "read": "^mine"}
    served.api("PUT", "/api/permissions/%2F/plain", rights)
    path = "/api/queues/%2F/mine"
    other = {"arguments": {"x-dead-letter-exchange": "amq.fanout"}}
    refused = served.api("PUT", path, other, login="plain:x")
    assert refused.status == 401
    assert refused.body["reason"] == (
        "write access to exchange 'amq.fanout' in vhost '/' refused for user 'plain'"
    )
    assert served.api("GET", path).status == 404
    own = {"arguments": {"x-dead-letter-exchange": "mine.dead"}}
    assert served.api("PUT", path, own, login="plain:x").status == 201
    served.api("PUT", "/api/queues/%2F/mine.old", other)
    assert served.api("PUT", "/api/queues/%2F/mine.old", other, login="plain:x").status == 204
    rights = {"configure": "^mine", "write": ".*", "read": ""}
    served.api("PUT", "/api/permissions/%2F/plain", rights)
    unread = served.api("PUT", f"{path}.new", other, login="plain:x")
    assert unread.body["reason"] == (
        "read access to queue 'mine.new' in vhost '/' refused for user 'plain'"
    )


@pytest.mark.parametrize(("path", "body"), [("queues", {}), ("exchanges", {"type": "topic"})])
def test_what_is_declared_without_a_word_of_durability_is_transient(
    served: Served, path: str, body: dict[str, str]
) -> None:
    """As in RabbitMQ: what a body does not say has the default of the AMQP method."""
    served.api("PUT", f"/api/{path}/%2F/n", body)
    assert served.get(f"/api/{path}/%2F/n")["durable"] is False


@pytest.mark.parametrize(("path", "body"), [("queues", {}), ("exchanges", {"type": "direct"})])
def test_a_node_that_is_not_there_makes_nothing(
    served: Served, path: str, body: dict[str, str]
) -> None:
    path = f"/api/{path}/%2F/new"
    for node, shown in (
        ("nosuch@host", "nosuch@host"),
        ("nosuch", "nosuch@test"),
        ("Rab-bit@host.x", "'Rab-bit@host.x'"),
        ("", "'@test'"),
    ):
        refused = served.api("PUT", path, {**body, "node": node})
        assert (refused.status, refused.body["error"]) == (400, "bad_request")
        assert refused.body["reason"] == f"Node {shown} could not be contacted"
    assert served.api("PUT", path, {**body, "node": None}).status == 400
    assert served.api("GET", path).status == 404
    assert served.api("PUT", path, {**body, "node": "rabbit"}).status == 201
    assert served.api("PUT", path, {**body, "node": "rabbit@test"}).status == 204
