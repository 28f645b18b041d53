"""One seed of the simulated machine: a plan of operations, the run of it, and what it came to.

`plan_of` draws the limits, the faults and the list of operations of a seed; `run` executes a plan. Each operation has a
seed of its own, so that a plan can be cut down (`minimized`) and what is left does what it did: a failure is printed
with its seed, its history, and the shortest plan that fails alike.
"""

from __future__ import annotations

import errno
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pika import spec

from burrowmq.broker.definitions.parameters import clear_policy, set_policy
from burrowmq.broker.rules.policy import Policy
from burrowmq.storage.errors import StorageError
from burrowmq.storage.names import QueueNames
from tests.simulation.machine.audit import Auditor
from tests.simulation.machine.branches import Branches
from tests.simulation.machine.clients import CONFIRMING, REST, TRANSACTING, Refused, SimClient
from tests.simulation.machine.coverage import Met
from tests.simulation.machine.damages import stray_entry
from tests.simulation.machine.model import DEAD, HERE, Home, Model, Publication
from tests.simulation.machine.node import Limits, Machine, Violation
from tests.simulation.machine.places import Ending
from tests.simulation.machine.script import take_scripted
from tests.support.bench.client import Client
from tests.support.machine_disk import MachineDisk
from tests.support.sim_filesystem import PowerCut
from tests.support.sim_threads import Stuck
from tests.support.wire_client import method_bytes

LOSSES = frozenset({"record_lost", "message_set_aside", "index_unreadable", "compaction_failed"})
TOLD = LOSSES | {"file_damaged"}  # damage, of which no message need have gone
STORMS = 0.25  # of the runs
DEBTS = 0.25  # of the runs in which calls fail
PAIRS = 0.3
ESTATES = 0.2
TRICKLES = 0.4
TORN_SMALL = 0.2  # what the sectors are to the files of a large queue, 64 octets are to these
SQLITE = 0.2
RESEGMENTED = 0.05
OS = 0.05
NEAR = 512  # what stands in a record before its body: a dead letter has 350 octets of headers
PIECE = 8  # octets by which a part of a body is known
NAMES = ("a", "b", "c", "d")
# Stores without a commit log, with one, and with one after some starts.
LOGS = ((False,), (True,), (True,), (True, False), (False, True, True))
SIZES = (8, 20, 60, 130, 400, 900)
SMALL_SIZES = SIZES[:3]
WRITES = frozenset({"pwrite", "create", "truncate"})
SYNCS = frozenset({"fdatasync", "fsync_dir"})
READS = frozenset({"pread", "open"})
NAMING = frozenset({"unlink", "rename", "mkdir", "rmtree"})
# Calls that fail for one file or directory, and others do not.
TOGETHER = (
    *(("pwrite",), ("pwrite", "create"), ("fdatasync",), ("fdatasync",), ("fsync_dir",)),
    *(("pwrite", "fdatasync"), ("unlink", "rename"), ("pread",)),
)
WEIGHTS = {
    "publish": 30,
    "settle": 16,
    "consume": 6,
    "cancel": 2,
    "get": 5,
    "transact": 4,
    "declare": 4,
    "delete": 2,
    "redeclare": 2,
    "purge": 2,
    "policy": 3,
    "lose": 2,
    "wait": 8,
    "idle": 3,
    "fault": 3,
    "heal": 3,
    "look": 1,
    "crash": 3,
    "restart": 1,
}
# What is under way when the power goes in a storm: one commit of it may be cut at any of its calls.
UNDER_WAY = (
    *("publish", "publish", "settle", "settle", "redeclare", "redeclare", "delete"),
    *("transact", "policy", "purge", "idle", "restart"),
)

SECOND_LIVES = 0.4  # of the copies of a run
# What is built upon a start in a copy, before the machine goes off again.
LIVES = (
    *(("publish",), ("publish", "publish"), ("consume", "settle", "publish")),
    *(("publish", "restart"), ("restart", "publish"), ("declare", "publish", "publish")),
)


@dataclass(frozen=True)
class Plan:
    """What a seed stands for."""

    seed: int
    limits: Limits
    strict: bool
    sector: int
    reverts: bool
    switch_share: float
    has_faults: bool
    has_damage: bool
    steps: tuple[tuple[str, int], ...]
    letters: float = 0.4  # of the queues have dead letters
    priorities: float = 0.25
    silence: float = 0.0  # of the publishes wait for no confirm, so that nothing is synced for them
    strays: float = (
        0.0  # of the cuts find an index entry in another place, too, where damage is had
    )
    is_plain: bool = (
        False  # queues are durable and nothing else, and nothing happens that no step says
    )

    @property
    def may_lose_power(self) -> bool:
        """Whether what is confirmed outlives the power, and not only the process."""
        return self.limits.store.get("confirm") != "written"


def _with_short_commits(limits: Limits) -> Limits:
    """Such that a commit of a small message for a queue with own files takes the short way of the commit log."""
    store = {**limits.store, "open_files": 256, "log_queue_limit": 300}
    return replace(limits, store=store, embed_below=120, cache_size=512 * 1024)


def plan_of(seed: int, *, may_fail: bool = False) -> Plan:
    """Draw a seed's limits and operations. Each run is good at something else: weights are swarm-varied.

    `may_fail`: calls to the disk fail, too.
    """
    rng = random.Random(seed)
    log = random.Random(f"log {seed}")  # of its own: what the others draw does not depend on it
    scrub = random.Random(f"scrub {seed}")
    confirm = random.Random(f"confirm {seed}")
    storm = random.Random(f"storms {seed}")
    debt = random.Random(f"debts {seed}")
    pairs = random.Random(f"pairs {seed}")
    stray = random.Random(f"strays {seed}")
    estate = random.Random(f"estates {seed}")
    trickle = random.Random(f"trickles {seed}")
    entry_count = rng.choice((8, 16, 16, 64, 256))
    limits = Limits(
        store={
            "rewrite_above": rng.choice((600, 600, 4000, 1 << 22)),
            "journal_run_bytes": rng.choice((200, 500, 16384)),
            "journal_direct_bytes": rng.choice((3000, 1 << 26)),
            "convert_slice": rng.choice((1, 2, 32)),
            "unsynced_limit": rng.choice((2000, 32 << 20)),
            "open_files": rng.choice((6, 12, 256)),
            "confirm": "written" if confirm.random() < 0.12 and not may_fail else "fsync",
            "log_limit": log.choice((1500, 6000, 6000, 1 << 20)),
            "log_queue_limit": log.choice((300, 700, 700, 16 * 1024)),
            "log_total_limit": log.choice((2500, 1 << 20)),
            "scrub_period_s": scrub.choice((0.0, 0.0, 0.0, 2.0, 10.0, 60.0)),
            "scrub_bytes_per_s": scrub.choice((20_000, 200_000, 8 << 20)),
        },
        embed_below=rng.choice((0, 120, 120, 120, 4096)),
        segment_size=rng.choice((1500, 3000, 3000, 20_000)),
        entry_count=entry_count,
        journal_entries=rng.choice((5, 20, 200)),
        cache_size=rng.choice((600, 4096, 512 * 1024)),
        default_version=rng.choice((1, 2)),
        default_mode=rng.choice(("bounded", "bounded", "cached")),
        index=rng.choice(("array", "array", "array", "paged")),
        reserved_segments=rng.choice((4, 10, 4096)),
        is_checked_each_turn=rng.random() < 0.1,
        logs=log.choice(LOGS),
        is_scaled=random.Random(f"scaled {seed}").random() < 0.5,
        has_os=random.Random(f"os {seed}").random() < OS,
        has_sqlite=random.Random(f"sqlite {seed}").random() < SQLITE,
    )
    weights = {name: weight * rng.choice((0, 1, 1, 1, 3)) for name, weight in WEIGHTS.items()}
    weights["publish"] = weights["publish"] or 30
    rng.random()  # so that the others are drawn as when a third of the runs had faults
    if may_fail:
        weights["fault"] = weights["fault"] or WEIGHTS["fault"]
    else:
        weights["fault"] = weights["heal"] = 0
    names = list(weights)
    count = rng.choice((25, 40, 60))
    chosen = rng.choices(names, list(weights.values()), k=count)
    if storm.random() < STORMS:
        chosen = ["strike" if storm.random() < 0.25 else name for name in chosen]
    if may_fail and debt.random() < DEBTS:
        chosen = ["owe" if debt.random() < 0.2 else name for name in chosen]
    anew = random.Random(f"resegment {seed}")
    if anew.random() < RESEGMENTED:
        chosen = ["resegment" if anew.random() < 0.1 else name for name in chosen]
    if pairs.random() < PAIRS:
        chosen = ["renew" if pairs.random() < 0.15 else name for name in chosen]
    has_estates = estate.random() < ESTATES
    if has_estates:
        chosen = ["inherit" if estate.random() < 0.15 else name for name in chosen]
    if trickle.random() < TRICKLES:
        limits = _with_short_commits(limits)
        chosen = ["trickle" if trickle.random() < 0.2 else name for name in chosen]
    return Plan(
        seed,
        limits,
        strict=rng.random() < 0.7,
        sector=_sector(seed, rng.choice((512, 4096))),
        reverts=rng.random() < 0.3,
        switch_share=rng.choice((0.0, 0.1, 0.5)),
        has_faults=may_fail,
        # The self-check counts a persistent message that was damaged until the next start.
        has_damage=rng.random() < 0.1 and not limits.is_checked_each_turn,
        steps=tuple((name, rng.randrange(1 << 30)) for name in chosen),
        letters=estate.choice((0.4, 0.8)) if has_estates else 0.4,
        priorities=estate.choice((0.1, 0.25, 0.25, 0.7)),
        silence=estate.choice((0.0, 0.0, 0.3, 0.7)),
        strays=stray.choice((0.0, 0.5)),
    )


def _sector(seed: int, usual: int) -> int:
    """By how many octets a power cut tears this run's writes."""
    return 64 if random.Random(f"sector {seed}").random() < TORN_SMALL else usual


@dataclass
class Result:
    """What a run came to."""

    operations: Counter[str] = field(default_factory=Counter)
    met: Met = field(default_factory=Counter)  # what befell it, by step
    publications: int = 0
    confirmed: int = 0
    file_calls: int = 0
    switches: int = 0
    history: list[str] = field(default_factory=list)


class Run:
    """One plan on its way."""

    def __init__(self, plan: Plan, branches: Branches | None = None) -> None:
        self.plan = plan
        self.rng = random.Random(plan.seed)
        disk = MachineDisk(strict=plan.strict)
        disk.sector, disk.reverts = plan.sector, plan.reverts
        self.machine = Machine(random.Random(plan.seed + 1), disk, plan.limits, plan.switch_share)
        self.machine.branches = branches or self.machine.branches
        self.model = Model()
        self.machine.on_lost_pages = self.model.lose_pages
        self.auditor = Auditor(self.machine, self.model)
        self.clients: list[SimClient] = []
        self.result = Result()
        self.is_faulty = self.was_faulty = False  # now; since this process started
        self.is_after_faults = False  # the process before this one had some
        self.damages: list[Callable[[Run], None]] = []  # of what the next cut leaves
        self.has_stopped = False  # so that the next start has to find a clean stop
        self.untold = ""  # the path of what was damaged, where a start has to say so
        self.number = 0
        self.next_client = 0
        self.identity = 0

    # -- the whole ----------------------------------------------------------------------------------------------

    def go(self) -> Result:
        """Do it all."""
        with self.machine.running():
            self._start()
            self._begin()
            for number, (name, seed) in enumerate(self.plan.steps, start=1):
                self.machine.branches.begin(number / len(self.plan.steps))
                self.rng = random.Random(seed)
                self.machine.rng.seed(seed + 1)
                self._take(name)
            self._heal()
            self._end_well()
        self._check_scrubber()
        self._check_reports()
        self._check_syncs()
        self.result.switches = self.machine.threads.switches
        self.result.met = self.machine.met
        self.result.publications = len(self.model.publications)
        self.result.confirmed = sum(each.is_confirmed for each in self.model.publications.values())
        return self.result

    def _check_scrubber(self) -> None:
        """What nobody damaged, and no failed sync took, the scrubber has not found damaged."""
        passes = self.machine.observer.named("scrub_finished")
        self.result.operations["scrub"] += len(passes)
        if self._may_be_damaged:
            return
        found = sum(each[1] for each in passes)
        if found:
            raise Violation(f"the scrubber set {found} messages aside that nobody damaged")

    @property
    def _may_be_damaged(self) -> bool:
        """Whether something may be damaged: by the disk, or by a sync of it that failed."""
        return self.plan.has_damage or self.machine.has_failed or bool(self.auditor.damaged)

    def _check_reports(self) -> None:
        """Nothing is reported as lost or damaged that nobody damaged, on a disk that has not failed."""
        if self._may_be_damaged:
            return
        for name, arguments in self.machine.observer.events:
            if name in LOSSES:
                raise Violation(f"{name} was reported: {arguments}")

    def _check_syncs(self) -> None:
        """A file whose sync has failed is not synced again: what that says of its bytes is not to be believed. SQLite does."""
        again = [path for path in self.machine.disk.resynced if "/definitions.db" not in path]
        if again:
            raise Violation(f"synced again after a sync that failed: {again[0]}")

    def _take(self, name: str) -> None:
        self.result.operations[name] += 1
        self.machine.doing = name
        self.note(name)
        self.model.now_ms = int(self.machine.threads.now_s * 1000)
        branches = self.machine.branches
        try:
            if " " in name:
                take_scripted(self, name)
            else:
                getattr(self, f"do_{name}")()
                self._move(self.rng.choice((0, 0, 1, 3, 10, 40)))
        except PowerCut:
            self._crash_now(is_power=self._is_power())
        finally:
            branches.is_open = False
        self._look_for_failure()
        if branches.is_copy:
            self._end_copy()
        if branches.reason:
            raise Violation(f"in a copy: {branches.reason}")

    def _end_copy(self) -> None:
        """The machine went off in this copy of the run; a second time may find what the first start made of it.

        Or what was built upon that: a start may take over what is not durable, or what should be gone.
        """
        branches = self.machine.branches
        if self.machine.starts == branches.start:
            self._crash_now(is_power=self._is_power())
        chance = branches.rng.random()
        if chance < SECOND_LIVES:
            self._live_on(branches.rng)
        if chance < SECOND_LIVES + 0.2:
            self._crash_now(is_power=self._is_power())
        branches.finish()

    def _live_on(self, rng: random.Random) -> None:
        """Go on after a start, and let everybody have the answers."""
        self.rng = rng
        for name in rng.choice(LIVES):
            self.note(f"{name} in a copy")
            getattr(self, f"do_{name}")()
            self._quiet(rng.choice((0.01, 0.3)))
            self._look_for_failure()

    def note(self, text: str) -> None:
        """A line of the history."""
        self.result.history.append(f"{self.machine.threads.now_s:.3f} {text}")

    def _move(self, steps: int) -> None:
        for _ in range(steps):
            if not self.machine.step():
                break
        self._pump()

    def _pump(self) -> None:
        self.model.now_ms = int(self.machine.threads.now_s * 1000)
        closed = [client for client in self.clients if client.is_being_closed()]
        for client in [*closed, *self.clients]:
            client.pump()
        lost = [
            client for client in self.clients if client.is_refused or client.client.session.is_ended
        ]
        for client in lost:
            self._lose(client)

    def _pump_one(self, client: SimClient) -> None:
        if any(each.is_being_closed() for each in self.clients):
            self._pump()
        else:
            client.pump()

    def _lose(self, client: SimClient) -> None:
        client.lose()
        self.clients.remove(client)

    def _client(self) -> SimClient:
        clients = [client for client in self.clients if client.vhost == HERE]
        if len(clients) < 2 and (not clients or self.rng.random() < 0.2):
            return self.client_of(HERE)
        return self.rng.choice(clients)

    def client_of(self, vhost: str) -> SimClient:
        """Another client, of this vhost."""
        self.next_client += 1
        try:
            self.clients.append(SimClient(self.machine, self.model, self.next_client, vhost))
        except Refused:
            self._look_for_failure()
            return self.client_of(vhost)
        return self.clients[-1]

    # -- the life of the process --------------------------------------------------------------------------------

    def _start(self) -> None:
        """Start; a start that the disk fails is tried again on a disk that does not."""
        self.machine.doing = "start"
        for _ in range(4):
            try:
                self.machine.start()
            except PowerCut:
                self.machine.die(is_power=self._is_power())
            except StorageError as error:
                if not self.is_faulty:
                    raise Violation(f"a start is refused: {error}") from error
                self.note(f"start refused: {error}")
                self.was_faulty = True
                self._heal()
                self.machine.die(is_power=False)
            else:
                self.is_after_faults, self.was_faulty = self.was_faulty, self.is_faulty
                return
        raise Violation("no start comes to its end")

    def _begin(self) -> None:
        """The exchange, and the queue of dead letters."""
        client = Client(self.machine)
        client.open()
        client.call(1, spec.Channel.Open())
        declare = spec.Exchange.Declare(exchange="fan", type="fanout", durable=True)
        client.session.receive(method_bytes(1, declare))
        self.machine.settle()
        client.session.wire = None
        client.session.lost("")
        asker = self._client()
        asker.send(asker.declare(self._new_home(DEAD)))
        for name in NAMES[:2]:
            self.machine.settle()
            asker.pump()
            asker.send(asker.declare(self._new_home(name)))
        self.machine.settle()
        self._pump()

    def _forget_clients(self) -> None:
        for client in self.clients:
            for home in client.gets:
                home.grace += 1
            client.is_lost = True
        self.clients.clear()

    def _is_power(self) -> bool:
        """Whether the power goes now, or the process is killed."""
        rng = self.machine.branches.rng if self.machine.branches.is_copy else self.rng
        return rng.random() < 0.7 and self.plan.may_lose_power

    def _crash_now(self, *, is_power: bool) -> None:
        """The power goes, or the process is killed, at this moment; and what the next start finds."""
        self._forget_clients()
        is_power = self.machine.die(is_power=is_power)
        self.note("power cut" if is_power else "killed")
        if is_power and not self.plan.may_lose_power:
            self.model.promise_nothing()
        while self.damages:
            self.damages.pop()(self)
        if is_power and self.plan.has_damage and self.rng.random() < 0.5:
            self._damage()
        strays = self.plan.strays if is_power and self.plan.has_damage else 0.0
        if strays and self.rng.random() < strays:
            self._stray()
        if not self.plan.is_plain and self.rng.random() < 0.2:
            disk = self.machine.disk
            disk.cut_before = disk.operations + self.rng.randint(0, 30)
        self._start()
        self._adopt(is_power=is_power)

    def _adopt(self, *, is_power: bool) -> None:
        self.machine.branches.is_open = False
        is_suspicious = self.is_after_faults and not is_power
        self.machine.is_suspicious = self.machine.is_suspicious or is_suspicious
        self.model.begin_start(is_suspicious=is_suspicious)
        self.machine.disk.cut_before = None
        self.machine.cuts.clear()
        self._heal()
        self.model.now_ms = int(self.machine.threads.now_s * 1000)
        self.auditor.adopt()
        try:
            self.auditor.look(is_exact=False, is_after_power_cut=is_power)
        except PowerCut:
            raise AssertionError("the power is not to go now") from None
        self._check_reports()
        reports = [each for name, each in self.machine.observer.events if name in TOLD]
        if self.untold and not any(self.untold in str(each) for each in reports):
            raise Violation(f"{self.untold} is damaged and nobody says so")

    def _look_for_failure(self) -> None:
        """A node whose store has failed ends, and another process takes over."""
        node = self.machine.node
        if node is None or not node.failed.done():
            return
        reason = node.failed.result()
        self.note(f"the store failed: {reason.splitlines()[-1] if reason else ''}")
        if "Traceback" in reason or not self.was_faulty:
            raise Violation(f"the store failed: {reason}")
        self._forget_clients()
        try:
            self.machine.stop()
        except PowerCut:
            pass
        is_power = self.machine.die(is_power=self.rng.random() < 0.5)
        self._heal()
        self._start()
        self._adopt(is_power=is_power)

    def _heal(self) -> None:
        self.machine.disk.heal()
        self.is_faulty = False

    def _damage(self) -> None:
        """One of the last writes has gone lost, or elsewhere."""
        damages = self.machine.disk.misplace(self.rng, _is_queue_file)
        numbers: set[int] = set()
        homes: set[str] = set()
        for damage in damages:
            content = self.machine.disk.content(damage.path)
            self.note(f"damage: {damage.path} {damage.offset} {len(damage.lost)}")
            # A record that was written to another place of its segment hides those between: that costs the segment.
            is_elsewhere = len(damages) > 1 and damage.path.endswith(".seg")
            # With what stands on both sides: a short body may lie across an edge.
            end = damage.offset + len(damage.lost)
            before = content[max(0, damage.offset - PIECE + 1) : damage.offset]
            numbers |= self._numbers_in(before + damage.lost + content[end : end + PIECE - 1])
            if damage.path.endswith((".seg", ".qs")) and damage.offset >= 64 and not is_elsewhere:
                numbers |= self._numbers_in(content[damage.offset : end + NEAR])
            else:
                homes |= {name for name in (*NAMES, DEAD) if self._owns(name, damage.path)}
                numbers |= self._numbers_in(content)
        if damages:
            self.result.operations["damage"] += 1
            self.auditor.exempt(numbers, homes)

    def _stray(self) -> None:
        """An index entry is in a place that holds none, too: that costs nothing, and gives nobody a message twice."""
        disk = self.machine.disk
        path = stray_entry(self.rng, disk, self.machine.limits.entry_count)
        if path:
            self.result.operations["stray"] += 1
            self.note(f"an entry is in two places of {path}")

    def _numbers_in(self, data: bytes) -> set[int]:
        """The messages of which some bytes are in there: all whose body shares eight octets with it, or is near."""
        found = set()
        for number, publication in self.model.publications.items():
            body = publication.body
            if body[:PIECE] in data or any(data.find(piece) >= 0 for piece in _turns(body)):
                found.add(number)
        return found

    @staticmethod
    def _owns(name: str, path: str) -> bool:
        return any(f"/{QueueNames('/', name, level).directory}/" in path for level in range(5))

    def _end_well(self) -> None:
        """Everything is answered; a clean stop loses nothing, and neither does a power cut after it."""
        self.machine.doing = "end"
        try:
            self.machine.disk.cut_before = None
            self.machine.cuts.clear()
            self._quiet(20.0)
            self._look_for_failure()
            for client in self.clients:
                if client.unconfirmed or any(client.waiting.values()):
                    raise Violation(
                        f"without an answer: {len(client.unconfirmed)} publishes,"
                        f" {[len(each) for each in client.waiting.values()]} methods"
                    )
            for client in list(self.clients):
                self._lose(client)
            self._quiet(3.0)
            self.auditor.look(is_exact=True)
            self._quiet(3.0)
            self.model.all_safe(self.machine.faulty())
            if self.rng.random() < 0.5:
                self.do_restart()
            else:
                self._crash_now(is_power=True)
        except PowerCut:
            raise AssertionError("the power is not to go now") from None

    def _quiet(self, seconds: float) -> None:
        self.machine.let_pass(seconds)
        self._pump()

    # -- operations ---------------------------------------------------------------------------------------------

    def _new_home(self, name: str) -> Home:
        rng = self.rng
        self.identity += 1
        is_durable = name == DEAD or self.plan.is_plain or rng.random() < 0.85
        home = Home(name, self.identity, is_durable=is_durable)
        if name != DEAD and not self.plan.is_plain:
            home.has_dead_letters = rng.random() < self.plan.letters
            home.ttl_ms = rng.choice((50, 500, 5000)) if rng.random() < 0.12 else None
            home.levels = rng.choice((1, 3)) if rng.random() < self.plan.priorities else None
            home.version = rng.choice((1, 2, 2)) if rng.random() < 0.5 else 2
        self.model.homes.append(home)
        self.model.current[name] = home
        return home

    def _some_home(self) -> Home | None:
        homes = [home for home in self.model.current.values() if home.is_at_hand]
        return self.rng.choice(homes) if homes else None

    def do_publish(self) -> None:
        """A few messages, to one queue or to all."""
        client = self._client()
        if client.is_paused or client.is_busy(CONFIRMING):
            return
        rng = self.rng
        names = [
            home.name
            for home in self.model.current.values()
            if home.is_at_hand and home.name != DEAD
        ]
        if not names:
            return
        name = rng.choice((*names, "fan"))
        channel = CONFIRMING
        if self.plan.silence and rng.random() < self.plan.silence and not client.is_busy(REST):
            channel = REST
        for _ in range(rng.choice((1, 1, 3, 8, 20))):
            client.publish(self._message(client), name, channel)

    def do_trickle(self) -> None:
        """A publisher waits for each confirm: small messages to one queue, with a commit each."""
        client = self._client()
        names = [
            home.name
            for home in self.model.current.values()
            if home.is_stable and home.is_durable and home.version == 2 and home.name != DEAD
        ]
        if not names:
            return
        name = self.rng.choice(names)
        for _ in range(self.rng.choice((5, 12, 30))):
            if client.is_lost or client.is_paused or client.is_busy(CONFIRMING):
                return
            client.publish(self._message(client, SMALL_SIZES), name, CONFIRMING)
            self._move(60)

    def _message(self, client: SimClient, sizes: Sequence[int] = SIZES) -> Publication:
        rng = self.rng
        self.number += 1
        size = rng.choice(sizes)
        body = (b"%08d" % self.number * (size // 8 + 1))[:size]
        deadline = None
        if rng.random() < 0.06:
            deadline = self.model.now_ms + rng.choice((20, 300, 4000))
        publication = Publication(
            self.number,
            body,
            rng.random() < 0.85,
            client.number,
            rng.choice((0, 0, 1, 2, 5)),
            deadline,
        )
        self.model.publications[self.number] = publication
        return publication

    def do_transact(self) -> None:
        """Publish in a transaction, and end it."""
        client = self._client()
        if client.is_paused or client.is_busy(TRANSACTING):
            return
        names = [
            home.name
            for home in self.model.current.values()
            if home.is_at_hand and home.name != DEAD
        ]
        if names:
            for _ in range(self.rng.choice((1, 2, 5))):
                client.publish(self._message(client), self.rng.choice((*names, "fan")), TRANSACTING)
            if self.rng.random() < 0.75:
                client.commit()
            else:
                client.roll_back()

    def do_consume(self) -> None:
        """Another consumer."""
        client, home = self._client(), self._some_home()
        if home is not None and not client.is_busy(CONFIRMING) and len(client.consumers) < 3:
            client.consume(home, self.rng.choice((0, 1, 5, 20)))

    def do_cancel(self) -> None:
        """A consumer less."""
        client = self._client()
        if client.consumers and not client.is_busy(CONFIRMING):
            client.cancel(self.rng.choice(list(client.consumers)))

    def do_get(self) -> None:
        """One message."""
        client, home = self._client(), self._some_home()
        if home is not None and not client.is_busy(REST):
            client.get(home, no_ack=self.rng.random() < 0.3)

    def do_settle(self) -> None:
        """Ack, requeue, reject some deliveries."""
        client = self._client()
        self._pump_one(client)
        if client.is_lost or client.is_paused or client.is_busy(CONFIRMING) or client.is_busy(REST):
            return
        for _ in range(self.rng.choice((1, 2, 6, 15))):
            if client.deliveries:
                how = self.rng.choices(("ack", "multiple", "requeue", "reject"), (8, 2, 2, 3))[0]
                client.settle(self.rng.choice(list(client.deliveries)), how)

    def do_declare(self) -> None:
        """A queue that is not there."""
        client = self._client()
        missing = [name for name in (*NAMES, DEAD) if self._is_free(name)]
        if missing and not client.is_busy(REST):
            client.send(client.declare(self._new_home(self.rng.choice(missing))))

    def _is_free(self, name: str) -> bool:
        home = self.model.current.get(name)
        return home is None or home.is_deleted

    def _doomed(self, client: SimClient) -> Home | None:
        homes = [home for home in self.model.current.values() if home.is_at_hand]
        if not homes or client.is_busy(REST):
            return None
        self._pump()
        home = self.rng.choice(homes)
        if home.name == DEAD and self.rng.random() < 0.7:
            return None
        if any(each.is_late_for(home) for each in self.clients if each is not client):
            return None
        return home if home.is_stable and not client.is_lost else None

    def do_delete(self) -> None:
        """A queue less."""
        client = self._client()
        home = self._doomed(client)
        if home is not None:
            self._end_of(home)
            client.send(client.delete(home))

    def do_redeclare(self) -> None:
        """A queue is deleted and declared again in one read."""
        client = self._client()
        home = self._doomed(client)
        if home is not None:
            self._end_of(home)
            home.is_replaced = True
            data = client.delete(home)
            client.send(data + client.declare(self._new_home(home.name)))

    def do_renew(self) -> None:
        """The same by two channels, so that both are in one commit: a channel waits for the answer to a deletion."""
        client = self._client()
        home = self._doomed(client)
        if home is None or client.is_busy(TRANSACTING):
            return
        self.result.operations["pair"] += 1
        self._end_of(home)
        home.is_replaced = True
        if self.rng.random() < 0.5:
            self.do_crash()
        data = client.delete(home)
        client.send(data + client.declare(self._new_home(home.name), TRANSACTING))

    def _end_of(self, home: Home) -> None:
        """What clients have of a queue that goes away is theirs no more."""
        for client in self.clients:
            for copy in client.deliveries.values():
                if copy.home is home:
                    copy.is_outstanding = False
        for copy in home.all_copies():
            if copy.origin is None and home.name != DEAD:
                copy.is_certain = False

    def do_purge(self) -> None:
        """A queue is emptied."""
        client, home = self._client(), self._some_home()
        if home is not None and not client.is_busy(REST) and not client.is_paused:
            self._pump()
            if not client.is_lost:
                is_got = any(
                    each.is_busy(REST) or home in each.consumers.values() for each in self.clients
                )
                client.purge(home, is_got=is_got)

    def do_policy(self) -> None:
        """A policy comes, changes or goes: versions, modes."""
        node = self.machine.node
        assert node is not None
        vhost = node.vhosts["/"]
        rng = self.rng
        name = rng.choice(("p", "r"))
        if rng.random() < 0.3:
            clear_policy(vhost, name)
        else:
            definition: dict[str, object] = {}
            if rng.random() < 0.8:
                definition["queue-version"] = rng.choice((1, 2))
            if rng.random() < 0.5 or not definition:
                definition["queue-mode"] = rng.choice(("lazy", "default"))
            pattern = rng.choice((".*", "^a", "^[bc]"))
            policy = Policy(
                name=name,
                pattern=pattern,
                definition=definition,
                apply_to="queues",
                priority=rng.randint(0, 3),
            )  # type: ignore[arg-type]
            set_policy(vhost, policy)
        node.scheduler.touch()

    def do_lose(self) -> None:
        """A client's socket breaks."""
        if self.clients:
            client = self.rng.choice(self.clients)
            self._pump_one(client)
            if not client.is_lost:
                self._lose(client)

    def do_wait(self) -> None:
        """Time passes."""
        self.machine.let_pass(self.rng.choice((0.001, 0.02, 0.1, 0.3)))

    def do_idle(self) -> None:
        """Nothing happens for a while: acks are written, segments compacted."""
        self.machine.let_pass(self.rng.choice((1.0, 3.0)))
        if not self.is_faulty:
            self._pump()
            self.model.all_safe(self.machine.faulty())

    def do_fault(self) -> None:
        """Calls fail from some point on: one, or a burst."""
        rng = self.rng
        number = rng.choice((errno.EIO, errno.EIO, errno.ENOSPC, errno.EMFILE))
        operations = rng.choice((WRITES, SYNCS, READS, READS, NAMING, WRITES | READS, frozenset()))
        times = rng.choice((1, 1, 2, 5, 30, 1000))
        keep = rng.choice((0, 0, 5, 600))
        self.is_faulty = self.was_faulty = self.machine.has_failed = True
        self.machine.disk.fail_from(
            rng.randint(1, 25), number, times=times, keep=keep, operations=operations
        )

    def do_heal(self) -> None:
        """The disk is well again."""
        self._heal()

    def do_look(self) -> None:
        """Compare while it runs, when all is quiet."""
        if self.is_faulty:
            return
        self._quiet(5.0)
        for client in list(self.clients):
            self._lose(client)
        self._quiet(2.0)
        self.auditor.look(is_exact=True)

    def do_crash(self) -> None:
        """The power goes, or the process is killed, at some call to the disk from now on."""
        disk = self.machine.disk
        disk.cut_before = disk.operations + self.rng.choice((0, 1, 2, 3, 5, 8, 13, 21))

    def do_strike(self) -> None:
        """The power goes, the process is killed, or calls fail, while this is under way and not some other time."""
        if self.plan.has_faults and self.rng.random() < 0.7:
            self._fail_one_place()
        if not self.is_faulty or self.rng.random() < 0.5:
            self.do_crash()
        getattr(self, f"do_{self.rng.choice(UNDER_WAY)}")()
        self._move(40)
        if self.is_faulty and self.rng.random() < 0.5:
            self._heal()

    def _fail_one_place(self) -> None:
        """Calls for the files of one queue, of the shared store or of the commit log fail, and no others."""
        rng, home = self.rng, self._some_home()
        if home is None or rng.random() < 0.3:
            self.do_fault()
            return
        queue = QueueNames("/", home.name, rng.randint(0, home.levels or 0)).directory
        part = rng.choice((queue, queue, queue, "msg_store_persistent", "commit_log"))
        self.is_faulty = self.was_faulty = self.machine.has_failed = True
        for operation in rng.choice(TOGETHER):
            nth, times = rng.randint(1, 4), rng.choice((1, 2, 2, 3, 10))
            self.machine.disk.fail(operation, errno.EIO, nth=nth, times=times, path_part=part)

    def do_owe(self) -> None:
        """The queue of dead letters takes nothing, while other queues' messages are rejected into it."""
        rng, dead = self.rng, self.model.current.get(DEAD)
        sources = [home for home in self.model.current.values() if home.has_dead_letters]
        sources = [home for home in sources if home.is_at_hand]
        if not self.plan.has_faults or dead is None or not dead.is_stable or not sources:
            self.do_settle()
            return
        client = self._client()
        if not (client.is_busy(CONFIRMING) or client.deliveries or len(client.consumers) > 2):
            client.consume(rng.choice(sources), 5)
            self._move(40)
        self.is_faulty = self.was_faulty = self.machine.has_failed = True
        part, times = QueueNames("/", DEAD, 0).directory, rng.choice((2, 4, 10, 40))
        for operation in rng.choice(TOGETHER):
            self.machine.disk.fail(
                operation, errno.EIO, nth=rng.randint(1, 2), times=times, path_part=part
            )
        for _ in range(rng.choice((1, 2, 3))):
            self._reject_some()
            self._move(rng.choice((10, 40)))
        if rng.random() < 0.3:
            self.do_crash()
            self.do_publish()
        elif rng.random() < 0.5:
            self._heal()

    def do_inherit(self) -> None:
        """What a client has of a queue becomes dead letters in one read, with which the queue may go."""
        rng, client = self.rng, self._client()
        self._pump()
        held = [its.home for its in client.deliveries.values() if its.home.has_dead_letters]
        if not held:
            self._fetch_some(client)
            held = [its.home for its in client.deliveries.values() if its.home.has_dead_letters]
        if not held or client.is_lost or client.is_paused:
            return
        if client.is_busy(CONFIRMING) or client.is_busy(REST):
            return
        home = rng.choice(held)
        if rng.random() < 0.5:
            self.do_crash()
        for key in [key for key, its in client.deliveries.items() if its.home is home]:
            client.settle(key, "reject")
        if home.is_stable and rng.random() < 0.6:
            self.result.operations["estate"] += 1
            self._end_of(home)
            client.send(client.delete(home))

    def _fetch_some(self, client: SimClient) -> None:
        """A client gets messages of a queue that has dead letters."""
        homes = [home for home in self.model.current.values() if home.has_dead_letters]
        homes = [home for home in homes if home.is_at_hand]
        if homes and not client.is_busy(CONFIRMING) and len(client.consumers) < 3:
            client.consume(self.rng.choice(homes), 5)
            self._move(40)

    def _reject_some(self) -> None:
        """Some deliveries become dead letters."""
        self._pump()
        for client in self.clients:
            if client.is_paused or client.is_busy(CONFIRMING) or client.is_busy(REST):
                continue
            keys = [key for key, its in client.deliveries.items() if its.home.has_dead_letters]
            for key in keys[: self.rng.choice((1, 2, 6))]:
                client.settle(key, "reject")

    def do_restart(self) -> None:
        """A clean stop, and a start."""
        is_power = self.stop()
        starts = self.machine.starts
        self._start()
        # A second start would be that after a crash in the first.
        if self.has_stopped and self.machine.starts == starts + 1 and not self._was_clean():
            raise Violation("a start takes a clean stop for a crash")
        self._adopt(is_power=is_power)

    def do_resegment(self) -> None:
        """A clean stop, and what `burrowmq-store` makes of the store, with other limits."""
        if self.rng.random() < 0.3:
            self.do_crash()
        self.resegment(self.rng.choice((1500, 3000, 20_000)), self.rng.choice((8, 16, 64)))

    def resegment(self, segment_size: int, entry_count: int) -> None:
        """The store is written anew between a clean stop and a start."""
        self.machine.endings.insert(0, Ending(is_power=False))
        self.stop()
        self.machine.resegment(segment_size, entry_count)
        self._crash_now(is_power=self._is_power())

    def stop(self) -> bool:
        """A clean stop; gives whether the power went with the process."""
        for client in list(self.clients):
            self._lose(client)
        self._heal()
        self.machine.settle()
        was_faulty, had_old_pages = self.was_faulty, self.machine.has_old_pages
        is_clean = self.machine.stop()
        # A stop that ended takes nothing from it.
        is_power = self.machine.die(is_power=self.rng.random() < 0.5)
        if not is_clean and not was_faulty:
            raise Violation("a stop was not clean")
        if is_clean:
            self.model.stopped(self.machine.starts)
        self.has_stopped = is_clean and not (was_faulty or had_old_pages or self.plan.has_damage)
        return is_power

    def _was_clean(self) -> bool:
        """Whether the last start has found a clean stop."""
        return bool(self.machine.observer.named("recovery_finished")[-1][0])


def _turns(body: bytes) -> list[bytes]:
    """Pieces by which a part of a body is known, wherever it was cut."""
    return [(body[:PIECE] * 2)[at : at + PIECE] for at in range(PIECE)]


def _is_queue_file(path: str) -> bool:
    return path.endswith((".seg", ".qs", ".qi", ".idx"))


def run(plan: Plan, branches: Branches | None = None) -> Result:
    """Run a plan; a failure carries its history."""
    current = Run(plan, branches)
    try:
        return current.go()
    except BaseException as error:
        if current.machine.branches.is_copy:
            current.machine.branches.finish(f"{type(error).__name__}: {error}")
        error.add_note("\n".join(current.result.history[-60:]))
        raise


def run_seed(seed: int) -> Result:
    """Run a seed; a failure says which it was."""
    try:
        return run(plan_of(seed))
    except (Violation, Stuck, AssertionError) as error:
        raise Violation(f"seed {seed}: {error}") from error


def minimized(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """The shortest plan found that still fails: pieces of it are left out, larger ones first (delta debugging)."""
    size = max(1, len(plan.steps) // 2)
    while True:
        at, is_shorter = 0, False
        while at < len(plan.steps):
            shorter = replace(plan, steps=plan.steps[:at] + plan.steps[at + size :])
            if fails(shorter):
                plan, is_shorter = shorter, True
            else:
                at += size
        if size == 1 and not is_shorter:
            return plan
        size = max(1, size // 2)
