"""Clients whose network is bad, and what that costs them and the others.

`python -m tests.crash.bad_network [--rabbitmq]`: for each fault a line with the seconds that a client (pika) takes for
some work through a proxy which delays octets, narrows the way, cuts it into single octets or loses everything in one
direction or both, and what the node does about a client that is gone: when the queue that was the client's alone is
free again, and when what it had not acknowledged is there for others. Meanwhile a client with a good network publishes
and waits for confirms; the longest of its waits stands at the end. Exit status 1 when messages are missing.

State: a node of ours, and one of RabbitMQ where it is asked for. Callers: test_bad_network, the command.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pika
import pika.exceptions

from tests.support.broker_process import BrokerProcess
from tests.support.rabbitmq_node import RabbitNode, free_node_port
from tests.support.tcp_proxy import Network, TcpProxy

DEAD = Network(is_dead=True)
SLOW = {
    "none": Network(),
    "100 ms": Network(delay_s=0.05),
    "300 ms": Network(delay_s=0.15),
    "single octets": Network(piece=1),
    "64 kbit/s": Network(rate=8000),
}
GONE = {
    "nothing arrives": (DEAD, DEAD),
    "nothing arrives at the node": (DEAD, Network()),
    "nothing arrives at the client": (Network(), DEAD),
}
COUNT = 10
PERSISTENT = pika.BasicProperties(delivery_mode=2)
LONGEST_S = 300.0


class Work(NamedTuple):
    """Seconds for each kind, through a network that is slow."""

    open_s: float
    confirms_s: float
    by_one_s: float
    """Deliveries with a prefetch of one."""
    up_s: float
    down_s: float
    """A message of 50,000 octets."""
    arrived: int


class Absence(NamedTuple):
    """What a network that is dead leaves behind, in seconds."""

    free_s: float
    """Until the exclusive queue of who is gone can be declared by others."""
    back: int
    """Of COUNT messages that it had not acknowledged, how many others then get."""
    client: str
    """What it sees when its network is back."""


def connect(port: int, heartbeat: int = 0) -> Any:
    """Open a connection; frames are short, since pika calls a network dead that takes long for one."""
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", port, heartbeat=heartbeat, frame_max=8192)
    )


def work(port: int, network: Network) -> Work:
    """Do it all through that network."""
    proxy = TcpProxy(port)
    proxy.up = proxy.down = network
    times = [time.monotonic()]
    try:
        connection = connect(proxy.port, heartbeat=10)
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("bad", durable=True)
        times.append(time.monotonic())
        for number in range(COUNT):
            channel.basic_publish("", "bad", b"%d" % number, PERSISTENT)
        times.append(time.monotonic())
        channel.basic_qos(prefetch_count=1)
        arrived = []
        for method, _, body in channel.consume("bad", inactivity_timeout=60):
            if body is not None:
                channel.basic_ack(method.delivery_tag)
                arrived.append(int(body))
            if body is None or len(arrived) == COUNT:
                break
        channel.cancel()
        times.append(time.monotonic())
        channel.basic_publish("", "bad", bytes(50_000), PERSISTENT)
        times.append(time.monotonic())
        _, _, body = channel.basic_get("bad", auto_ack=True)
        times.append(time.monotonic())
        is_whole = arrived == list(range(COUNT)) and body == bytes(50_000)
        channel.queue_delete("bad")
        connection.close()
    finally:
        proxy.close()
    opened, confirms, by_one, up, down = (
        after - before for before, after in itertools.pairwise(times)
    )
    count = COUNT + 1 if is_whole else len(arrived)
    return Work(opened, confirms, by_one, up, down, count)


def absence(port: int, up: Network, down: Network, heartbeat: int) -> Absence:
    """Let the network of a consumer die, and wait until the node has noticed."""
    proxy = TcpProxy(port)
    other = connect(port)
    try:
        channel = other.channel()
        channel.queue_declare("held", durable=True)
        for number in range(COUNT):
            channel.basic_publish("", "held", b"%d" % number, PERSISTENT)
        client = connect(proxy.port, heartbeat)
        its_own = client.channel()
        its_own.queue_declare("its own", exclusive=True)
        for _ in range(COUNT):
            while its_own.basic_get("held")[0] is None:
                pass
        began = time.monotonic()
        proxy.up, proxy.down = up, down
        while not _is_free(other) and time.monotonic() < began + LONGEST_S:
            _look(client, 0.1)  # it sends its heartbeats
        free_s = time.monotonic() - began
        channel = other.channel()
        back = channel.queue_delete("held").method.message_count
        proxy.up = proxy.down = Network()
        proxy.cut()
        _look(client, 1)
        return Absence(free_s, back, "closed" if client.is_closed else "open")
    finally:
        other.close()
        proxy.close()


def _look(client: Any, seconds: float) -> None:
    if client.is_open:
        with contextlib.suppress(pika.exceptions.AMQPError):
            client.process_data_events(seconds)


def _is_free(connection: Any) -> bool:
    channel = connection.channel()
    try:
        channel.queue_declare("its own", exclusive=True)
        channel.queue_delete("its own")
        channel.close()
    except pika.exceptions.ChannelClosedByBroker as error:
        if error.reply_code != 405:
            raise
        return False
    return True


class Neighbour:
    """A client with a good network: how long it waits for a confirm at most."""

    def __init__(self, port: int) -> None:
        self.longest_s = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._publish, args=(port,))
        self._thread.start()

    def stop(self) -> float:
        """The longest wait, in seconds."""
        self._is_over.set()
        self._thread.join()
        return self.longest_s

    def _publish(self, port: int) -> None:
        connection = connect(port)
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("good", durable=True)
        while not self._is_over.wait(0.05):
            began = time.monotonic()
            channel.basic_publish("", "good", b"x", PERSISTENT)
            self.longest_s = max(self.longest_s, time.monotonic() - began)
        channel.queue_delete("good")
        connection.close()


@contextlib.contextmanager
def nodes(directory: Path, *, has_rabbit: bool) -> Iterator[dict[str, int]]:
    """Give the AMQP port of each."""
    with contextlib.ExitStack() as stack:
        ours = BrokerProcess(directory / "data", is_verified=False)
        ours.start()
        stack.callback(ours.close)
        found = {"BurrowMQ": ours.amqp_port}
        if has_rabbit:
            theirs = RabbitNode(directory / "rabbit", free_node_port())
            theirs.start()
            stack.callback(theirs.stop)
            found["RabbitMQ"] = theirs.amqp_port
        yield found


def main() -> int:
    """Try it all, and print a line for each fault and node."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rabbitmq", action="store_true", help="compare with it")
    parser.add_argument(
        "--heartbeat", type=int, default=5, help="of clients that vanish, in seconds"
    )
    options = parser.parse_args()
    missing = 0
    with (
        tempfile.TemporaryDirectory() as place,
        nodes(Path(place), has_rabbit=options.rabbitmq) as found,
    ):
        for name, port in found.items():
            neighbour = Neighbour(port)
            for fault, network in SLOW.items():
                done = work(port, network)
                missing += COUNT + 1 - done.arrived
                _say(
                    f"{name}, {fault}: opened in {done.open_s:.2f} s, {COUNT} confirms {done.confirms_s:.2f} s,"
                    f" {COUNT} one by one {done.by_one_s:.2f} s, 50 KB up {done.up_s:.2f} s, down {done.down_s:.2f} s"
                )
            for fault, (up, down) in GONE.items():
                left = absence(port, up, down, options.heartbeat)
                missing += COUNT - left.back
                _say(
                    f"{name}, {fault}, heartbeat {options.heartbeat} s: its queue is free after"
                    f" {left.free_s:.1f} s, {left.back} of {COUNT} messages are back; it is {left.client}"
                )
            _say(
                f"{name}: the others waited {neighbour.stop() * 1000:.0f} ms for a confirm at most"
            )
    _say(f"{missing} missing")
    return 1 if missing else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
