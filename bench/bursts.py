"""What one connection sends in one write: `python -m bench.bursts [--octets 2000000] [--only get,declare]`.

For each kind of method a node of its own gets so many octets of it in one burst, each of them right, while another client asks
for a message of an empty queue again and again (`bench.many_queues`). Prints the processor time of the node and the
longest wait of that client, without the time in which it or the node stood in line for a processor; a wait above the
limit is marked, and the exit status is 1 then. Some kinds are sent by many connections at the same moment, as much as
ten bursts together. The last ones are single methods that concern very many messages at
once: what has to happen at one moment has no limit there.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pamqp import body, frame, header
from pamqp.commands import Basic, Channel, Confirm, Exchange, Queue, Tx

from bench.amqp_line import Line
from bench.many_queues import cpu_ns
from bench.many_things import Asked, Scene, print_table, scene_of

DELIVERED = 60_000
"""Messages that wait for their ack where acks come in a burst."""
DELIVER = b"\x00\x3c\x00\x3c"  # class and method of basic.deliver
AT_REST_S, AT_REST_SHARE = 0.2, 0.15
"""A node is through when it takes less than this share of a processor for so long."""
ONE_OCTET = b"\x03\0\x01\0\0\0\x01x\xce"
HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"


def octets(method: object, channel: int = 1) -> bytes:
    """A method frame."""
    return frame.marshal(method, channel)


def publish(
    key: str, exchange: str = "", *, mandatory: bool = False, **properties: object
) -> bytes:
    """A publish of one octet."""
    method = Basic.Publish(exchange=exchange, routing_key=key, mandatory=mandatory)
    content = header.ContentHeader(body_size=1, properties=Basic.Properties(**properties))
    return octets(method) + octets(content) + octets(body.ContentBody(b"x"))


@dataclass
class Sender:
    """A connection that sends its burst, and discards what it gets."""

    line: Line
    most: int

    def ask(self, method: object, reply: type) -> None:
        self.line.say(1, method)
        self.line.expect(reply)

    def declare(self, name: str, **arguments: object) -> None:
        self.ask(
            Queue.Declare(queue=name, durable=True, arguments=arguments or None), Queue.DeclareOk
        )

    def consume(self, name: str, count: int) -> None:
        """Get so many messages without a prefetch limit, and no more."""
        self.line.say(1, Basic.Consume(queue=name, consumer_tag="burst"))
        seen, tail = 0, b""
        while seen < count:
            data = self.line.socket.recv(1 << 20)
            if not data:
                raise ConnectionError("the broker closed the connection")
            seen += (tail + data).count(DELIVER)
            tail = data[-len(DELIVER) + 1 :]
        self.line.say(1, Basic.Cancel(consumer_tag="burst", nowait=True))

    def discard(self) -> None:
        """Read whatever comes, in a thread that ends with the connection."""

        def read() -> None:
            try:
                while self.line.socket.recv(1 << 20):
                    pass
            except OSError:
                pass

        threading.Thread(target=read, daemon=True).start()

    def joined(self, parts: Iterable[bytes]) -> tuple[bytes, int]:
        """As many of these as a burst has octets, and how many that were."""
        found, size = [], 0
        for part in parts:
            if size >= self.most:
                break
            found.append(part)
            size += len(part)
        return b"".join(found), len(found)


Parts = Iterable[bytes]
Burst = Callable[[Sender], Parts]


def numbered(make: Callable[[int], bytes], count: int = 1_000_000) -> Parts:
    """Parts that differ."""
    return (make(number) for number in range(count))


def same(part: bytes) -> Parts:
    """Parts that are alike."""
    return numbered(lambda _: part)


def _with_queue(make: Callable[[], Parts], **arguments: object) -> Burst:
    def burst(sender: Sender) -> Parts:
        sender.declare("q", **arguments)
        return make()

    return burst


def _delivered(make: Callable[[int], bytes], *, order: str, dead_letters: bool = False) -> Burst:
    """`make` for the tags of messages that were delivered, in some order."""

    def burst(sender: Sender) -> Parts:
        sender.declare("dead")
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        sender.declare("q", **(dead if dead_letters else {}))
        filled(sender, DELIVERED)
        sender.consume("q", DELIVERED)
        tags = list(range(1, DELIVERED + 1))
        if order == "backwards":
            tags.reverse()
        elif order == "at random":
            random.Random(1).shuffle(tags)
        return map(make, tags)

    return burst


def filled(sender: Sender, count: int) -> None:
    """Publish so many persistent messages to q."""
    other = Line(sender.line.socket.getpeername()[1])
    other.publish(["q"] * count, b"x" * 10)
    other.close()


def _get(sender: Sender) -> Parts:
    sender.declare("q")
    filled(sender, DELIVERED)
    return same(octets(Basic.Get(queue="q", no_ack=True)))


def _selected(select: object, reply: type, make: Callable[[], Parts]) -> Burst:
    def burst(sender: Sender) -> Parts:
        sender.declare("q")
        sender.ask(select, reply)
        return make()

    return burst


def _queues_in_turn(sender: Sender) -> Parts:
    names = [f"q{number}" for number in range(10_000)]
    sender.line.declare(names, durable=True)
    return numbered(lambda number: publish(names[number % 10_000], delivery_mode=2))


def _headers(sender: Sender) -> Parts:
    sender.declare("q")
    for number in range(100):
        table = {"x-match": "all", "a": number, "b": "c"}
        bind = Queue.Bind(queue="q", exchange="amq.headers", routing_key="", arguments=table)
        sender.ask(bind, Queue.BindOk)
    return numbered(
        lambda number: publish(
            "", "amq.headers", headers={"a": number % 200, "b": "c", "d": number}
        )
    )


def _fan_out(sender: Sender) -> Parts:
    names = [f"f{number}" for number in range(100)]
    consumer = Sender(Line(sender.line.socket.getpeername()[1]), 0)
    consumer.line.declare(names, durable=True)
    consumer.line.bind("amq.fanout", names)
    for name in names:
        consumer.ask(Basic.Consume(queue=name, consumer_tag=name, no_ack=True), Basic.ConsumeOk)
    consumer.discard()
    return numbered(lambda _: publish("", "amq.fanout"), 20_000)


def _direct_reply(sender: Sender) -> Parts:
    sender.declare("q")
    to = "amq.rabbitmq.reply-to"
    sender.ask(Basic.Consume(queue=to, consumer_tag="r", no_ack=True), Basic.ConsumeOk)
    return numbered(lambda number: publish("q", reply_to=to, correlation_id=str(number)))


def _dead_letters(sender: Sender) -> Parts:
    sender.declare("dead")
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    sender.declare("q", **{"x-max-length": 10}, **dead)
    return numbered(lambda number: publish("q", headers={"n": number}))


def _bound(number: int) -> bytes:
    return octets(Queue.Bind(queue="q", exchange="amq.topic", routing_key=f"a.{number}.b"))


SELECT = (Confirm.Select(), Confirm.SelectOk)
CONSUMED = octets(Basic.Consume(queue="q", consumer_tag="c")) + octets(
    Basic.Cancel(consumer_tag="c")
)
BURSTS: dict[str, tuple[str, Burst]] = {
    "ack": ("basic.ack backwards", _delivered(lambda tag: octets(Basic.Ack(tag)), order="backwards")),
    "ack-random": ("basic.ack at random", _delivered(lambda tag: octets(Basic.Ack(tag)), order="at random")),
    "nack": ("basic.nack with requeue, in order", _delivered(lambda tag: octets(Basic.Nack(tag)), order="in order")),
    "nack-back": ("basic.nack with requeue, backwards", _delivered(lambda tag: octets(Basic.Nack(tag)), order="backwards")),
    "reject": ("basic.reject with requeue, at random", _delivered(lambda tag: octets(Basic.Reject(tag, requeue=True)), order="at random")),
    "dead-letter": ("basic.reject to a dead-letter exchange, at random", _delivered(lambda tag: octets(Basic.Reject(tag, requeue=False)), order="at random", dead_letters=True)),
    "get": ("basic.get", _get),
    "get-empty": ("basic.get of an empty queue", _with_queue(lambda: same(octets(Basic.Get(queue="q"))))),
    "recover": ("basic.recover", _delivered(lambda _: octets(Basic.Recover(requeue=True)), order="in order")),
    "declare-passive": ("queue.declare, passive", _with_queue(lambda: same(octets(Queue.Declare(queue="q", passive=True))))),
    "declare": ("queue.declare of one that is there", _with_queue(lambda: same(octets(Queue.Declare(queue="q", durable=True))))),
    "declare-new": ("queue.declare, each new", lambda _: numbered(lambda number: octets(Queue.Declare(queue=f"q{number}")), 40_000)),
    "declare-delete": ("queue.declare and queue.delete", lambda _: same(octets(Queue.Declare(queue="q")) + octets(Queue.Delete(queue="q")))),
    "purge": ("queue.purge", _with_queue(lambda: same(octets(Queue.Purge(queue="q"))))),
    "bind": ("queue.bind, each new", _with_queue(lambda: numbered(_bound))),
    "bind-again": ("queue.bind of one that is there", _with_queue(lambda: same(_bound(1)))),
    "exchange": ("exchange.declare, each new", lambda _: numbered(lambda number: octets(Exchange.Declare(exchange=f"e{number}", durable=True)))),
    "consume": ("basic.consume", _with_queue(lambda: numbered(lambda number: octets(Basic.Consume(queue="q", consumer_tag=f"c{number}")), 30_000))),
    "consume-cancel": ("basic.consume and basic.cancel", _with_queue(lambda: same(CONSUMED))),
    "qos": ("basic.qos", lambda _: same(octets(Basic.Qos(prefetch_count=10)))),
    "flow": ("channel.flow", lambda _: same(octets(Channel.Flow(active=True)))),
    "select": ("confirm.select", lambda _: same(octets(Confirm.Select()))),
    "heartbeat": ("heartbeat", lambda _: same(HEARTBEAT)),
    "tx": ("basic.publish and tx.commit", _selected(Tx.Select(), Tx.SelectOk, lambda: same(publish("q") + octets(Tx.Commit())))),
    "publish": ("basic.publish, persistent, confirmed", _selected(*SELECT, lambda: same(publish("q", delivery_mode=2)))),
    "publish-queues": ("basic.publish, persistent, to 10,000 queues in turn", _queues_in_turn),
    "publish-returned": ("basic.publish, mandatory, returned", lambda _: same(publish("nowhere", "amq.direct", mandatory=True))),
    "publish-unroutable": ("basic.publish, unroutable, each key new, confirmed", _selected(*SELECT, lambda: numbered(lambda number: publish(f"no.{number}", "amq.topic")))),
    "publish-expiring": ("basic.publish with expirations", _with_queue(lambda: numbered(lambda number: publish("q", expiration=str(1000 + number))))),
    "publish-headers": ("basic.publish to 100 headers bindings", _headers),
    "publish-cc": ("basic.publish with CC", _with_queue(lambda: numbered(lambda number: publish("q", headers={"CC": [f"n{number}"]})))),
    "publish-priorities": ("basic.publish with 255 priorities", _with_queue(lambda: numbered(lambda number: publish("q", priority=number % 256)), **{"x-max-priority": 255})),
    "publish-fanout": ("basic.publish to 100 queues with a consumer each", _fan_out),
    "publish-reply": ("basic.publish with direct reply-to", _direct_reply),
    "publish-overflow": ("basic.publish, overflow dead-lettered", _dead_letters),
    "publish-rejected": ("basic.publish, rejected by the queue", _with_queue(lambda: numbered(lambda number: publish("q", message_id=str(number))), **{"x-max-length": 10, "x-overflow": "reject-publish"})),
    "frames": ("body frames of one octet", _with_queue(lambda: same(octets(Basic.Publish(routing_key="q")) + octets(header.ContentHeader(body_size=100)) + ONE_OCTET * 100))),
}  # fmt: skip


def send(scene: Scene, title: str, burst: Burst, most: int) -> None:
    """One line of the table."""
    sender = Sender(Line(scene.node.port), most)
    data, count = sender.joined(burst(sender))
    sender.discard()
    scene.during(f"{count:,} {title}", lambda: (sender.line.socket.sendall(data), _at_rest(scene)))
    sender.line.close()


def _together(name: str, count: int) -> Callable[[Scene, int], None]:
    """So many connections at the same moment, each with its part of ten bursts of a kind."""

    def act(scene: Scene, most: int) -> None:
        title, burst = BURSTS[name]
        senders = [Sender(Line(scene.node.port), 10 * most // count) for _ in range(count)]
        sent = [sender.joined(burst(sender)) for sender in senders]
        for sender in senders:
            sender.discard()

        def send_all() -> None:
            threads = [
                threading.Thread(target=sender.line.socket.sendall, args=(data,))
                for sender, (data, _) in zip(senders, sent, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            _at_rest(scene)

        scene.during(f"{count} connections at once, each {sent[0][1]:,} {title}", send_all)
        for sender in senders:
            sender.line.close()

    return act


def _blocked(scene: Scene, most: int) -> None:
    """An alarm ends for 200 publishers, each of which was stopped in the middle of its part of ten bursts."""
    senders = [Sender(Line(scene.node.port), most // 20) for _ in range(200)]
    for sender in senders:
        sender.declare("q")
        sender.line.publish(["q"] * 2_000, b"x")  # so that its reads are whole
    scene.node.control("set_vm_memory_high_watermark", "absolute", "1")
    for sender in senders:
        data, count = sender.joined(same(publish("q", delivery_mode=2)))
        sender.discard()
        threading.Thread(target=sender.line.socket.sendall, args=(data,)).start()
    _at_rest(scene)
    title = f"an alarm ends for 200 publishers of {count:,} messages each"
    set_back = partial(scene.node.control, "set_vm_memory_high_watermark", "0.6")
    scene.during(title, lambda: (set_back(), _at_rest(scene)))
    for sender in senders:
        sender.line.close()


def _at_rest(scene: Scene) -> None:
    # Every burst is through by then; a node that never rests is a fault of its own, and its line shows it.
    for _ in range(int(60 / AT_REST_S)):
        before = cpu_ns(scene.node.pid)
        time.sleep(AT_REST_S)
        if cpu_ns(scene.node.pid) - before < AT_REST_S * AT_REST_SHARE * 1e9:
            return


def _unacked(scene: Scene, count: int) -> Sender:
    sender = Sender(Line(scene.node.port), 0)
    sender.declare("q")
    filled(sender, count)
    sender.consume("q", count)
    sender.discard()
    return sender


def _at_once(method: object) -> Callable[[Scene, int], None]:
    def act(scene: Scene, count: int) -> None:
        sender = _unacked(scene, count)
        title = f"{method.name} of {count:,} unacknowledged messages"  # type: ignore[attr-defined]
        scene.during(title, lambda: (sender.line.say(1, method), _at_rest(scene)), None)

    return act


def _lost(scene: Scene, count: int) -> None:
    sender = _unacked(scene, count)
    title = f"the connection goes, with {count:,} unacknowledged messages"
    scene.during(title, lambda: (sender.line.socket.shutdown(2), _at_rest(scene)), None)


AT_ONCE: dict[str, Callable[[Scene, int], None]] = {
    "ack-all": _at_once(Basic.Ack(0, multiple=True)),
    "nack-all": _at_once(Basic.Nack(0, multiple=True, requeue=True)),
    "recover-all": _at_once(Basic.Recover(requeue=True)),
    "delete-all": _at_once(Queue.Delete(queue="q", nowait=True)),
    "lost": _lost,
}
TOGETHER: dict[str, Callable[[Scene, int], None]] = {
    "20-declare": _together("declare", 20),
    "20-get-empty": _together("get-empty", 20),
    "20-publish-queues": _together("publish-queues", 20),
    "20-publish-overflow": _together("publish-overflow", 20),
    "20-tx": _together("tx", 20),
    "200-declare": _together("declare", 200),
    "200-publish": _together("publish", 200),
    "200-blocked": _blocked,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.bursts", description=__doc__)
    parser.add_argument("--octets", type=int, default=2_000_000)
    parser.add_argument("--messages", type=int, default=300_000, help="of the last kinds")
    kinds = [*BURSTS, *TOGETHER, *AT_ONCE]
    parser.add_argument("--only", default=",".join(kinds), help="which kinds, with commas")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if unknown := [name for name in wanted if name not in kinds]:
        parser.error(f"no kind is called {', '.join(unknown)}; there are {', '.join(kinds)}")
    asked: list[Asked] = []
    scratch = Path(tempfile.mkdtemp(prefix="bursts-"))
    try:
        for name in wanted:
            with scene_of(scratch, name, asked, options.octets) as scene:
                if name in BURSTS:
                    send(scene, *BURSTS[name], options.octets)
                elif name in TOGETHER:
                    TOGETHER[name](scene, options.octets)
                else:
                    AT_ONCE[name](scene, options.messages)
    finally:
        shutil.rmtree(scratch)
        print_table("burst", "of", asked)
    return int(any(each.is_missed for each in asked))


if __name__ == "__main__":
    sys.exit(main())
