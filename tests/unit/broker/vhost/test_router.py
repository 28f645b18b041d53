"""burrowmq.broker.vhost.router: the walk over exchanges, alternates, and what may be remembered."""

from __future__ import annotations

from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.vhost.router import Reach, reach
from burrowmq.broker.vhost.vhost import Edge, ExchangeDeclaration, Vhost
from burrowmq.protocol.properties import Properties
from tests.support.bench.broker import BrokerBench


def declared(*exchanges: str, queues: str = "") -> Vhost:
    """Exchanges as "name:type" or "name:type:alternate"."""
    vhost = BrokerBench().vhost
    for text in exchanges:
        name, kind, *alternate = text.split(":")
        vhost.declare_exchange(
            ExchangeDeclaration(
                name=name,
                type=kind,
                arguments={"alternate-exchange": alternate[0]} if alternate else {},
            )
        )
    for name in queues:
        vhost.declare_queue(QueueDeclaration(name=name))
    return vhost


def bind(vhost: Vhost, source: str, queue: str, key: bytes = b"") -> None:
    vhost.bind(Edge(source, "queue", queue, key, {}))


def link(vhost: Vhost, source: str, destination: str, key: bytes = b"") -> None:
    vhost.bind(Edge(source, "exchange", destination, key, {}))


def reached(vhost: Vhost, exchange: str, *keys: bytes) -> list[str]:
    found = vhost.route(vhost.exchange(exchange), keys or (b"",), None)
    names = [queue.name for queue in found]
    assert len(names) == len(set(names)), "each queue once"
    return sorted(names)


def test_exchanges_are_followed_and_queues_come_once() -> None:
    vhost = declared("a:fanout", "b:direct", queues="pq")
    link(vhost, "a", "b")
    bind(vhost, "a", "p")
    bind(vhost, "b", "p", b"k")
    bind(vhost, "b", "q", b"k")
    assert reached(vhost, "a", b"k") == ["p", "q"]
    assert reached(vhost, "a", b"other") == ["p"]


def test_cycles_end() -> None:
    vhost = declared("a:fanout", "b:fanout", queues="q")
    link(vhost, "a", "b")
    link(vhost, "b", "a")
    link(vhost, "a", "a")
    bind(vhost, "b", "q")
    assert reached(vhost, "a") == ["q"]


def test_several_keys_reach_the_union() -> None:
    vhost = declared("d:direct", "f:fanout", queues="pqr")
    for queue in "pqr":
        bind(vhost, "d", queue, queue.encode())
    bind(vhost, "f", "r")
    assert reached(vhost, "d", b"p", b"q", b"p", b"none") == ["p", "q"]
    assert reached(vhost, "f", b"x", b"y") == ["r"]
    assert reached(vhost, "", b"p", b"r", b"none") == ["p", "r"]


def test_an_alternate_is_asked_when_nothing_matched() -> None:
    vhost = declared("d:direct:alt", "alt:fanout", queues="pq")
    bind(vhost, "d", "p", b"k")
    bind(vhost, "alt", "q")
    assert reached(vhost, "d", b"k") == ["p"]
    assert reached(vhost, "d", b"other") == ["q"]
    assert reached(vhost, "d", b"k", b"other") == ["p"]


def test_alternates_chain_may_be_missing_and_may_loop() -> None:
    vhost = declared(
        "a:direct:b", "b:direct:c", "c:fanout", "l:direct:l", "m:direct:none", queues="q"
    )
    bind(vhost, "c", "q")
    assert reached(vhost, "a", b"k") == ["q"]
    assert reached(vhost, "l", b"k") == []
    assert reached(vhost, "m", b"k") == []


def test_an_alternate_counts_for_each_exchange_reached() -> None:
    vhost = declared("a:fanout", "d:direct:alt", "alt:fanout", queues="pq")
    link(vhost, "a", "d")
    bind(vhost, "a", "p")
    bind(vhost, "alt", "q")
    assert reached(vhost, "a", b"k") == ["p", "q"]


def test_a_match_that_is_an_exchange_without_queues_keeps_the_alternate_out() -> None:
    vhost = declared("a:fanout:alt", "empty:fanout", "alt:fanout", queues="q")
    link(vhost, "a", "empty")
    bind(vhost, "alt", "q")
    assert reached(vhost, "a") == []


def test_headers_are_given_to_exchanges_that_are_reached() -> None:
    vhost = declared("a:fanout", "h:headers", queues="q")
    link(vhost, "a", "h")
    vhost.bind(Edge("h", "queue", "q", b"", {"k": 1}))
    found = vhost.route(vhost.exchange("a"), (b"",), lambda: Properties(headers={"k": 1}))
    assert [queue.name for queue in found] == ["q"]
    assert vhost.route(vhost.exchange("a"), (b"",), Properties) == ()


def test_what_routes_depend_on() -> None:
    vhost = declared("a:fanout", "b:direct:h", "c:direct", "h:headers", queues="q")
    vhost.bind(Edge("h", "queue", "q", b"", {"x-match": "any", "k": 1, "x-k": 2}))

    def found(name: str) -> Reach:
        return reach(vhost, vhost.exchange(name))

    assert found("a") == Reach(None, has_keys=False, is_each=False)
    assert found("h") == Reach(frozenset([b"k"]), has_keys=False, is_each=False)
    assert found("b") == Reach(frozenset([b"k"]), has_keys=True, is_each=False)
    link(vhost, "c", "a")
    link(vhost, "a", "c")
    assert found("c") == found("a") == Reach(None, has_keys=True, is_each=False)
    link(vhost, "a", "b")
    assert found("c") == Reach(frozenset([b"k"]), has_keys=True, is_each=False)
    vhost.unbind(Edge("h", "queue", "q", b"", {"x-match": "any", "k": 1, "x-k": 2}))
    assert found("h") == Reach(frozenset(), has_keys=False, is_each=False)
