"""What a message costs in the broker's core, by its properties and its end: no socket, no thread, no file.

    python -m bench.micro_broker [ROW ...]

Bytes go into a session as one read of 64 KB at most would bring them, and its turn ends; nobody consumes, unless the
row says so. Prints a line for each row: microseconds of processor time a message, best of seven. BURROWMQ_PURE=1
measures the interpreted codec. A row beside `plain` tells what a property adds.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from pika import spec

from burrowmq.broker.queue.queue import Queue
from burrowmq.protocol.codec import NAME
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import method_bytes, publish_bytes

COUNT = 400
BODY = b"x" * 16
ROUNDS = 7
REPEATS = 20
KEYS = 100_000
HEADERS = {"task": "app.tasks.add", "id": "5f2c", "retries": 0}
CELERY = {
    "content_type": "application/json",
    "content_encoding": "utf-8",
    "headers": HEADERS,
    "delivery_mode": 1,
    "priority": 0,
    "correlation_id": "3b241101-e2bb-4255-8caf-4136c566a962",
    "reply_to": "9c5b94b1-35ad-49bb-b118-8e8fc24abf80",
}

Step = Callable[[], object]


class Row:
    """One broker, a queue `q` and what its arguments name; `work` is measured, `reset` is not."""

    def __init__(self, **arguments: Any) -> None:
        self.bench = BrokerBench(default_mode="cached", is_verified=False)
        self.client: Client = self.bench.connect(1)
        declared = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
        for name, given in (("q", declared), ("dead", {})):
            self.client.call(1, spec.Queue.Declare(queue=name, arguments=given))
        self.queue: Queue = self.bench.vhost.queues["q"]
        self.dead: Queue = self.bench.vhost.queues["dead"]

    def send(self, data: bytes) -> None:
        """One read, one turn."""
        self.client.send(data)
        self.client._unread = b""
        self.client.written.clear()

    def purge(self) -> None:
        """What was published goes."""
        self.queue.purge()
        self.dead.purge()


def publishes(**properties: Any) -> bytes:
    """COUNT publishes with these properties; a list has one value after the other."""
    parts = []
    for number in range(COUNT):
        own = {
            name: value[number % len(value)] if isinstance(value, list) else value
            for name, value in properties.items()
        }
        parts.append(publish_bytes(1, "", "q", BODY, properties=spec.BasicProperties(**own)))
    return b"".join(parts)


def publishing(data: bytes, **arguments: Any) -> tuple[Step, Step]:
    """Publish to a queue with these arguments."""
    row = Row(**arguments)
    return partial(row.send, data), row.purge


def spreading(
    kind: str, key: str = "k.{}", arguments: dict[str, Any] | None = None, **properties: str
) -> tuple[Step, Step]:
    """Publish through an exchange to ten queues; keys and properties have the message's number where they say `{}`.

    KEYS different messages come in turn, or as many as there are, each new, with `{new}`.
    """
    row = Row()
    row.client.call(1, spec.Exchange.Declare(exchange="x", type=kind, arguments=arguments))
    queues = []
    for number in range(10):
        row.client.call(1, spec.Queue.Declare(queue=f"q{number}"))
        wanted = "10" if kind == "x-consistent-hash" else f"k.{number}"
        row.client.call(1, spec.Queue.Bind(queue=f"q{number}", exchange="x", routing_key=wanted))
        queues.append(row.bench.vhost.queues[f"q{number}"])
    is_new = "{new}" in key + "".join(properties.values())

    def read(first: int) -> bytes:
        parts = []
        for number in range(first, first + COUNT):
            said = {"new": number} if is_new else {}
            own = {n: v.format(number, **said) for n, v in properties.items()}
            if "headers" in own:
                own["headers"] = {"h": own["headers"]}
            given = spec.BasicProperties(**own)
            at = number % 10 if kind == "direct" else number
            parts.append(publish_bytes(1, "x", key.format(at, **said), BODY, properties=given))
        return b"".join(parts)

    known = [] if is_new else [read(first) for first in range(0, KEYS, COUNT)]
    at = [0]
    following = [b""]

    def work() -> None:
        row.send(following[0])

    def reset() -> None:
        for queue in queues:
            queue.purge()
        following[0] = read(at[0] * COUNT) if is_new else known[at[0] % len(known)]
        at[0] += 1

    reset()
    for _ in known:  # every key is met once before it counts
        work()
        reset()
    return work, reset


def settling(method: Callable[[int], Any], **arguments: Any) -> tuple[Step, Step]:
    """Settle COUNT deliveries one by one, in one read."""
    row = Row(**arguments)
    row.send(method_bytes(1, spec.Basic.Consume(queue="q")))
    published = publishes()
    tag = [0]

    def work() -> None:
        row.send(settlements.pop())

    def reset() -> None:
        row.purge()
        channel = row.client.session.channels[1]
        while channel.unacked.count:
            row.send(method_bytes(1, spec.Basic.Ack(0, multiple=True)))
        tag[0] = channel.next_tag
        row.send(published)
        settlements[:] = [b"".join(method_bytes(1, method(tag[0] + each)) for each in range(COUNT))]

    settlements: list[bytes] = []
    reset()
    return work, reset


def dead_lettering(**more: Any) -> dict[str, Any]:
    """The arguments of a queue whose dead letters go to `dead`."""
    return {"dead_letter_exchange": "", "dead_letter_routing_key": "dead", **more}


def mixed_keys(queues: int) -> tuple[Step, Step]:
    """Publish to so many queues in turn."""
    row = Row()
    names = [f"q{number}" for number in range(queues)]
    for name in names:
        row.client.call(1, spec.Queue.Declare(queue=name))
    found = [row.bench.vhost.queues[name] for name in names]
    data = b"".join(publish_bytes(1, "", names[each % queues], BODY) for each in range(COUNT))

    def purge() -> None:
        for queue in found:
            queue.purge()

    return partial(row.send, data), purge


ROWS: dict[str, Callable[[], tuple[Step, Step]]] = {
    "plain": lambda: publishing(publishes()),
    "expiration": lambda: publishing(publishes(expiration="60000")),
    "expiration, 3 headers": lambda: publishing(publishes(expiration="60000", headers=HEADERS)),
    "priority": lambda: publishing(publishes(priority=[0, 5, 9]), max_priority=10),
    "reply_to": lambda: publishing(publishes(reply_to="amq.gen-x", correlation_id="7")),
    "celery": lambda: publishing(publishes(**CELERY)),
    "user_id": lambda: publishing(publishes(user_id="guest")),
    "10 keys in turn": lambda: mixed_keys(10),
    "100 keys in turn": lambda: mixed_keys(100),
    "CC": lambda: publishing(publishes(headers={"CC": ["dead"]})),
    "direct, 10 queues": lambda: spreading("direct"),
    "consistent hash, 100,000 keys": lambda: spreading("x-consistent-hash"),
    "consistent hash, every key new": lambda: spreading("x-consistent-hash", "{new}"),
    "consistent hash, 100,000 headers": lambda: spreading(
        "x-consistent-hash", "", {"hash-header": "h"}, headers="{}"
    ),
    "consistent hash, every header new": lambda: spreading(
        "x-consistent-hash", "", {"hash-header": "h"}, headers="{new}"
    ),
    "consistent hash, message_id": lambda: spreading(
        "x-consistent-hash", "", {"hash-property": "message_id"}, message_id="{}"
    ),
    "consistent hash, every message_id new": lambda: spreading(
        "x-consistent-hash", "", {"hash-property": "message_id"}, message_id="{new}"
    ),
    "modulus hash, 100,000 keys": lambda: spreading("x-modulus-hash"),
    "random": lambda: spreading("x-random", ""),
    "recent history": lambda: spreading("x-recent-history", ""),
    "fanout to 10 (per publish)": lambda: spreading("fanout", ""),
    "ack": lambda: settling(spec.Basic.Ack),
    "nack, requeue": lambda: settling(partial(spec.Basic.Nack, requeue=True)),
    "nack, dropped": lambda: settling(partial(spec.Basic.Nack, requeue=False)),
    "reject to a DLX": lambda: settling(
        partial(spec.Basic.Reject, requeue=False), **dead_lettering()
    ),
    "drop-head": lambda: publishing(publishes(), max_length=10),
    "drop-head to a DLX": lambda: publishing(publishes(), **dead_lettering(max_length=10)),
}


def measure(work: Step, reset: Step) -> float:
    """Microseconds a message."""
    results = []
    for _ in range(ROUNDS):
        gc.collect()
        spent = 0.0
        for _ in range(REPEATS):
            begin = time.process_time()
            work()
            spent += time.process_time() - begin
            reset()
        results.append(spent / REPEATS / COUNT * 1e6)
    return min(results)


def main() -> int:
    """Measure the rows that are named, or all."""
    for name in sys.argv[1:] or ROWS:
        print(f"{NAME:12} {name:38} {measure(*ROWS[name]()):8.3f} us", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
