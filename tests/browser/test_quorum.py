"""Quorum queues in Chromium, on three real servers: where they are, and what is said when servers are gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from bench.nats_servers import CannotBuild, NatsCluster
from tests.browser.looker import Looker
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient
from tests.support.patience import patient

WIDE = {"width": 1280, "height": 1000}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsCluster]:
    try:
        found = NatsCluster(tmp_path_factory.mktemp("servers"))
    except CannotBuild as reason:
        pytest.skip(str(reason))
    try:
        found.start()
        yield found
    finally:
        found.stop()


@pytest.fixture
def process(
    servers: NatsCluster, own_broker: Callable[..., BrokerProcess]
) -> Iterator[BrokerProcess]:
    """A front-end."""
    urls = ",".join(server.url for server in servers.servers)
    yield own_broker(failed_logins__delay="0", cluster__urls=urls)
    for server in servers.servers:
        server.resume()


def declare(node: NodeClient, name: str, kind: str, **arguments: object) -> None:
    """Declare a durable queue, as soon as the servers can."""
    deadline = time.monotonic() + patient(60)
    body = {"durable": True, "arguments": {"x-queue-type": kind, **arguments}}
    while node.api("PUT", f"/api/queues/%2F/{name}", body).status not in {201, 204}:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    while kind == "quorum" and not node.get(f"/api/queues/%2F/{name}").get("leader"):
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.timeout(180)
def test_where_quorum_queues_are_is_shown(
    servers: NatsCluster, node: NodeClient, look: Callable[..., Looker]
) -> None:
    declare(node, "classic", "classic")
    looker = look(viewport=WIDE).enter()
    page = looker.page
    looker.go("queues")
    page.get_by_role("row", name="classic").wait_for()
    assert page.get_by_role("columnheader", name="Leader").count() == 0
    declare(node, "orders", "quorum")
    row = page.get_by_role("row", name="orders")
    row.get_by_role("cell", name="3 of 3").wait_for()
    leader = node.get("/api/queues/%2F/orders")["leader"]
    assert row.get_by_role("cell", name="quorum", exact=True).count() == 1
    assert row.get_by_role("cell", name=leader, exact=True).count() == 1
    spared = {leader, node.get("/api/burrowmq/cluster")["link"]["server"]}
    gone = next(each for each in servers.servers if each.name not in spared)
    gone.pause()
    deadline = time.monotonic() + patient(30)
    while len(node.get("/api/queues/%2F/orders")["online"]) != 2:
        assert time.monotonic() < deadline
        node.api("GET", "/api/health/checks/node-is-quorum-critical")  # has it looked at
        time.sleep(0.5)
    row.get_by_title(f"not online: {gone.name}").wait_for()
    assert row.get_by_text("2 of 3").count() == 1
    row.get_by_role("link", name="orders").click()
    looker.arrives("queues/%2F/orders")
    looker.sees(f"Not online: {gone.name}")
    looker.sees(f"{leader} leads")
    looker.go("node")
    table = page.get_by_role("table", name="Quorum queue servers")
    line = table.get_by_role("row", name=gone.name)
    line.get_by_text("down: no answer for 2 s").wait_for()
    assert line.get_by_role("cell", name="1", exact=True).count() == 1, "it keeps one"
    looker.sees("1 would stand still with one server less")
    looker.go("overview")
    looker.sees("All well")
    assert looker.complaints == []
    gone.resume()
    node.api("DELETE", "/api/queues/%2F/orders")


@pytest.mark.timeout(180)
def test_what_a_queue_of_the_cluster_has_and_can_is_on_its_page(
    node: NodeClient, look: Callable[..., Looker]
) -> None:
    limits = {"x-delivery-limit": 5, "x-max-length": 9, "x-overflow": "reject-publish"}
    declare(node, "limited", "quorum", **limits)
    declare(node, "events", "stream", **{"x-max-age": "7D"})
    channel = node.channel()
    channel.confirm_delivery()
    for name in ("limited", "limited", "events"):
        channel.basic_publish("", name, b"x")
    while channel.basic_get("limited")[0] is None:  # which nobody acknowledges
        time.sleep(0.05)
    looker = look(viewport=WIDE).enter()
    page = looker.page
    looker.go("queues")
    row = page.get_by_role("row", name="limited")
    row.get_by_text("DlL", exact=True).wait_for()
    row.get_by_role("link", name="limited").click()
    looker.arrives("queues/%2F/limited")
    limit = page.get_by_role("table", name="Settings in force").get_by_role(
        "row", name="Delivery limit"
    )
    limit.get_by_role("cell", name="5", exact=True).wait_for()
    page.get_by_text("By default").click()
    looker.sees("Dead-letter strategy")
    assert page.get_by_text("Version of its files").count() == 0, "a classic queue has that"
    assert page.get_by_text("Get messages").count() == 1
    page.get_by_role("button", name="Purge…").click()
    page.get_by_role("dialog").get_by_text("the 1 unacked ones go, too").wait_for()
    page.keyboard.press("Escape")
    looker.go("queues/%2F/events")
    page.get_by_role("row", name="Max age").get_by_role("cell", name="7D", exact=True).wait_for()
    looker.sees("Publish a message to it")
    for taking in ("Get messages", "Move messages", "Purge…"):
        assert page.get_by_text(taking).count() == 0, "nobody takes anything out of a stream"
    looker.go("queues")
    page.get_by_label("All on this page").check()
    page.get_by_role("button", name="Purge").click()
    page.get_by_role("dialog").get_by_text("a stream cannot be purged").wait_for()
    page.keyboard.press("Escape")
    looker.go("node")
    looker.sees("shared with other front-ends. Classic queues")
    page.set_viewport_size({"width": 390, "height": 844})
    for address, table in (
        ("node", "Quorum queue servers"),
        ("queues", "Queues"),
        ("queues/%2F/limited", "Settings in force"),
        ("queues/%2F/events", "Settings in force"),
    ):
        looker.go(address)
        page.get_by_role("table", name=table).wait_for()
        scrolls = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert page.evaluate(scrolls) is False, address
    assert looker.complaints == []
    for name in ("limited", "events"):  # the servers are others', too
        node.api("DELETE", f"/api/queues/%2F/{name}")


@pytest.mark.timeout(180)
def test_a_cluster_out_of_reach_is_said_on_every_page(
    servers: NatsCluster, look: Callable[..., Looker]
) -> None:
    looker = look(viewport=WIDE).enter()
    for server in servers.servers:
        server.pause()
    looker.go("queues")
    alarm = looker.page.get_by_role("status").get_by_text("cluster out of reach")
    alarm.or_(looker.page.get_by_role("status", name="cluster out of reach")).first.wait_for(
        timeout=patient(40_000)
    )
    looker.go("overview")
    looker.sees("Cluster out of reach")
    looker.sees("all else goes on")
    looker.go("node")
    looker.sees("Out of reach")
    assert looker.complaints == []
