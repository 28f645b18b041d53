"""A virtual host of an embedded broker, as a test uses it: what is in it, what happened there, and what goes wrong.

    with broker.vhost("mine") as vhost:
        publish(vhost.url)
        assert [message.body for message in vhost.messages("orders")] == [b"one"]

State: its name and its broker. Looking changes nothing: no message is handed out, marked or moved. All of it may be
called from any thread but the loop's of a broker that is served there.
"""

from __future__ import annotations

import json
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from burrowmq.embedded.errors import BrokerError
from burrowmq.records import dataclass

if TYPE_CHECKING:
    from burrowmq.embedded.broker import Broker
    from burrowmq.embedded.clock import Clock
    from burrowmq.embedded.snapshots import Snapshot

WAIT_S = 5.0
WAIT_MAX_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenMessage:
    """A message that was looked at."""

    body: bytes
    exchange: str
    routing_key: str
    properties: dict[str, Any]
    """Those that are set, but for the headers: `content_type`, `delivery_mode`, `expiration`, ..."""
    headers: dict[str, Any]
    redelivered: bool
    unacked: bool
    """A consumer has it, and did not ack it yet."""

    def json(self) -> Any:
        """What its body says. Raises ValueError when it is no JSON."""
        return json.loads(self.body)


class VirtualHost:
    """One virtual host of a `Broker`."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.broker = broker
        self.name = name

    # -- where it is --------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Its address for an AMQP client."""
        return self.broker.url_of(self.name)

    @property
    def host(self) -> str:
        """Where the broker listens."""
        return "127.0.0.1"

    @property
    def port(self) -> int:
        """Where the broker listens."""
        return self.broker.port

    @property
    def user(self) -> str:
        """Who may do everything in it."""
        return self.broker.user

    @property
    def password(self) -> str:
        """Theirs."""
        return self.broker.password

    @property
    def clock(self) -> Clock:
        """The broker's clock."""
        return self.broker.clock

    # -- what is there ------------------------------------------------------------------------------------------------

    def messages(self, queue: str) -> list[SeenMessage]:
        """What a queue has in its order, at most 10,000, those that consumers did not ack included."""
        __tracebackhide__ = True
        return _seen(self._ask("messages", queue))

    def published(self, exchange: str) -> list[SeenMessage]:
        """What clients have published to an exchange ("": the default one).

        The last 10,000 messages of the virtual host, and 64 MB of them. A restart keeps them, a kill does not.
        """
        __tracebackhide__ = True
        return _seen(self._ask("published", exchange))

    def wait_for(self, queue: str, count: int, timeout: float = WAIT_S) -> list[SeenMessage]:
        """Wait until a queue has exactly so many messages, unacked ones included, and give them.

        Raises: AssertionError, which says how many there are, when it has not after `timeout` seconds.
        """
        __tracebackhide__ = True  # pytest shows the line of the test
        if type(count) is not int or count < 0:
            raise BrokerError(f"a queue cannot have {count!r} messages: give a number from 0 on")
        if type(timeout) not in (int, float) or not 0 <= timeout <= WAIT_MAX_S:
            raise BrokerError(f"timeout is {timeout!r}: give seconds, 0 to {WAIT_MAX_S:.0f}")
        found = cast("int", self._ask("wait_for", queue, count, timeout))
        if found < 0:
            raise AssertionError(f"there is no queue {queue!r} after {timeout} s")
        if found != count:
            raise AssertionError(
                f"queue {queue!r} has {found} messages after {timeout} s, not {count}"
            )
        return self.messages(queue)

    def snapshot(self) -> Snapshot:
        """Its exchanges, queues, bindings and messages as they are now."""
        return cast("Snapshot", self._ask("snapshot"))

    def restore(self, snapshot: Snapshot) -> None:
        """Have what was there then, and nothing else; its connections end."""
        self._ask("restore", snapshot)

    # -- what goes wrong ----------------------------------------------------------------------------------------------

    def drop_connections(self) -> int:
        """Break its connections as a network does; how many there were."""
        return cast("int", self._ask("drop_connections"))

    def nack_next(self, count: int = 1) -> None:
        """Refuse the next publishes on channels that confirm: they are nacked, and reach no exchange."""
        self._ask("nack_next", count)

    def block(self) -> None:
        """Block connections that publish, of the whole broker, until `heal`."""
        self.broker.block()

    def slow_disk(self, ms: float) -> None:
        """Have each sync of the broker's disk take so much longer, until `heal`."""
        self.broker.slow_disk(ms)

    def fail_disk(self, error: int) -> None:
        """Have each write to the broker's disk fail with an errno (ENOSPC, EDQUOT, EIO), until `heal`."""
        self.broker.fail_disk(error)

    def heal(self) -> None:
        """End whatever goes wrong."""
        self.broker.heal()

    def restart(self) -> None:
        """Stop the broker cleanly and start it again."""
        self.broker.restart()

    # -- life ---------------------------------------------------------------------------------------------------------

    def make(self) -> Self:
        """Make it. Raises BrokerError."""
        self.broker.add_vhost(self.name)
        return self

    def delete(self) -> None:
        """Delete it with all that is in it; its connections end."""
        self.broker.delete_vhost(self.name)

    def _ask(self, name: str, *arguments: object) -> object:
        __tracebackhide__ = True
        return self.broker.ask(name, self.name, *arguments)

    def __enter__(self) -> Self:
        return self.make()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(
            BrokerError
        ):  # its broker was ended, or its store has failed: there is nothing to delete
            self.delete()


def _seen(rows: object) -> list[SeenMessage]:
    return [SeenMessage(**each) for each in cast("list[dict[str, Any]]", rows)]
