"""One module per exchange type; all of them offer bind, unbind and match (see `base`).

`TYPES` is the one list of them: a new exchange type is a module here and a line in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burrowmq.broker.exchange.direct import DirectExchange
from burrowmq.broker.exchange.fanout import FanoutExchange
from burrowmq.broker.exchange.headers import HeadersExchange
from burrowmq.broker.exchange.topic import TopicExchange

if TYPE_CHECKING:
    from burrowmq.broker.exchange.base import Exchange

TYPES: dict[str, type[Exchange]] = {
    kind.type: kind for kind in (DirectExchange, FanoutExchange, TopicExchange, HeadersExchange)
}
