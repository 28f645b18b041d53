"""Headers: a binding that goes costs its own headers, not those of all others.

Covers: broker/exchange/headers.py
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from burrowmq.broker.exchange.binding import Binding
from burrowmq.broker.exchange.headers import HeadersExchange


class Watched(Counter[str]):
    """Counts whose names are walked over."""

    walked = 0

    def __isub__(self, other: Counter[str]) -> Any:
        Watched.walked += len(self)
        return super().__isub__(other)


def test_bindings_by_different_headers_go() -> None:
    exchange, target = HeadersExchange("h"), HeadersExchange("t")
    exchange._asked = Watched()
    bindings = [
        Binding(exchange, target, "exchange", b"", {f"h{n // 2}": n, "all": 1}) for n in range(100)
    ]
    for binding in bindings:
        exchange.bind(binding)
    for gone, binding in enumerate(bindings, start=1):
        exchange.unbind(binding)
        left = {f"h{n // 2}" for n in range(gone, 100)}
        assert set(exchange.header_names) == (left | {"all"} if left else set())
    assert not Watched.walked
