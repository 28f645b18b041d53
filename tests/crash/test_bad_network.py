"""Clients with a bad network: nothing is lost, and who is gone is noticed. Covers: tests/support/tcp_proxy.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.bad_network import COUNT, GONE, absence, nodes, work
from tests.support.patience import patient
from tests.support.tcp_proxy import Network

pytestmark = [pytest.mark.slow, pytest.mark.needs_server]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with nodes(tmp_path_factory.mktemp("network"), has_rabbit=False) as found:
        yield found["BurrowMQ"]


@pytest.mark.parametrize(
    "network", [Network(delay_s=0.01), Network(piece=1), Network(rate=100_000)], ids=str
)
def test_all_that_is_sent_arrives(port: int, network: Network) -> None:
    done = work(port, network)
    assert done.arrived == COUNT + 1
    assert done.open_s > 8 * network.delay_s
    assert not network.rate or min(done.up_s, done.down_s) > 50_000 / network.rate / 2


@pytest.mark.parametrize("fault", GONE)
def test_who_vanishes_is_noticed_after_two_intervals_of_its_heartbeat(
    port: int, fault: str
) -> None:
    up, down = GONE[fault]
    found = absence(port, up, down, heartbeat=1)
    assert found.back == COUNT
    assert found.client == "closed"
    assert found.free_s < patient(20)
