"""One client of the simulated machine: a connection with a confirming channel, one for transactions, one for the rest.

It asks, and takes what comes back into the model (`tests.simulation.machine.model`). It has at most one method without
an answer on a channel, as client libraries do, but for a deletion and the declaration that follows in the same read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from pika import BasicProperties, spec

from tests.simulation.machine.model import DEAD, HERE, Copy, Home, Model, Publication, place_of
from tests.simulation.machine.node import Machine, Violation
from tests.support.bench.client import Client
from tests.support.wire_client import method_bytes, publish_bytes

CONFIRMING, TRANSACTING, REST = 1, 2, 3
CLOSES = (spec.Channel.Close, spec.Connection.Close)
Answer = Callable[[Any], None]


class Refused(Exception):
    """No connection is taken: the store has failed."""


class SimClient:
    """See the module."""

    def __init__(self, machine: Machine, model: Model, number: int, vhost: str = HERE) -> None:
        self.machine = machine
        self.model = model
        self.number = number
        self.vhost = vhost
        self.is_lost = False
        self.is_refused = False  # the broker has closed something that no promise is about
        self.deliveries: dict[tuple[int, int], Copy] = {}
        self.consumers: dict[str, Home] = {}
        self.unsettled: list[Copy] = []  # settled, and not covered by a confirm yet
        self.waiting: dict[int, deque[Answer]] = {
            CONFIRMING: deque(),
            TRANSACTING: deque(),
            REST: deque(),
        }
        self.unconfirmed: dict[int, Publication] = {}
        self.in_transaction: list[tuple[Publication, str]] = []
        self._committed_with: list[Copy] = []  # acks that a refused commit may be for
        self._incoming: list[tuple[int, Any]] = []
        self.gets: list[Home] = []  # basic.get without acks, not answered yet
        self._asking: list[Home] = []  # consumed or fetched from by name, and not answered yet
        self._next_publish = 1
        self._next_tag = 0
        self.client = Client(machine)
        try:
            capabilities = {"basic.nack": True, "consumer_cancel_notify": True}
            self.client.open(capabilities, vhost=vhost)
        except AssertionError:
            if machine.node is None or not machine.node.failed.done():
                raise
            raise Refused from None
        self.client.call(CONFIRMING, spec.Channel.Open(), spec.Confirm.Select())
        self.client.call(TRANSACTING, spec.Channel.Open(), spec.Tx.Select())
        self.client.call(REST, spec.Channel.Open())

    # -- asking -------------------------------------------------------------------------------------------------

    @property
    def is_paused(self) -> bool:
        """Whether the broker does not read from it."""
        return bool(self.client.pauses) or self.client.session.is_blocked

    def is_late_for(self, home: Home) -> bool:
        """Whether the broker may read only later that a queue's messages are asked for: of whichever has the name then."""
        return self.is_paused and home in self._asking

    def is_busy(self, channel: int) -> bool:
        """Whether an answer is missing on a channel."""
        return bool(self.waiting[channel])

    def send(self, data: bytes) -> None:
        """Send; the turn ends later."""
        self.client.session.receive(data)

    def ask(self, channel: int, method: Any, answer: Answer) -> bytes:
        """The bytes of a method that is answered."""
        self.waiting[channel].append(answer)
        return method_bytes(channel, method)

    def publish(self, publication: Publication, name: str, channel: int) -> None:
        """Publish one message, to a queue's name or to the exchange `fan`; on `REST` nobody waits for a confirm."""
        exchange, key = ("fan", "") if name == "fan" else ("", place_of(name)[1])
        properties = BasicProperties(delivery_mode=2 if publication.is_persistent else 1)
        if publication.priority:
            properties.priority = publication.priority
        if publication.deadline_ms is not None:
            properties.expiration = str(publication.deadline_ms - self.model.now_ms)
        if channel == TRANSACTING:
            self.in_transaction.append((publication, name))
        else:
            is_certain = not self.is_paused and not self.is_busy(channel)
            is_certain = is_certain and not self._is_alarmed()
            refusing = (
                self.machine.refusing()
            )  # nacked, and who loses its connection never hears it
            self.model.route(publication, name, is_certain=is_certain, refusing=refusing)
            publication.is_read = is_certain
            publication.is_silent = channel != CONFIRMING
            if channel == CONFIRMING:
                self.unconfirmed[self._next_publish] = publication
                self._next_publish += 1
                self._cover(publication)
        self.send(publish_bytes(channel, exchange, key, publication.body, properties=properties))

    def _is_alarmed(self) -> bool:
        node = self.machine.node
        return node is None or bool(node.alarms.active)

    def _cover(self, publication: Publication) -> None:
        is_kept = any(copy.keeps_acks for copy in publication.copies)
        if publication.is_persistent and is_kept:
            publication.covers, self.unsettled = self.unsettled, []
        else:
            publication.tells_of = list(self.unsettled)

    def commit(self) -> None:
        """Commit what was published in the transaction."""
        publications, self.in_transaction = self.in_transaction, []
        for publication, name in publications:
            self.model.route(publication, name, is_certain=False)
        covered = [copy for one in self.unconfirmed.values() for copy in one.covers]
        self._committed_with = [*self.unsettled, *covered]

        def committed(method: Any) -> None:
            for publication, _ in publications:
                for copy in publication.copies:
                    copy.is_certain = copy.is_routed and not copy.home.is_deleting
                self.model.confirm(publication)

        self.send(self.ask(TRANSACTING, spec.Tx.Commit(), committed))

    def roll_back(self) -> None:
        """Give up what was published in the transaction."""
        for publication, _ in self.in_transaction:
            self.model.rolled_back.add(publication.number)
        self.in_transaction = []
        self.send(self.ask(TRANSACTING, spec.Tx.Rollback(), lambda _: None))

    def declare(self, home: Home, channel: int = REST) -> bytes:
        """The bytes that declare a queue, and bind it."""
        self.model.route_held(home)
        arguments: dict[str, Any] = {"x-sim": home.identity}
        if home.has_dead_letters:
            arguments |= {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        if home.ttl_ms is not None:
            arguments["x-message-ttl"] = home.ttl_ms
        if home.most is not None:
            arguments["x-max-length"] = home.most
        if home.levels is not None:
            arguments["x-max-priority"] = home.levels
        if home.version != 2:
            arguments["x-queue-version"] = home.version

        def declared(method: Any) -> None:
            home.is_declared = True

        declare = spec.Queue.Declare(queue=home.queue, durable=home.is_durable, arguments=arguments)
        data = self.ask(channel, declare, lambda _: None)
        bind = spec.Queue.Bind(queue=home.queue, exchange="fan")
        if home.vhost != HERE:
            home.is_bound = False
            bind = spec.Queue.Bind(queue=home.queue, exchange="amq.fanout")
        for each in self.model.homes if home.is_bound else ():
            if each.name == home.name and each.is_deleting and not each.is_deleted:
                each.is_bound = True  # where its deletion is refused, this one is bound
        if home.name == "dead":
            bind = spec.Queue.Bind(queue=home.name, exchange="amq.direct", routing_key="never")
        return data + self.ask(channel, bind, declared)

    def delete(self, home: Home) -> bytes:
        """The bytes that delete a queue."""
        home.is_deleting = True

        def deleted(_: Any) -> None:
            home.is_deleted = True
            if self.model.current.get(home.name) is home:
                del self.model.current[home.name]

        return self.ask(REST, spec.Queue.Delete(queue=home.queue), deleted)

    def consume(self, home: Home, prefetch: int) -> None:
        """Consume a queue on the confirming channel, so that confirms cover the acks."""
        self._next_tag += 1
        tag = f"{self.number}-{self._next_tag}"
        data = b""
        if prefetch:
            data = self.ask(CONFIRMING, spec.Basic.Qos(prefetch_count=prefetch), lambda _: None)

        def consuming(_: Any) -> None:
            self._asking.remove(home)

        self._asking.append(home)
        self.consumers[tag] = home
        self.send(
            data
            + self.ask(
                CONFIRMING, spec.Basic.Consume(queue=home.queue, consumer_tag=tag), consuming
            )
        )

    def cancel(self, tag: str) -> None:
        """End a consumer; what it has stays with the client."""
        self.send(self.ask(CONFIRMING, spec.Basic.Cancel(consumer_tag=tag), lambda _: None))

    def get(self, home: Home, *, no_ack: bool) -> None:
        """Fetch one message."""
        if no_ack:
            self.gets.append(home)

        self._asking.append(home)

        def got(method: Any) -> None:
            self._asking.remove(home)
            if no_ack:
                self.gets.remove(home)
            if isinstance(method, spec.Basic.GetOk):
                copy = self._take(home, method.body)
                if no_ack:
                    copy.settle(self.model.start)
                else:
                    self.deliveries[REST, method.delivery_tag] = copy

        self.send(self.ask(REST, spec.Basic.Get(queue=home.queue, no_ack=no_ack), got))

    def purge(self, home: Home, *, is_got: bool) -> None:
        """Remove what is ready; `is_got`: some message of it may be on its way to a client."""
        is_exact = not self._is_alarmed() and not is_got
        for other in self.model.homes if home.name == DEAD else ():
            for copy in other.all_copies():
                copy.is_purged = True
        for copy in home.all_copies():
            if copy.state == "in" and not copy.is_outstanding:
                copy.settle(self.model.start if is_exact and copy.is_certain else 0)
                copy.is_swept = True
            elif any(heir.is_guess for heir in copy.heirs):
                copy.is_purged = (
                    True  # another copy may have become that dead letter, and this one is here
                )
        self.send(self.ask(REST, spec.Queue.Purge(queue=home.queue), lambda _: None))

    def settle(self, key: tuple[int, int], how: str) -> None:
        """Ack, requeue or reject a delivery; `multiple` acks all up to it."""
        channel, tag = key
        if how == "multiple":
            keys = sorted(each for each in self.deliveries if each[0] == channel and each[1] <= tag)
        else:
            keys = [key]
        for each in keys:
            copy = self.deliveries.pop(each)
            copy.is_outstanding = False
            if how in ("ack", "multiple"):
                copy.settle(self.model.start)
                self.unsettled.append(copy)
            elif how == "reject":
                self.model.reject(copy)
                self.unsettled.append(copy)
        if how == "ack" or how == "multiple":
            method: Any = spec.Basic.Ack(tag, multiple=how == "multiple")
        elif how == "requeue":
            method = spec.Basic.Nack(tag, requeue=True)
        else:
            method = spec.Basic.Reject(tag, requeue=False)
        self.send(method_bytes(channel, method))

    def lose(self) -> None:
        """The socket is gone: what it had is requeued."""
        self.pump()
        self.is_lost = True
        for copy in self.deliveries.values():
            copy.is_outstanding = False
        self.deliveries.clear()
        for home in self.gets:
            home.grace += 1
        self.gets.clear()
        if self.client.session.wire is not None:
            self.client.session.wire = None
            self.client.session.lost("")

    # -- what comes back ----------------------------------------------------------------------------------------

    def is_being_closed(self) -> bool:
        """Whether the broker has closed something: others may get already what this client had there."""
        if not self.is_lost:
            self._incoming += self.client.read()
        return any(isinstance(method, CLOSES) for _, method in self._incoming)

    def pump(self) -> None:
        """Take in what the broker has written."""
        if self.is_lost:
            return
        incoming, self._incoming = [*self._incoming, *self.client.read()], []
        for channel, method in incoming:
            self._take_in(channel, method)

    def pump_up_to_close(self) -> None:
        """Take it in up to where the broker has closed something; nothing where it has not."""
        while not self.is_lost and self.is_being_closed():
            channel, method = self._incoming.pop(0)
            self._take_in(channel, method)
            if isinstance(method, CLOSES):
                return

    def _take_in(self, channel: int, method: Any) -> None:
        match method:
            case spec.Basic.Ack() | spec.Basic.Nack():
                self._confirmed(method)
            case spec.Basic.Deliver():
                home = self.consumers[method.consumer_tag]
                self.deliveries[channel, method.delivery_tag] = self._take(home, method.body)
            case spec.Basic.Cancel():
                self.consumers.pop(method.consumer_tag, None)
            case spec.Channel.Close() | spec.Connection.Close():
                text = method.reply_text
                if "partial tx completion" in text or "is inaccessible" in text:
                    self._require_a_fault(text)
                    if channel == TRANSACTING:
                        self._commit_was_refused()
                elif self.is_refused and "inequivalent arg" in text:
                    pass  # of a queue that is to replace one whose deletion was refused
                elif method.reply_code not in (404, 541, 320):
                    raise Violation(f"closed with {method.reply_code} {method.reply_text}")
                self.is_refused = True
                for copy in self.deliveries.values():
                    copy.is_outstanding = False
                self.deliveries.clear()
            case spec.Connection.Blocked() | spec.Connection.Unblocked():
                pass
            case _:
                if not self.is_refused:
                    self.waiting[channel].popleft()(method)

    def _confirmed(self, method: Any) -> None:
        tags = [method.delivery_tag]
        if method.multiple:
            tags = [tag for tag in self.unconfirmed if tag <= method.delivery_tag]
        for tag in tags:
            publication = self.unconfirmed.pop(tag, None)
            if publication is None:
                raise Violation(f"a publish is confirmed twice, or was never made: {tag}")
            if isinstance(method, spec.Basic.Nack):
                self._require_a_fault("a nack")
                self.model.nack(publication)
                # What is published from here on says nothing of acks that the disk refused.
                self.unsettled = [one for one in self.unsettled if one not in publication.tells_of]
            else:
                for copy in publication.copies:
                    copy.is_certain = copy.is_certain or (
                        copy.is_routed and not copy.home.is_deleting
                    )
                self.model.confirm(publication)

    def _commit_was_refused(self) -> None:
        """The disk may have refused acks, which is said once: confirms from here on do not speak of them."""
        told = self._committed_with
        self.unsettled = [one for one in self.unsettled if one not in told]
        for publication in self.unconfirmed.values():
            publication.covers = [one for one in publication.covers if one not in told]

    def _require_a_fault(self, answer: str) -> None:
        """Only who has a disk that fails may refuse a publish."""
        if not self.machine.has_failed:
            raise Violation(f"{answer}, and no call to the disk has failed")

    def _take(self, home: Home, body: bytes) -> Copy:
        number = int(body[:8])
        publication = self.model.publications.get(number)
        if publication is None or publication.body != body:
            raise Violation(
                f"{home.name}: a message with other bytes than any that was published: {body[:40]!r}"
            )
        copy = self.model.find(home, number)
        if copy is None:
            raise Violation(f"{home.name}: message {number} is delivered, and should not be there")
        if copy.state == "left":
            copy.state = "in"  # a crash brought it back
        copy.is_outstanding = True
        return copy
