"""One AMQP connection that says exactly what was answered, in the order in which it came.

State: the socket, per channel what arrived and was not taken yet, and whether the connection is closed.
Callers: scenarios (through `broker.Broker`).
Invariants: every verb returns plain data; an error is an answer like any other, and the channel is opened
again after it so that the scenario goes on; nothing is decoded by client libraries but the fixed fields of
methods (pika's generated tables), so that types and flags are seen as they are.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from pika import spec
from pika.frame import Method

from tests.support.field_table import decode_properties, encode_properties, encode_table
from tests.support.wire_client import (
    BODY,
    HEADER,
    METHOD,
    Closed,
    WireClient,
    frame,
)

DEADLINE_S = 20.0
QUIET_S = 0.15
CAPABILITIES = {
    "basic.nack": True,
    "publisher_confirms": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}
Event = dict[str, Any]
HIDDEN = {"ticket", "known_hosts", "cluster_id"}


def method_frame(
    channel: int, method: Any, table: Mapping[str, Any] | bytes | None = None
) -> bytes:
    """Return a method frame; `table` takes the place of the empty table at its end."""
    data = bytes(Method(channel, method).marshal())
    if table is None:
        return data
    encoded = table if isinstance(table, bytes) else encode_table(table)
    return frame(METHOD, channel, data[7:-5] + encoded)


def content_frames(
    channel: int, body: bytes, properties: Mapping[str, Any], frame_max: int = 131072
) -> bytes:
    """Return header and body frames."""
    head = b"\0\x3c\0\0" + len(body).to_bytes(8, "big") + encode_properties(properties)
    step = frame_max - 8
    pieces = [frame(BODY, channel, body[at : at + step]) for at in range(0, len(body), step)]
    return frame(HEADER, channel, head) + b"".join(pieces)


def as_event(method: Any) -> Event:
    """Return a method's name and fields."""
    fields = {key: value for key, value in vars(method).items() if key not in HIDDEN}
    return {"method": method.NAME.lower(), **fields}


class Link:
    """The connection below its channels."""

    def __init__(
        self, port: int, *, capabilities: Mapping[str, bool] | None = None, **options: Any
    ) -> None:
        self.wire = WireClient("127.0.0.1", port)
        self.inboxes: dict[int, deque[Event]] = {}
        self.is_closed = False
        self.refusal: Event | None = None
        self._content: dict[int, Event] = {}
        self._handshake(dict(CAPABILITIES if capabilities is None else capabilities), options)

    def _handshake(self, capabilities: dict[str, bool], options: dict[str, Any]) -> None:
        user, password = options.get("user", "guest"), options.get("password", "guest")
        self.wire.start()
        self.wire.login(f"\0{user}\0{password}".encode(), capabilities=capabilities)
        self.refusal = self.answer(0, spec.Connection.Tune, DEADLINE_S)
        if self.is_closed:
            return
        tune = spec.Connection.TuneOk(
            options.get("channel_max", 2047), options.get("frame_max", 131072), 0
        )
        self.wire.send_method(0, tune)
        self.wire.send_method(0, spec.Connection.Open(virtual_host=options.get("vhost", "/")))
        self.refusal = self.answer(0, spec.Connection.OpenOk, DEADLINE_S)

    def read(self, timeout_s: float) -> tuple[int, Event] | None:
        """Return the next whole event with its channel; None when nothing came in time."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                kind, channel, payload = self.wire.read_frame(deadline - time.monotonic())
            except TimeoutError:
                return None
            except Closed:
                self.is_closed = True
                return 0, {"method": "socket closed"}
            event = self._assemble(kind, channel, payload)
            if event is not None:
                return channel, event

    def _assemble(self, kind: int, channel: int, payload: bytes) -> Event | None:
        if kind == METHOD:
            method = spec.methods[int.from_bytes(payload[:4], "big")]()
            method.decode(payload, 4)
            event = as_event(method)
            if not isinstance(method, spec.Basic.Deliver | spec.Basic.GetOk | spec.Basic.Return):
                return event
            self._content[channel] = event
        elif kind == HEADER:
            event = self._content[channel]
            event |= {"size": int.from_bytes(payload[4:12], "big"), "body": b""}
            event["properties"] = decode_properties(payload, 12)
        elif kind == BODY:
            self._content[channel]["body"] += payload
        event = self._content.get(channel, {})
        if "size" not in event or len(event["body"]) < event["size"]:
            return None
        del self._content[channel], event["size"]
        return event

    def answer(self, channel: int, reply: type[Any] | None, timeout_s: float = DEADLINE_S) -> Event:
        """Read until this reply, or an error, on this channel; the rest goes to the inboxes."""
        deadline = time.monotonic() + timeout_s
        wanted = None if reply is None else reply.NAME.lower()
        while (got := self.read(deadline - time.monotonic())) is not None:
            number, event = got
            name = event["method"]
            if name == "connection.close":
                self.wire.send_method(0, spec.Connection.CloseOk())
                self.is_closed = True
                return event
            if name == "socket closed" or (number == channel and name in {wanted, "channel.close"}):
                return event
            self.inboxes.setdefault(number, deque()).append(event)
        return {"method": "nothing"}

    def close(self) -> None:
        """Close politely, so that exclusive queues are gone when it returns; then the socket."""
        if not self.is_closed:
            try:
                self.wire.send_method(0, spec.Connection.Close(200, "bye", 0, 0))
                self.answer(0, spec.Connection.CloseOk, DEADLINE_S)
            except Closed:
                pass
        self.is_closed = True
        self.wire.socket.close()


class Peer:
    """One channel, seen by a scenario."""

    def __init__(self, link: Link, channel: int, made: set[tuple[str, str]]) -> None:
        self.link = link
        self.number = channel
        self._made = made
        self.inbox = link.inboxes.setdefault(channel, deque())
        self.opened = None if link.is_closed else self._open()

    def _open(self) -> Event:
        return self.rpc(spec.Channel.Open(), spec.Channel.OpenOk)

    def beside(self, channel: int) -> Peer:
        """Return another channel of the same connection."""
        return Peer(self.link, channel, self._made)

    # ---- sending ------------------------------------------------------------------------------------

    def send(self, *parts: bytes) -> None:
        """Send bytes as they are; a socket that is closed already is found by the next read."""
        try:
            self.link.wire.send(*parts)
        except Closed:
            self.link.is_closed = True

    def cast(self, method: Any, table: Mapping[str, Any] | bytes | None = None) -> None:
        """Send a method and wait for nothing."""
        self.send(method_frame(self.number, method, table))

    def rpc(
        self,
        method: Any,
        reply: type[Any] | tuple[type[Any], ...] | None,
        table: Mapping[str, Any] | bytes | None = None,
    ) -> Event:
        """Send a method and return its answer, or the error that came instead of it."""
        if self.link.is_closed:
            return {"method": "connection is closed"}
        self.cast(method, table)
        return self._answer(reply)

    def _answer(self, reply: Any) -> Event:
        replies = reply if isinstance(reply, tuple) else (reply,)
        if len(replies) > 1:
            return self._answer_of(replies)
        event = self.link.answer(self.number, replies[0], DEADLINE_S)
        if event["method"] == "channel.close":
            self._reopen()
        return event

    def _answer_of(self, replies: tuple[type[Any], ...]) -> Event:
        names = {each.NAME.lower() for each in replies}
        deadline = time.monotonic() + DEADLINE_S
        while (got := self.link.read(deadline - time.monotonic())) is not None:
            number, event = got
            if event["method"] in {"connection.close", "socket closed"}:
                self.link.is_closed = True
                return event
            if number == self.number and event["method"] == "channel.close":
                self._reopen()
                return event
            if number == self.number and event["method"] in names:
                return event
            self.link.inboxes.setdefault(number, deque()).append(event)
        return {"method": "nothing"}

    def open_again(self) -> Event:
        """Open the channel after it was closed for good."""
        return self._open()

    def _reopen(self) -> None:
        self.cast(spec.Channel.CloseOk())
        self._open()

    # ---- verbs ---------------------------------------------------------------------------------------

    def declare(self, queue: str = "", arguments: Any = None, **options: Any) -> Event:
        """queue.declare."""
        method = spec.Queue.Declare(queue=queue, **options)
        event = self.rpc(method, spec.Queue.DeclareOk, arguments)
        if event["method"] == "queue.declareok" and not options.get("exclusive"):
            self._made.add(("queue", event["queue"]))
        return event

    def queue(self, queue: str, arguments: Any = None, **options: Any) -> str:
        """Declare a queue that must be granted; return its name."""
        event = self.declare(queue, arguments, **options)
        assert event["method"] == "queue.declareok", event
        return str(event["queue"])

    def exchange(
        self, name: str, kind: str = "direct", arguments: Any = None, **options: Any
    ) -> Event:
        """exchange.declare."""
        method = spec.Exchange.Declare(exchange=name, type=kind, **options)
        self._made.add(("exchange", name))
        return self.rpc(method, spec.Exchange.DeclareOk, arguments)

    def delete_exchange(self, name: str, **options: Any) -> Event:
        """exchange.delete."""
        return self.rpc(spec.Exchange.Delete(exchange=name, **options), spec.Exchange.DeleteOk)

    def delete(self, queue: str, **options: Any) -> Event:
        """queue.delete."""
        return self.rpc(spec.Queue.Delete(queue=queue, **options), spec.Queue.DeleteOk)

    def purge(self, queue: str) -> Event:
        """queue.purge."""
        return self.rpc(spec.Queue.Purge(queue=queue), spec.Queue.PurgeOk)

    def bind(self, queue: str, exchange: str, key: str = "", arguments: Any = None) -> Event:
        """queue.bind."""
        method = spec.Queue.Bind(queue=queue, exchange=exchange, routing_key=key)
        return self.rpc(method, spec.Queue.BindOk, arguments)

    def unbind(self, queue: str, exchange: str, key: str = "", arguments: Any = None) -> Event:
        """queue.unbind."""
        method = spec.Queue.Unbind(queue=queue, exchange=exchange, routing_key=key)
        return self.rpc(method, spec.Queue.UnbindOk, arguments)

    def bind_exchange(
        self, destination: str, source: str, key: str = "", arguments: Any = None
    ) -> Event:
        """exchange.bind."""
        method = spec.Exchange.Bind(destination=destination, source=source, routing_key=key)
        return self.rpc(method, spec.Exchange.BindOk, arguments)

    def unbind_exchange(
        self, destination: str, source: str, key: str = "", arguments: Any = None
    ) -> Event:
        """exchange.unbind."""
        method = spec.Exchange.Unbind(destination=destination, source=source, routing_key=key)
        return self.rpc(method, spec.Exchange.UnbindOk, arguments)

    def publish(
        self,
        exchange: str,
        key: str,
        body: bytes = b"",
        *,
        mandatory: bool = False,
        immediate: bool = False,
        **properties: Any,
    ) -> None:
        """basic.publish; its errors come with the next answer."""
        method = spec.Basic.Publish(
            exchange=exchange, routing_key=key, mandatory=mandatory, immediate=immediate
        )
        self.send(self._published(method, body, properties))

    def _published(
        self, method: spec.Basic.Publish, body: bytes, properties: dict[str, Any]
    ) -> bytes:
        return method_frame(self.number, method) + content_frames(self.number, body, properties)

    def publish_at_once(self, *messages: tuple[str, str, bytes, dict[str, Any]]) -> None:
        """Many publishes in one write: (exchange, routing key, body, properties) of each."""
        self.send(
            *(
                self._published(spec.Basic.Publish(exchange=exchange, routing_key=key), *content)
                for exchange, key, *content in messages
            )
        )

    def fill(self, queue: str, *bodies: bytes, **properties: Any) -> None:
        """Publish bodies to a queue and wait until they are in it or refused."""
        for body in bodies:
            self.publish("", queue, body, **properties)
        self.sync(queue)

    def get(self, queue: str, *, no_ack: bool = True) -> Event:
        """basic.get."""
        method = spec.Basic.Get(queue=queue, no_ack=no_ack)
        return self.rpc(method, (spec.Basic.GetOk, spec.Basic.GetEmpty))

    def drain(self, queue: str) -> list[bytes]:
        """Return all ready bodies, acked."""
        bodies = []
        while (event := self.get(queue))["method"] == "basic.getok":
            bodies.append(event["body"])
        return bodies

    def consume(self, queue: str, tag: str = "", arguments: Any = None, **options: Any) -> Event:
        """basic.consume."""
        method = spec.Basic.Consume(queue=queue, consumer_tag=tag, **options)
        return self.rpc(method, spec.Basic.ConsumeOk, arguments)

    def cancel(self, tag: str) -> Event:
        """basic.cancel."""
        return self.rpc(spec.Basic.Cancel(consumer_tag=tag), spec.Basic.CancelOk)

    def qos(self, count: int, *, shared: bool = False, size: int = 0) -> Event:
        """basic.qos; `shared` is its global bit."""
        method = spec.Basic.Qos(prefetch_size=size, prefetch_count=count, global_qos=shared)
        return self.rpc(method, spec.Basic.QosOk)

    def ack(self, tag: int, *, multiple: bool = False) -> None:
        """basic.ack."""
        self.cast(spec.Basic.Ack(delivery_tag=tag, multiple=multiple))

    def nack(self, tag: int, *, multiple: bool = False, requeue: bool = True) -> None:
        """basic.nack."""
        self.cast(spec.Basic.Nack(delivery_tag=tag, multiple=multiple, requeue=requeue))

    def reject(self, tag: int, *, requeue: bool = True) -> None:
        """basic.reject."""
        self.cast(spec.Basic.Reject(delivery_tag=tag, requeue=requeue))

    def recover(self, *, requeue: bool = True) -> Event:
        """basic.recover."""
        return self.rpc(spec.Basic.Recover(requeue=requeue), spec.Basic.RecoverOk)

    def confirm(self) -> Event:
        """confirm.select."""
        return self.rpc(spec.Confirm.Select(), spec.Confirm.SelectOk)

    def tx(self, verb: str) -> Event:
        """tx.select, tx.commit or tx.rollback."""
        names = {"select": spec.Tx.Select, "commit": spec.Tx.Commit, "rollback": spec.Tx.Rollback}
        replies = {
            "select": spec.Tx.SelectOk,
            "commit": spec.Tx.CommitOk,
            "rollback": spec.Tx.RollbackOk,
        }
        return self.rpc(names[verb](), replies[verb])

    def close_channel(self) -> Event:
        """Close the channel for good."""
        return self.rpc(spec.Channel.Close(200, "bye", 0, 0), spec.Channel.CloseOk)

    # ---- looking ----------------------------------------------------------------------------------------

    def sync(self, queue: str | None = None) -> Event:
        """Wait until everything sent so far was handled (and the queue has dispatched)."""
        if queue is not None:
            event = self.rpc(spec.Queue.Declare(queue=queue, passive=True), spec.Queue.DeclareOk)
            if event["method"] != "queue.declareok":
                return event
        return self.rpc(spec.Channel.Flow(active=True), spec.Channel.FlowOk)

    def passive(self, queue: str) -> Event:
        """Passive declare: ready messages and consumers."""
        return self.rpc(spec.Queue.Declare(queue=queue, passive=True), spec.Queue.DeclareOk)

    def ready(self, queue: str) -> Any:
        """Return the ready count, or the error."""
        event = self.passive(queue)
        return event.get("message_count", event)

    def wait_ready(self, queue: str, count: int, timeout_s: float = DEADLINE_S) -> Any:
        """Wait until `count` are ready and return the count; the last one found when it never was."""
        return wait_for(lambda: self.ready(queue), lambda found: found == count, timeout_s)

    def take(self, count: int, timeout_s: float = DEADLINE_S) -> list[Event]:
        """Return the next `count` things that the server sent by itself, fewer if no more came."""
        deadline = time.monotonic() + timeout_s
        while len(self.inbox) < count and not self.link.is_closed:
            got = self.link.read(deadline - time.monotonic())
            if got is None:
                break
            self.file(*got)
        return [self.inbox.popleft() for _ in range(min(count, len(self.inbox)))]

    def file(self, number: int, event: Event) -> None:
        """Put what was read where it belongs; a closed channel is opened again."""
        if event["method"] == "connection.close":
            self.cast_close_ok()
            number = self.number
        elif event["method"] == "socket closed":
            number = self.number
        elif event["method"] == "channel.close" and number == self.number:
            self.inbox.append(event)
            self._reopen()
            return
        self.link.inboxes.setdefault(number, deque()).append(event)

    def cast_close_ok(self) -> None:
        """Answer connection.close."""
        self.send(method_frame(0, spec.Connection.CloseOk()))
        self.link.is_closed = True

    def rest(self, least: int = 0, *, quiet_s: float = QUIET_S) -> list[Event]:
        """Return what the server has sent by itself, until it is quiet; wait longer for as many as must come."""
        found = self.take(max(least, len(self.inbox)))
        while more := self.take(1, quiet_s):
            found += more
        return found

    def bodies(self, count: int, timeout_s: float = DEADLINE_S) -> list[Any]:
        """Return the bodies of the next deliveries (the method's name of anything else)."""
        return [each.get("body", each["method"]) for each in self.take(count, timeout_s)]

    def confirms(self, count: int) -> dict[int, str]:
        """Return ack or nack per publish 1 to `count`; frames may cover several."""
        outcome: dict[int, str] = {}
        while len(outcome) < count:
            events = self.take(1)
            if not events or events[0]["method"] not in {"basic.ack", "basic.nack"}:
                outcome[-1] = str(events)
                break
            tag = int(events[0]["delivery_tag"])
            first = 1 if events[0]["multiple"] else tag
            for each in range(first, tag + 1):
                outcome.setdefault(each, events[0]["method"][6:])
        return dict(sorted(outcome.items()))


def wait_for(
    ask: Callable[[], Any], is_enough: Callable[[Any], bool], timeout_s: float = DEADLINE_S
) -> Any:
    """Ask until the answer is enough and return it; the last one when it never was."""
    deadline = time.monotonic() + timeout_s
    while not is_enough(found := ask()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found
