"""What the clients of the simulated machine know: what they published, what was promised, what may be where.

A `Publication` has one `Copy` in each `Home` that it was routed to; a home is one queue from its declaration to its
deletion, so that a queue that is deleted and declared again has two. A copy is `in` its home, or `left`: it was acked,
rejected, purged or has expired, and a crash may bring it back until that is durable; then it is `gone` for good. A copy
that left as a dead letter has `heirs` in the queue of dead letters.

State owned: all of it. `tests.simulation.machine.clients` changes it, `tests.simulation.machine.audit` compares it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Literal

State = Literal["in", "left", "gone"]
DEAD = "dead"
NAMES = ("a", "b", "c", "d")  # of the queues that a run declares
HERE = "/"


def keyed(vhost: str, queue: str) -> str:
    """The name by which a queue is known here: with its vhost before it where that is not the usual one."""
    return queue if vhost == HERE else f"{vhost}:{queue}"


def place_of(name: str) -> tuple[str, str]:
    """The vhost and the queue that a name stands for."""
    vhost, mark, queue = name.rpartition(":")
    return (vhost, queue) if mark else (HERE, queue)


@dataclass(eq=False, slots=True)
class Publication:
    """One message, published once."""

    number: int
    body: bytes
    is_persistent: bool
    publisher: int
    priority: int
    deadline_ms: int | None
    is_confirmed: bool = False
    is_silent: bool = False  # nobody waits for a confirm of it
    is_read: bool = False  # the broker has routed it as it was sent
    copies: list[Copy] = field(default_factory=list)
    covers: list[Copy] = field(default_factory=list)  # acks that its confirm promises too
    tells_of: list[Copy] = field(default_factory=list)  # acks that a nack of it may be for


@dataclass(eq=False, slots=True)
class Copy:
    """A message in a queue."""

    publication: Publication
    home: Home
    state: State = "in"
    is_promised: bool = False  # it has to survive whatever happens
    is_certain: bool = True  # the broker has taken it in, in this process
    is_routed: bool = True  # its queue was declared and bound when it was published
    is_outstanding: bool = False  # a client has it
    is_suspect: bool = False  # what can be read of it may not be on the disk, whoever syncs it
    page_lost_in: int = 0  # the process in which a failed sync may have taken its page last
    deadline_ms: int | None = None
    born_in: int = 0  # the process in which it came
    left_in: int = 0  # the process in which it left
    heirs: list[Copy] = field(default_factory=list)
    origin: Copy | None = None
    is_owed: bool = False  # a dead letter whose origin was promised: it is here, or that is back
    is_guess: bool = False  # it expired somewhere, and which copy did is not known
    is_settled: bool = False  # a client has acked or rejected it, or purged its queue
    is_purged: bool = False  # what it has become may have been purged with the dead letters
    is_swept: bool = False  # its queue was purged: it went with that, unless it had left before

    @property
    def number(self) -> int:
        """Of the publication."""
        return self.publication.number

    @property
    def was_waited_for(self) -> bool:
        """Whether somebody is to hear that it lasts: until then the store has it in memory, too."""
        publication = self.publication
        is_durable = publication.is_persistent and self.home.is_durable
        return is_durable and (self.is_promised or not publication.is_silent)

    @property
    def keeps_acks(self) -> bool:
        """Whether a sync has to come before its confirm: what a full queue drops on arrival is nowhere."""
        return self.home.is_durable and self.is_routed and self.home.most is None

    @property
    def has_to_last(self) -> bool:
        """Whether it was promised, by a queue that drops what is too much as dead letters."""
        home = self.home
        is_here = self.is_promised and not (self.is_purged or home.is_deleting or home.is_replaced)
        return is_here and home.most is not None and home.has_dead_letters

    def may_have_gone_in(self, process: int) -> bool:
        """Whether a sync of this process that failed may have taken it: one for others, or of an idle moment."""
        return self.page_lost_in == process and not self.was_waited_for

    def leave(self, start: int) -> None:
        """It was settled in this process."""
        if self.state == "in":
            self.state, self.left_in = "left", start
        self.is_outstanding = False

    def settle(self, start: int) -> None:
        """A client has settled it in this process."""
        self.is_settled = True
        self.leave(start)


@dataclass(eq=False, slots=True)
class Home:
    """A queue, from its declaration to its deletion."""

    name: str
    identity: int
    is_durable: bool
    has_dead_letters: bool = False
    ttl_ms: int | None = None
    most: int | None = None  # messages that it may have ready
    levels: int | None = None
    version: int = 2
    is_declared: bool = False  # the client has seen declare-ok
    is_bound: bool = (
        True  # to `fan`; only a crash in the middle of a declaration leaves one that is not
    )
    is_deleting: bool = False  # the client has asked for its end
    is_deleted: bool = False  # ... and has the answer
    is_replaced: bool = (
        False  # in the same commit as its deletion a successor may have been declared
    )
    began_in: int = 0  # the process in which its first message came
    has_name: bool = True  # the last start has found the file with its name whole
    is_named: bool = False  # that file is to last
    grace: int = 0  # messages that basic.get may have taken away without a word
    copies: dict[int, list[Copy]] = field(default_factory=dict)

    @property
    def vhost(self) -> str:
        """Where it is."""
        return place_of(self.name)[0]

    @property
    def queue(self) -> str:
        """Its name there."""
        return place_of(self.name)[1]

    @property
    def is_stable(self) -> bool:
        """Whether nobody declares or deletes it just now."""
        return self.is_declared and not self.is_deleting

    @property
    def is_at_hand(self) -> bool:
        """Whether clients of the usual vhost may use it."""
        return self.is_stable and ":" not in self.name

    def all_copies(self) -> list[Copy]:
        """Every copy that was ever here."""
        return [copy for copies in self.copies.values() for copy in copies]

    def add(self, copy: Copy) -> None:
        """A copy comes."""
        if not self.copies:
            self.began_in = copy.born_in
        self.copies.setdefault(copy.number, []).append(copy)


class Model:
    """Everything that the clients of one run know."""

    def __init__(self) -> None:
        self.publications: dict[int, Publication] = {}
        self.homes: list[Home] = []
        self.current: dict[str, Home] = {}  # the newest home of each name
        self.start = 1  # which process runs
        self.now_ms = 0
        self.held: dict[int, tuple[Publication, str]] = {}  # that the broker may not have read yet
        self.rolled_back: set[int] = set()
        self.are_pages_suspect = False  # those that the last start has read, see begin_start

    def targets(self, name: str) -> list[Home]:
        """The queues that a publish to a queue's name, or to the exchange `fan`, may reach now."""
        names = [name]
        if name == "fan":
            names = [each for each in self.current if each != DEAD and ":" not in each]
        homes = [self.current[each] for each in names if each in self.current]
        # A successor that nobody reads the declaration of leaves its predecessor where it is.
        homes += [
            home
            for home in self.homes
            if home.is_deleting and home.name in names and home not in homes
        ]
        return [home for home in homes if not home.is_deleted and (name != "fan" or home.is_bound)]

    def route(
        self,
        publication: Publication,
        name: str,
        *,
        is_certain: bool,
        refusing: Collection[str] = (),
    ) -> None:
        """A publication is on its way to its queues, some of which refuse publishes just now."""
        if not is_certain:
            self.held[publication.number] = publication, name
        for home in self.targets(name):
            is_taken = is_certain and home.is_stable and home.name not in refusing
            self._send(publication, home, is_certain=is_taken)

    def route_held(self, home: Home) -> None:
        """A queue is being declared: what the broker has not read yet may go there too."""
        for publication, name in self.held.values():
            if (
                name in (home.name, "fan" if home.vhost == HERE else home.name)
                and home.name != DEAD
            ):
                self._send(publication, home, is_certain=False)

    def _send(self, publication: Publication, home: Home, *, is_certain: bool) -> None:
        copy = Copy(publication, home, is_certain=is_certain)
        copy.is_routed, copy.born_in = home.is_stable, self.start
        own = None if home.ttl_ms is None else self.now_ms + home.ttl_ms
        ends = [each for each in (own, publication.deadline_ms) if each is not None]
        copy.deadline_ms = min(ends) if ends else None
        home.add(copy)
        publication.copies.append(copy)

    def confirm(self, publication: Publication) -> None:
        """A publication is safe, and with it what was acked before it where a durable queue has taken it."""
        publication.is_confirmed = True
        self.held.pop(publication.number, None)
        is_kept = False
        for copy in publication.copies:
            if publication.is_persistent and copy.home.is_durable and copy.is_routed:
                copy.is_promised = True
                if copy.home.began_in == self.start and copy.state == "in":
                    copy.home.is_named = copy.home.is_named or not self.is_over(copy)
                # One that waited may have come when its queue was gone: it went nowhere then.
                is_here = publication.is_read or not copy.home.is_deleting
                is_kept = is_kept or (copy.keeps_acks and is_here)
        for copy in publication.covers if is_kept else ():
            if copy.state == "left" and copy.left_in == self.start:
                copy.state = "gone"

    def nack(self, publication: Publication) -> None:
        """A publication is refused: a nack promises nothing, neither that it is there nor that it is not."""
        self.held.pop(publication.number, None)
        for copy in publication.copies:
            copy.is_certain = False

    def reject(self, copy: Copy) -> None:
        """A client refuses a message: it is a dead letter where its queue has them."""
        copy.settle(self.start)
        dead, home = self.current.get(DEAD), copy.home
        if home.has_dead_letters and not home.is_deleted and dead is not None:
            heir = self.bequeath(copy, dead)
            heir.is_certain = dead.is_stable and not home.is_deleting
            heir.is_owed = heir.is_certain and copy.is_promised and not copy.is_suspect

    def bequeath(self, copy: Copy, dead: Home) -> Copy:
        """A copy goes to the queue of dead letters."""
        heir = Copy(copy.publication, dead, origin=copy, born_in=self.start)
        copy.heirs.append(heir)
        dead.add(heir)
        return heir

    def find(self, home: Home, number: int) -> Copy | None:
        """The copy that a client is given by a queue; None: there is none that could be.

        Of several dead letters of one message it is one that is certain to be there, if there is one: what was rejected
        while its queue was being deleted may have become none.
        """
        copies = sorted(home.copies.get(number, ()), key=lambda copy: not copy.is_certain)
        for wanted in ("in", "left"):
            for copy in copies:
                if copy.state == wanted and not copy.is_outstanding:
                    if wanted == "left" and copy.left_in == self.start:
                        continue
                    return copy
        return self.not_expired(home, number) or self.unforeseen_heir(home, number)

    def not_expired(self, home: Home, number: int) -> Copy | None:
        """A copy that was taken for the one that had expired, where another one of the same message may be that."""
        for copy in home.copies.get(number, ()):
            for heir in copy.heirs if copy.state == "left" else ():
                other = self._other_origin(copy) if heir.is_guess else None
                if other is not None:
                    copy.heirs.remove(heir)
                    other.heirs.append(heir)
                    heir.origin = other
                    other.leave(self.start)
                    copy.state = "in"
                    return copy
        return None

    def _other_origin(self, copy: Copy) -> Copy | None:
        for other in copy.publication.copies:
            is_ready = (other.state == "in" and not other.is_outstanding) or other.is_swept
            if other is copy or not is_ready or not other.home.has_dead_letters:
                continue
            if self.is_over(other) and len(other.heirs) <= self.start - other.born_in:
                return other
        return None

    def unforeseen_heir(self, home: Home, number: int) -> Copy | None:
        """A dead letter that a queue has although nothing was rejected into it."""
        return self._left_to_older(home, number) or self._expired_heir(home, number)

    def _left_to_older(self, home: Home, number: int) -> Copy | None:
        """The copy for a queue of dead letters that was declared anew, whose declaration a crash has undone.

        Where the origin is deleted in the same commit copies are durable before that, and with it the definitions.
        """
        for other in self.homes if home.name == DEAD else ():
            for copy in other.copies.get(number, ()) if other.identity > home.identity else ():
                if copy.state == "in" and copy.origin is not None:
                    copy.leave(self.start)
                    if copy in copy.origin.heirs:  # it is that one, and no second
                        copy.origin.heirs.remove(copy)
                    return self.bequeath(copy.origin, home)
        return None

    def _expired_heir(self, home: Home, number: int) -> Copy | None:
        """A message that nobody rejected is a dead letter when its time is over, or its queue is full."""
        publication = self.publications.get(number)
        if home.name != DEAD or publication is None:
            return None
        for copy in publication.copies:
            if not copy.home.has_dead_letters or not self.is_over(copy) or copy.state == "gone":
                continue
            # A crash between the copy and its original's ack leaves both: in each process it may expire once more.
            if len(copy.heirs) <= self.start - copy.born_in:
                copy.leave(self.start)
                heir = self.bequeath(copy, home)
                heir.is_guess, heir.page_lost_in = True, copy.page_lost_in  # it may be older
                return heir
        return None

    def is_over(self, copy: Copy) -> bool:
        """Whether a message's time may be over, or it may have been too much."""
        if copy.home.most is not None:
            return True
        return copy.deadline_ms is not None and copy.deadline_ms <= self.now_ms + 2

    def begin_start(self, *, is_suspicious: bool, is_after_power_cut: bool) -> None:
        """Another process runs: what was in flight may be there or not.

        `is_suspicious`: syncs failed before the last process ended, and there was no power cut. Linux takes pages whose
        sync failed for clean: the new process reads what nobody was told is safe, and no sync of its own, nor of one
        after it, writes it.
        """
        self.start += 1
        self.are_pages_suspect = is_suspicious or (
            self.are_pages_suspect and not is_after_power_cut
        )
        self.held.clear()
        for home in self.homes:
            for copy in home.all_copies():
                copy.is_outstanding = False
                copy.is_certain = False
                copy.is_suspect = copy.is_suspect or (is_suspicious and not copy.is_promised)

    def deleted(self, homes: Iterable[Home]) -> None:
        """Somebody was told that these queues are gone."""
        for home in homes:
            home.is_deleted = True
            if self.current.get(home.name) is home:
                del self.current[home.name]

    def all_safe(self, faulty: Collection[str] = ()) -> None:
        """Everything was idle for a while: what was settled stays away, but in queues whose acks cannot be written."""
        self.stay_away(self.settled(), faulty)

    def settled(self) -> list[Copy]:
        """What was settled in this process, and may come back."""
        copies = [copy for home in self.homes for copy in home.all_copies()]
        return [copy for copy in copies if copy.state == "left" and copy.left_in == self.start]

    def stay_away(self, settled: Iterable[Copy], faulty: Collection[str] = ()) -> None:
        """What was settled long enough ago is durable, but in queues whose acks cannot be written."""
        for copy in settled:
            if copy.home.name not in faulty and copy.state == "left" and not self.is_over(copy):
                copy.state = "gone"

    def promise_nothing(self) -> None:
        """The power went, and what is confirmed was only written: any of it may be there, or not."""
        for home in self.homes:
            for copy in home.all_copies():
                copy.is_promised = copy.is_certain = copy.is_owed = False
                copy.state = "left" if copy.state == "gone" else copy.state

    def lose_pages(self, process: int) -> None:
        """A sync failed, and what it was to write cannot be read: any of what was published until now."""
        for home in self.homes:
            for copy in home.all_copies():
                copy.page_lost_in = process

    def stopped(self, process: int) -> None:
        """A clean stop: what lasts is on disk, confirmed or not, and what was settled stays away.

        But not what a failed sync of this process took before, of which nobody was told that it is there.
        """
        self.all_safe()
        for home in self.homes:
            for copy in home.all_copies() if home.is_durable and home.is_stable else ():
                is_safe = copy.is_certain and not copy.is_suspect
                is_safe = is_safe and not copy.may_have_gone_in(process)
                if copy.state == "in" and is_safe and copy.publication.is_persistent:
                    copy.is_promised = True
                    home.is_named = home.is_named or not home.has_name
