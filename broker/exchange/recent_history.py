"""The recent-history exchange: a fanout that keeps its last messages for whoever is bound later.

`x-recent-history-length` says how many (20 when it is not given); a message whose header `x-recent-history-no-store`
is true is passed on and not kept. A new binding gets what is kept, oldest first (`broker.vhost.vhost` hands it over).
As in the plugin the history is in memory only: a restart, or the exchange's deletion, ends it.

`History` stands in a route behind the queues, takes runs as they do, and refuses nothing; it is no queue
(`is_no_queue`), so that what it alone got is unroutable. State: the messages, at most `OCTETS_MAX` of
them with all that they weigh: older ones go when a newer one needs their room.

Called as all exchanges are (`base`).

Source: RabbitMQ's rabbit_exchange_type_recent_history.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Unpack

from burrowmq.broker.exchange.base import Properties
from burrowmq.broker.exchange.fanout import FanoutExchange
from burrowmq.broker.words.resource import erlang_term
from burrowmq.protocol import table
from burrowmq.protocol.codec import header_fields, load_message
from burrowmq.protocol.errors import PreconditionFailed

if TYPE_CHECKING:
    from burrowmq.protocol.codec import Message
    from burrowmq.protocol.table import FieldTable

LENGTH: Final = "x-recent-history-length"
NO_STORE: Final = b"x-recent-history-no-store"
DEFAULT_LENGTH: Final = 20
OCTETS_MAX: Final = 16 << 20
MESSAGE_OCTETS: Final = 200
"""What a message weighs besides its octets; an empty one has to count, too."""
_NO_STORE: Final = frozenset([NO_STORE])
_IS_NOT_STORED: Final = bytes((len(NO_STORE),)) + NO_STORE + b"t\x01"


class History:
    """The last messages of one exchange."""

    is_no_queue = True
    durable = False
    name = ""

    def __init__(self, length: int) -> None:
        self.length = length
        self.size_bytes = 0
        self._kept: deque[Message] = deque()

    def publish(self, messages: list[Message], flags: int, size: int) -> int:
        """Keep the last of a run."""
        kept: list[Message] = []
        room = OCTETS_MAX
        for message in reversed(messages):
            if len(kept) == self.length or room < 0:
                break
            if header_fields(message.raw, _NO_STORE) != _IS_NOT_STORED:
                kept.append(message)
                room -= _weight(message)
        self._kept.extend(reversed(kept))
        self.size_bytes += sum(map(_weight, kept))
        while len(self._kept) > self.length or self.size_bytes > OCTETS_MAX:
            self.size_bytes -= _weight(self._kept.popleft())
        return 0

    def take(self, messages: list[Message], flags: int, size: int) -> int:
        """As `publish`, of dead letters."""
        return self.publish(messages, flags, size)

    def messages(self) -> list[Message]:
        """What is kept, oldest first, as messages that no queue has seen."""
        return [
            load_message(each.address, each.raw, each.size, each.flags, -1) for each in self._kept
        ]


def _weight(message: Message) -> int:
    """With header, frames and address: a history of large headers and empty bodies has a limit, too."""
    return MESSAGE_OCTETS + len(message.raw) + len(message.address)


class RecentHistoryExchange(FanoutExchange):
    """Routes to everything bound, and keeps the last messages."""

    type = "x-recent-history"

    def __init__(self, name: str, **properties: Unpack[Properties]) -> None:
        super().__init__(name, **properties)
        length = self.arguments.get(LENGTH, DEFAULT_LENGTH)
        self.history = History(length if isinstance(length, int) else DEFAULT_LENGTH)

    @classmethod
    def check_arguments(cls, arguments: FieldTable) -> None:
        """Refuse a length that is no positive integer."""
        length = arguments.get(LENGTH, DEFAULT_LENGTH)
        if not table.is_integer(length) or not isinstance(length, int) or length < 1:
            raise PreconditionFailed(
                f"Invalid argument {erlang_term(length)}, '{LENGTH}' must be a positive integer"
            )
