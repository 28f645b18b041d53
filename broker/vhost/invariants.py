"""What always holds of what a virtual host remembers of its routes, as a check that BURROWMQ_VERIFY=1 runs.

`verify` raises AssertionError with a sentence that names the address and both ways. It looks at the addresses that were
remembered last: `SAMPLE` of as many users, each resolved anew, so that a change of the topology that forgot too little
is found at the next turn's end. State: none. Called by `broker.node.turn_check`, and by tests after each turn; never by
the virtual host itself. A check changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.vhost import route_tables, router
from burrowmq.broker.vhost.router import Route
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.protocol.codec import Ring, join_address, split_address
from burrowmq.protocol.table import decode_table_at

SAMPLE = 3
RING_KEYS = (b"", b"a", b"some.longer.key")
"""Sent through each ring."""


def verify(vhost: Vhost) -> None:
    """Raise AssertionError with the first rule that does not hold of its routes."""
    for sentence in _broken(vhost):
        raise AssertionError(f"vhost {vhost.name!r}: {sentence}")


def _broken(vhost: Vhost) -> Iterator[str]:
    tables = vhost.route_tables
    # The last one may be a route to very many queues, or of very long headers.
    most = route_tables.LIMIT_BYTES + (1 << 20)
    if tables.size_bytes > most:
        yield f"its routes take {tables.size_bytes} bytes, at most {most} are kept"
    for address, found in islice(tables.newest(SAMPLE), SAMPLE * SAMPLE):
        yield from _address(vhost, address, found)
    for octets, found in islice(tables.newest_keys(SAMPLE), SAMPLE * SAMPLE):
        yield from _keys(vhost, octets, found)
    for exchange, ring in islice(tables.rings(), SAMPLE):
        yield from _ring(vhost, exchange, ring)


def _ring(vhost: Vhost, exchange: Exchange, ring: Ring[Route]) -> Iterator[str]:
    if vhost.exchanges.get(exchange.name) is not exchange:
        yield f"a ring of exchange {exchange.name!r} is remembered, which is another one or gone"
        return
    for key in RING_KEYS:
        if exchange.ignores_keys:
            return
        queues = router.route(vhost, exchange, (key,), None)
        found = ring.of_key(join_address(b"", key)).queues
        if queues != found:
            yield (
                f"key {key!r} of exchange {exchange.name!r} leads to {_names(queues)}, "
                f"its ring says {_names(found)}"
            )


def _address(vhost: Vhost, address: bytes, found: Route) -> Iterator[str]:
    name, key = (part.decode("utf-8", "surrogateescape") for part in split_address(address))
    exchange = vhost.exchanges.get(name)
    if exchange is not found.exchange:
        yield f"a route from exchange {name!r} is remembered, which is another one or gone"
        return
    if router.reach(vhost, exchange).is_by_key:
        queues = router.route(vhost, exchange, (split_address(address)[1],), None)
    else:
        queues = None
    if queues != found.queues:
        yield (
            f"key {key!r} of exchange {name!r} leads to {_names(queues)}, "
            f"{_names(found.queues)} is remembered"
        )


def _keys(vhost: Vhost, octets: bytes, found: Route) -> Iterator[str]:
    exchange, key = split_address(octets)
    fields = octets[len(exchange) + len(key) + 2 :]
    more = decode_table_at(len(fields).to_bytes(4, "big") + fields, 0)[0].get("CC", [])
    assert isinstance(more, list), "others are not remembered"
    keys = key, *(each.encode("utf-8", "surrogateescape") for each in more if isinstance(each, str))
    queues = router.route(vhost, found.exchange, keys, None)
    if queues != found.queues:
        yield f"the keys {keys} lead to {_names(queues)}, {_names(found.queues)} is remembered"


def _names(queues: tuple[object, ...] | None) -> object:
    return None if queues is None else [getattr(each, "name", each) for each in queues]
