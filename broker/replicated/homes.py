"""Where classic queues live: each front-end tells the others which it has, and takes what is published to them there.

    A, home of q                        the servers                          B
    queue_made(q)       ---- add ---->  burrowmq.homes  ------------------>  knows q's home
    publish to q        <-------------  burrowmq.home.<A's token>  <-------  publish through the default exchange
    answer              ------------------------------------------------->  the publish's ticket is done

Core NATS: nothing is stored, and who is not connected hears nothing. So what one says is numbered, and who misses a
number asks for all; each says once a second that it is there (`BEAT_S`), and is forgotten after `LEASE_MS` of silence.

Reply consumers (direct reply-to) are told like queues. A queue of the same name here comes before one elsewhere.

State owned: what lives here, what others have said. Called by `broker.vhost` and `broker.channel.reply` for what lives
here, and by the front-end.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Protocol

from burrowmq.broker.replicated import forwarding
from burrowmq.broker.replicated.forwarding import Elsewhere, ElsewhereReply, Sums, Taking
from burrowmq.broker.report.cluster_state import Flow
from burrowmq.broker.words.resource import describe
from burrowmq.cluster.wire import Delivered, encode_publish
from burrowmq.protocol.errors import AmqpError, NotFound

if TYPE_CHECKING:
    from burrowmq.broker.replicated.front_end import FrontEnd
    from burrowmq.broker.turn.clock import Scheduler

HOMES: Final = b"burrowmq.homes"
BEAT_S: Final = 1.0
LEASE_MS: Final = 5_000.0
AT_ONCE: Final = 1_000
"""Names in one message."""
NO_FLOW: Final = Flow()
DURABLE, REPLY = "d", "r"
Place = tuple[str, str]


class Node(forwarding.Takes, Protocol):
    """The node that this is about."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...


class Peer:
    """Another front-end, as far as it has said."""

    def __init__(self, node_name: str, heard_ms: float) -> None:
        self.node_name = node_name
        self.heard_ms = heard_ms
        self.number = 0  # of the last that has come
        self.has_all = False
        self.places: dict[Place, str] = {}


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
        self._known: dict[Place, tuple[Elsewhere, str, str]] = {}  # with whose it is, and what
        self._is_beating = False

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
        self._say(add=[[*place, kind]])

    def gone(self, vhost: str, name: str) -> None:
        """It is not here any more."""
        if self._mine.pop((vhost, name), None) is not None:
            self._say(drop=[[vhost, name]])

    def find(self, vhost: str, name: str) -> Elsewhere | None:
        """Where a message for a queue goes that lives at another front-end."""
        known = self._known.get((vhost, name))
        return None if known is None else known[0]

    def refusal(self, vhost: str, name: str) -> AmqpError | None:
        """Why a queue that lives elsewhere cannot be used here, in RabbitMQ's words; None for one that nobody has."""
        known = self._known.get((vhost, name))
        if known is None or REPLY in known[2]:
            return None
        _, who, kind = known
        where = describe("queue", name, vhost)
        node_name = self._peers[who].node_name
        durable = "durable " if DURABLE in kind else ""
        return NotFound(f"home node '{node_name}' of {durable}{where} is down or inaccessible")

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

    def _say(self, **said: Any) -> None:
        self._number += 1
        self._write(n=self._number, **said)

    def _write(self, **said: Any) -> None:
        if self._front_end.is_open:
            payload = json.dumps({"who": self._who, **said}, separators=(",", ":")).encode()
            self._front_end.write(encode_publish(HOMES, payload))

    def _say_all(self) -> None:
        rows = [[*place, kind] for place, kind in self._mine.items()]
        self._say(all=True, node=self._node.name, add=rows[:AT_ONCE])
        for first in range(AT_ONCE, len(rows), AT_ONCE):
            self._say(add=rows[first : first + AT_ONCE])

    def _beat(self) -> None:
        self._is_beating = False
        now_ms = self._front_end.now_ms()
        for who, peer in list(self._peers.items()):
            if now_ms >= peer.heard_ms + LEASE_MS:
                self._forget(who)
        self._write(beat=self._number)
        self._beat_later()

    def _beat_later(self) -> None:
        if not self._is_beating and (self._front_end.is_open or self._peers):
            self._is_beating = True
            self._scheduler.call_later(BEAT_S, self._beat)

    # -- what is heard ------------------------------------------------------------------------------------------------

    def _heard(self, deliveries: list[Delivered]) -> None:
        for delivered in deliveries:
            try:
                said = json.loads(delivered.payload)
                if said["who"] != self._who:
                    self._hear(said)
            except (ValueError, KeyError, TypeError, RecursionError):
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
        if said.get("all"):
            self._forget(who)
            peer = self._peers[who] = Peer(str(said.get("node", "")), now_ms)
            peer.has_all, peer.number = True, int(said["n"]) - 1
        elif peer is None:
            peer = self._peers[who] = Peer("", now_ms)
        peer.heard_ms = now_ms
        number = said.get("beat", said.get("n"))
        expected = peer.number if "beat" in said else peer.number + 1
        if not peer.has_all or number != expected:
            peer.has_all = False
            self._write(ask=who)
            return
        peer.number = int(number)
        for vhost, name, kind in said.get("add", ()):
            self._known_at(who, peer, (str(vhost), str(name)), str(kind))
        for vhost, name in said.get("drop", ()):
            self._known_no_more(who, peer, (str(vhost), str(name)))

    def _known_at(self, who: str, peer: Peer, place: Place, kind: str) -> None:
        peer.places[place] = kind
        if place not in self._known:
            maker = ElsewhereReply if REPLY in kind else Elsewhere
            stub = maker(self._front_end, self.sums, who, place, durable=DURABLE in kind)
            self._known[place] = stub, who, kind
            self._changed(stub)

    def _known_no_more(self, who: str, peer: Peer, place: Place) -> None:
        peer.places.pop(place, None)
        known = self._known.get(place)
        if known is None or known[1] != who:
            return
        del self._known[place]
        self._changed(known[0])
        for other, each in self._peers.items():
            if place in each.places:
                self._known_at(other, each, place, each.places[place])
                return

    def _forget(self, who: str) -> None:
        peer = self._peers.pop(who, None)
        if peer is not None:
            for place in list(peer.places):
                self._known_no_more(who, peer, place)

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
        """Others are forgotten when they have been silent for long."""

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
