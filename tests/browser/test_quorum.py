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


def declare(node: NodeClient, name: str, kind: str) -> None:
    """Declare a durable queue, as soon as the servers can."""
    deadline = time.monotonic() + patient(60)
    body = {"durable": True, "arguments": {"x-queue-type": kind}}
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
