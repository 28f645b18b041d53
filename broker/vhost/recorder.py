"""What clients publish in a virtual host, remembered for whoever asks: which messages reached an exchange.

It stands where the firehose does (`Vhost.tracer`), so that a virtual host whose publishes nobody records pays for no
more than the test that is there anyway. A firehose that an operator turns on takes its place.
State owned: the last `RECORDED_MAX` messages, and not more than `RECORDED_BYTES` of them; older ones are forgotten.
Messages that a queue refused are among them. A recorder that follows another (a broker is started again) begins with
what that one had.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from burrowmq.broker.vhost.trace import Tapped, TracedVhost, Tracer
from burrowmq.protocol.codec import Message, body_bytes, split_address

if TYPE_CHECKING:
    from burrowmq.broker.queue.port import QueuePort
    from burrowmq.broker.turn.clock import Scheduler

RECORDED_MAX = 10_000
RECORDED_BYTES = 64 << 20


class Recorder(Tracer):
    """The record of one vhost."""

    def __init__(
        self,
        vhost: TracedVhost,
        node_name: str,
        scheduler: Scheduler,
        before: Sequence[Message] = (),
    ) -> None:
        super().__init__(vhost, node_name, scheduler)
        self._recorded: deque[Message] = deque()
        self._bytes = 0
        self._take(before)

    def _take(self, messages: Sequence[Message]) -> None:
        recorded = self._recorded
        recorded.extend(messages)
        self._bytes += body_bytes(messages)
        while len(recorded) > RECORDED_MAX or self._bytes > RECORDED_BYTES:
            self._bytes -= recorded.popleft().size

    def published(
        self,
        messages: Sequence[Message],
        queues: Sequence[QueuePort],
        tapped: Tapped,
        keys: Sequence[bytes] | None = None,
    ) -> None:
        """A client published these."""
        self._take(messages)

    def delivered(
        self, queue_name: str, messages: Sequence[Message], redelivered: bool, tapped: Tapped
    ) -> None:
        """What goes to clients is not recorded."""

    def all(self) -> list[Message]:
        """What was published, the oldest first."""
        return list(self._recorded)

    def of(self, exchange: bytes) -> list[Message]:
        """What was published to one exchange, the oldest first."""
        return [each for each in self._recorded if split_address(each.address)[0] == exchange]
