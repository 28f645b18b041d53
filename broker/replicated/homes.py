"""Where classic queues live: each front-end tells the others which it has, and takes what is published to them there.

    A, home of q                        the servers                          B
    queue_made(q)       ---- add ---->  burrowmq.homes  ------------------>  knows q's home
    bind(x, q)          ---- bind --->  burrowmq.homes  ------------------>  its exchange x leads there, too
    publish to x, or q  <-------------  burrowmq.home.<A's token>  <-------  publish through x, or by name
    answer              ------------------------------------------------->  the publish's ticket is done

Core NATS: nothing is stored, and who is not connected hears nothing. So what one says is numbered, and who misses a
number asks for all. That is told a part in each turn, between `all` and `last`, and what is new meanwhile between the
parts. Each says once a second that it is there (`BEAT_S`), and is forgotten after `LEASE_MS` of silence.

Reply consumers (direct reply-to) are told like queues. A queue of the same name here comes before one elsewhere.

State owned: what lives here, what others have said. Called by `broker.vhost` and `broker.channel.reply` for what lives
here, and by the front-end.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from burrowmq.broker.replicated import forwarding
from burrowmq.broker.replicated.forwarding import Elsewhere, ElsewhereReply, Sums, Taking
from burrowmq.broker.replicated.remote_bindings import Home, Peer, Place, RemoteBindings, read
from burrowmq.broker.report.cluster_state import Flow
from burrowmq.broker.words.resource import describe, row_key
from burrowmq.cluster.wire import Delivered, encode_publish
from burrowmq.protocol.errors import AmqpError, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from burrowmq.broker.replicated.front_end import FrontEnd
    from burrowmq.broker.turn.clock import Scheduler
    from burrowmq.broker.vhost.share import Topology
    from burrowmq.broker.words.resource import Row

HOMES: Final = b"burrowmq.homes"
BEAT_S: Final = 1.0
LEASE_MS: Final = 5_000.0
AT_ONCE: Final = 1_000
"""Rows in one message, which ends before that at `PART_SIZE`, or at half of what the servers take."""
PART_SIZE: Final = 256 << 10
"""Octets of those."""
HEAD_SIZE: Final = 128
"""Octets around them, at most."""
NO_FLOW: Final = Flow()
Part: TypeAlias = tuple[str, list[str]]
"""What is said of rows, and these as JSON."""
DURABLE, REPLY = "d", "r"


class Node(forwarding.Takes, Protocol):
    """The node that this is about."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...


class Homes:
    """Those that one front-end knows."""

    def __init__(self, front_end: FrontEnd, scheduler: Scheduler, node: Node) -> None:
        self._front_end = front_end
        self._scheduler = scheduler
        self._node = node
        self.sums = Sums()
        """Of messages that went to queues elsewhere, or came for those here."""
        self._taking = Taking(front_end, self.sums, scheduler, node)
        self._who = front_end.token.decode()
        self._number = 0
        self._mine: dict[Place, str] = {}
        self._peers: dict[str, Peer] = {}
        self._known: dict[Place, Home] = {}
        self._bindings = RemoteBindings(node, self._known)
        self._unsaid: list[tuple[str, Row]] = []
        """Bindings that came or went in this turn."""
        self._untold: Iterator[list[Part]] | None = None
        """What is left of all, while that is told."""
        self._is_beating = False
        self._beat_due_ms = 0.0

    def start(self) -> None:
        """Hear of others, and take what they send."""
        self._front_end.listen(HOMES, self._heard)
        self._front_end.listen(forwarding.subject_of(self._who), self._taking.taken)
        self._front_end.join(self, HOMES.decode())

    # -- what lives here; see `broker.vhost.share.Homes` --------------------------------------------------------------

    def made(self, vhost: str, name: str, *, durable: bool) -> None:
        """A classic queue is here."""
        self._add((vhost, name), DURABLE * durable)

    def reply_made(self, vhost: str, key: bytes) -> None:
        """Somebody here waits for direct replies."""
        self._add((vhost, key.decode()), REPLY)

    def _add(self, place: Place, kind: str) -> None:
        self._mine[place] = kind
        self._say("add", [*place, kind])

    def gone(self, vhost: str, name: str) -> None:
        """It is not here any more."""
        if self._mine.pop((vhost, name), None) is not None:
            self._say("drop", [vhost, name])

    def bound(self, row: Row) -> None:
        """A binding was made here."""
        self._say_later("bind", row)

    def unbound(self, row: Row) -> None:
        """A binding is gone."""
        self._say_later("unbind", row)

    def lead_from(self, vhost: Topology, exchange: str) -> None:
        """An exchange is here; what other front-ends have bound to it leads to them from now on."""
        self._bindings.lead_from(vhost, exchange)

    def lead_to(self, vhost: Topology, name: str) -> None:
        """No queue here has that name any more; what leads to one elsewhere does so again."""
        if (vhost.name, name) in self._known:
            self._bindings.lead_to((vhost.name, name))

    def lead_no_more(self, vhost: Topology, name: str) -> None:
        """A queue here has that name, and comes before one elsewhere."""
        if (vhost.name, name) in self._known:
            self._bindings.lead_to_no_more((vhost.name, name))

    def find(self, vhost: str, name: str) -> Elsewhere | None:
        """Where a message for a queue goes that lives at another front-end."""
        home = self._known.get((vhost, name))
        return None if home is None else home.stub

    def refusal(self, vhost: str, name: str) -> AmqpError | None:
        """Why a queue that lives elsewhere cannot be used here, in RabbitMQ's words; None for one that nobody has."""
        home = self._known.get((vhost, name))
        if home is None or REPLY in home.kind:
            return None
        where = describe("queue", name, vhost)
        durable = "durable " if DURABLE in home.kind else ""
        return NotFound(
            f"home node '{home.peer.node_name}' of {durable}{where} is down or inaccessible"
        )

    @property
    def here_count(self) -> int:
        """Queues and reply consumers that live here."""
        return len(self._mine)

    @property
    def elsewhere_count(self) -> int:
        """Those that others have."""
        return len(self._known)

    @property
    def peer_count(self) -> int:
        """Other front-ends that are heard of."""
        return len(self._peers)

    # -- what is said -------------------------------------------------------------------------------------------------

    def _say(self, verb: str, *rows: list[str]) -> None:
        self._say_bindings()
        self._say_part((verb, [json.dumps(row) for row in rows]))

    def _say_part(self, part: Part) -> None:
        self._number += 1
        verb, rows = part
        self._write(n=self._number, rows=f'"{verb}":[{",".join(rows)}]')

    def _say_later(self, verb: str, row: Row) -> None:
        """With what else comes and goes in this turn: an exchange may be deleted with many bindings."""
        if row["kind"] == "queue" and (row["vhost"], row["destination"]) in self._mine:
            if not self._unsaid:
                self._scheduler.call_later(0.0, self._say_bindings)
            self._unsaid.append((verb, row))

    def _say_bindings(self) -> None:
        unsaid, self._unsaid = self._unsaid, []
        for parts in self._parts(unsaid):
            for part in parts:
                self._say_part(part)

    def _write(self, *, rows: str = "", **said: Any) -> None:
        if self._front_end.is_open:
            head = json.dumps({"who": self._who, **said}, separators=(",", ":"))
            payload = f"{head[:-1]},{rows}}}" if rows else head
            self._front_end.write(encode_publish(HOMES, payload.encode()))

    def _say_all(self) -> None:
        self._unsaid.clear()  # it is among all
        self._say("all", [self._node.name])
        if self._untold is None:
            self._scheduler.call_later(0.0, self._tell)
        self._untold = self._parts(self._rows())

    def _tell(self) -> None:
        if self._untold is None:
            return
        parts = next(self._untold, None)
        if parts is None:
            self._untold = None
            self._say("last")
        else:
            self._say_bindings()
            for part in parts:
                self._say_part(part)
            self._scheduler.call_later(0.0, self._tell)

    def _rows(self) -> Iterator[tuple[str, Any]]:
        """What is here when it is asked for; places and bindings may come and go between two.

        A verb without a row: what comes next is of another.
        """
        places = list(self._mine)
        for place in places:
            if place in self._mine:
                yield "add", [*place, self._mine[place]]
        yield "bind", None
        for place in places:
            if place in self._mine and (vhost := self._node.vhosts.get(place[0])):
                for row in vhost.graph.own_rows_to("queue", place[1]):
                    yield "bind", row

    def _parts(self, rows: Iterable[tuple[str, Any]]) -> Iterator[list[Part]]:
        """What is said, in order, so much at a time that no message is too large for the servers.

        A row is never asked for before the turn in which it is said, but for one of another verb. One that no message
        has room for is left out.
        """
        room = self._front_end.payload_max - HEAD_SIZE
        said, size = "", 0
        part: list[str] = []
        for verb, row in rows:
            if part and verb != said:
                yield [(said, part)]
                part, size = [], 0
            said = verb
            if row is None:
                continue
            text = json.dumps(row, separators=(",", ":"))
            if len(text) > room:
                self._keep_to_itself(verb, row, len(text))
            elif size + len(text) > room:
                yield [(said, part), (said, [text])]
                part, size = [], 0
            else:
                part.append(text)
                size += len(text) + 1
            if len(part) == AT_ONCE or size >= min(PART_SIZE, room // 2):
                yield [(said, part)]
                part, size = [], 0
        if part:
            yield [(said, part)]

    def _keep_to_itself(self, verb: str, row: Row, size: int) -> None:
        """Other front-ends do not hear of a binding: what is sent there would end the connection."""
        if verb == "bind":
            key = row_key(*(str(row[name]) for name in ("vhost", "source", "kind", "destination")))
            reason = f"{size} octets, and the servers take {self._front_end.payload_max}"
            self._front_end.observer.definition_not_shared("binding", key, reason)

    def _beat(self) -> None:
        self._is_beating = False
        now_ms = self._front_end.now_ms()
        late_ms = now_ms - self._beat_due_ms
        if (
            late_ms > BEAT_S * 1000
        ):  # we stood still: what they have said meanwhile is still to be read
            for peer in self._peers.values():
                peer.heard_ms += late_ms
        for who, peer in list(self._peers.items()):
            if now_ms >= peer.heard_ms + LEASE_MS:
                self._forget(who)
        self._write(beat=self._number)
        self._beat_later()

    def _beat_later(self) -> None:
        if not self._is_beating and (self._front_end.is_open or self._peers):
            self._is_beating = True
            self._beat_due_ms = self._front_end.now_ms() + BEAT_S * 1000
            self._scheduler.call_later(BEAT_S, self._beat)

    # -- what is heard ------------------------------------------------------------------------------------------------

    def _heard(self, deliveries: list[Delivered]) -> None:
        for delivered in deliveries:
            try:
                said = json.loads(delivered.payload)
                if said["who"] != self._who:
                    self._hear(said)
            except (ValueError, LookupError, ArithmeticError, TypeError, RecursionError):
                continue  # whoever may publish there may have written it

    def _hear(self, said: dict[str, Any]) -> None:
        who = str(said["who"])
        if "ask" in said:
            if said["ask"] in {"", self._who}:
                self._say_all()
            return
        if said.get("bye"):
            self._forget(who)
            return
        now_ms = self._front_end.now_ms()
        peer = self._peers.get(who)
        if peer is None:
            peer = self._peers[who] = Peer(who, now_ms)
        if "all" in said:
            peer.node_name = str(said["all"][0][0])
            peer.begins(int(said["n"]))
        peer.heard_ms = now_ms
        number = said.get("beat", said.get("n"))
        expected = peer.number if "beat" in said else peer.number + 1
        if not peer.has_all or number != expected:
            peer.has_all = False
            self._write(ask=who)
            return
        peer.number = int(number)
        self._hear_rows(peer, said)
        if "last" in said:
            for place in list(peer.stale_places):
                self._known_no_more(peer, place, is_gone=False)
            for place, key in list(peer.stale_edges):
                self._bindings.unbound(peer, place, key, is_gone=False)
            peer.has_told_all()

    def _hear_rows(self, peer: Peer, said: dict[str, Any]) -> None:
        for vhost, name, kind in said.get("add", ()):
            self._known_at(peer, (str(vhost), str(name)), str(kind))
        for row in said.get("bind", ()):
            self._bindings.bound(peer, *read(row))
        for row in said.get("unbind", ()):
            place, key, _ = read(row)
            self._bindings.unbound(peer, place, key, is_gone=True)
        for vhost, name in said.get("drop", ()):
            self._known_no_more(peer, (str(vhost), str(name)), is_gone=True)

    def _known_at(self, peer: Peer, place: Place, kind: str) -> None:
        peer.stale_places.discard(place)
        if peer.places.get(place, kind) != kind:
            self._known_no_more(peer, place, is_gone=False)
        peer.places[place] = kind
        if place not in self._known:
            maker = ElsewhereReply if REPLY in kind else Elsewhere
            stub = maker(self._front_end, self.sums, peer.who, place, durable=DURABLE in kind)
            self._known[place] = Home(stub, peer, kind)
            self._changed(stub)
            self._bindings.lead_to(place)

    def _known_no_more(self, peer: Peer, place: Place, *, is_gone: bool) -> None:
        if peer.places.pop(place, None) is None:
            return
        self._bindings.forget(peer, place, is_gone=is_gone)
        home = self._known[place]
        if home.peer is not peer:
            return
        del self._known[place]
        self._changed(home.stub)
        for other in self._peers.values():
            if place in other.places:
                self._known_at(other, place, other.places[place])
                return

    def _forget(self, who: str) -> None:
        peer = self._peers.pop(who, None)
        if peer is not None:
            for place in list(peer.places):
                self._known_no_more(peer, place, is_gone=False)

    def _changed(self, stub: Elsewhere) -> None:
        vhost = self._node.vhosts.get(stub.vhost_name)
        if vhost is not None and stub.name not in vhost.queues:
            vhost.queue_changed(stub)

    # -- the connection; see `front_end.Member` -----------------------------------------------------------------------

    def cluster_opened(self) -> None:
        """Say what is here, and ask others."""
        self._say_all()
        self._write(ask="")
        self._beat_later()

    def cluster_lost(self) -> None:
        """Others are forgotten when they have been silent for long; who is there later is told all."""
        self._untold = None

    def cluster_drained(self) -> None:
        """Nothing waits for that."""

    def cluster_closing(self) -> None:
        """What is here is nowhere any more."""
        self._write(bye=True)

    def cluster_news(self, who: str) -> None:
        """Nothing: what has changed is said on a subject of its own."""

    def cluster_used(self) -> None:
        """Nothing."""

    @property
    def flow(self) -> Flow:
        """Nothing of a replicated queue's."""
        return NO_FLOW
