"""One module per exchange type; all of them offer bind, unbind and match (see `base`).

`TYPES` is the one list of them: a new exchange type is a module here and a line in `exchange_class`. The types that
RabbitMQ has in plugins are loaded when the first exchange of theirs is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burrowmq.broker.exchange.direct import DirectExchange
from burrowmq.broker.exchange.fanout import FanoutExchange
from burrowmq.broker.exchange.headers import HeadersExchange
from burrowmq.broker.exchange.topic import TopicExchange

if TYPE_CHECKING:
    from burrowmq.broker.exchange.base import Exchange

_BUILT_IN: Final[dict[str, type[Exchange]]] = {
    kind.type: kind for kind in (DirectExchange, FanoutExchange, TopicExchange, HeadersExchange)
}
OF_PLUGINS: Final = ("x-consistent-hash", "x-modulus-hash", "x-random", "x-recent-history")
TYPES: Final = frozenset((*_BUILT_IN, *OF_PLUGINS))


def exchange_class(kind: str) -> type[Exchange]:
    """The class of exchanges of this type, which is one of `TYPES`."""
    found = _BUILT_IN.get(kind)
    return _of_plugin(kind) if found is None else found


def _of_plugin(kind: str) -> type[Exchange]:
    """Loaded here, because a node that has no such exchange is to stay as small as it was."""
    if kind == "x-consistent-hash":
        from burrowmq.broker.exchange.consistent_hash import (  # noqa: PLC0415 - see above
            ConsistentHashExchange,
        )

        return ConsistentHashExchange
    if kind == "x-modulus-hash":
        from burrowmq.broker.exchange.modulus_hash import (  # noqa: PLC0415 - see above
            ModulusHashExchange,
        )

        return ModulusHashExchange
    if kind == "x-random":
        from burrowmq.broker.exchange.chance import (  # noqa: PLC0415 - see above
            RandomExchange,
        )

        return RandomExchange
    assert kind == "x-recent-history", f"{kind!r} is none of TYPES"
    from burrowmq.broker.exchange.recent_history import (  # noqa: PLC0415 - see above
        RecentHistoryExchange,
    )

    return RecentHistoryExchange
