"""The run of a plan on the simulated machine, and what it came to.

`Run` owns the machine, the model, the clients and the generator that operations draw from; its operations are in
`tests.simulation.machine.operations`, and what a plan is in `tests.simulation.machine.draw`. A failure carries the history.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from pika import spec

from burrowmq.offline.directory import CannotUse
from burrowmq.storage.directory.quarantine import DIRECTORY
from burrowmq.storage.errors import StorageError
from tests.simulation.machine.audit import Auditor
from tests.simulation.machine.branches import Branches
from tests.simulation.machine.clients import Refused, SimClient
from tests.simulation.machine.coverage import Met
from tests.simulation.machine.damages import damage_a_write, stray
from tests.simulation.machine.draw import Plan, plan_of
from tests.simulation.machine.model import DEAD, HERE, NAMES, Home, Model
from tests.simulation.machine.node import DATA_DIR, Machine, Violation
from tests.simulation.machine.operations import OPERATIONS
from tests.simulation.machine.operations.lives import restart
from tests.simulation.machine.places import Ending
from tests.simulation.machine.script import take_scripted
from tests.support.bench.client import Client
from tests.support.machine_disk import MachineDisk
from tests.support.sim_filesystem import PowerCut
from tests.support.sim_threads import Stuck
from tests.support.wire_client import method_bytes

LOSSES = frozenset({"record_lost", "message_set_aside", "index_unreadable", "compaction_failed"})
TOLD = LOSSES | {"file_damaged"}  # damage, of which no message need have gone

SECOND_LIVES = 0.4  # of the copies of a run
# What is built upon a start in a copy, before the machine goes off again.
LIVES = (
    *(("publish",), ("publish", "publish"), ("consume", "settle", "publish")),
    *(("publish", "restart"), ("restart", "publish"), ("declare", "publish", "publish")),
)


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
        self.is_worse = False  # calls failed in this process, and not only for want of room
        self.is_after_faults = False  # the process before this one had some
        self.damages: list[Callable[[Run], None]] = []  # of what the next cut leaves
        self.was_stopped = False  # the last stop was a clean one
        self.has_stopped = False  # so that the next start has to find a clean stop
        self.leaving: set[str] = set()  # of what was set aside: somebody has asked that it go
        self.released: set[str] = set()  # and was told that it has gone
        self.untold = ""  # the path of what was damaged, where a start has to say so
        self.number = 0
        self.next_client = 0
        self.identity = 0

    # -- the whole ----------------------------------------------------------------------------------------------

    def go(self) -> Result:
        """Do it all."""
        with self.machine.running():
            self.start()
            self._begin()
            for number, (name, seed) in enumerate(self.plan.steps, start=1):
                self.machine.branches.begin(number / len(self.plan.steps))
                self.rng = random.Random(seed)
                self.machine.rng.seed(seed + 1)
                self._take(name)
            self.heal()
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
        """Nothing is reported as lost or damaged that nobody damaged, on a disk that has not failed.

        The definitions are damaged by nobody.
        """
        undefined = self.machine.observer.named("queue_undefined")
        if undefined:
            raise Violation(f"files of a deleted queue are taken for a lost one's: {undefined}")
        if self._may_be_damaged:
            return
        for name, arguments in self.machine.observer.events:
            if name in LOSSES:
                raise Violation(f"{name} was reported: {arguments}")

    def _check_set_aside(self) -> None:
        """What was set aside is there, and what was taken out is not, whatever befell the machine since."""
        paths = set(self.machine.disk.paths())
        for _, _, _, name, _ in self.machine.observer.named("message_set_aside"):
            is_there = f"{DATA_DIR}/{DIRECTORY}/{name}" in paths
            if not is_there and name not in self.leaving:
                raise Violation(f"{name} was set aside and is not there")
            if is_there and name in self.released:
                raise Violation(f"{name} was taken out of quarantine and is there again")

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
                self.do(name)
                self.move(self.rng.choice((0, 0, 1, 3, 10, 40)))
            self.machine.look_for_cut()
        except PowerCut:
            self.crash_now(is_power=self.is_power())
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
            self.crash_now(is_power=self.is_power())
        chance = branches.rng.random()
        if chance < SECOND_LIVES:
            self._live_on(branches.rng)
        if chance < SECOND_LIVES + 0.2:
            self.crash_now(is_power=self.is_power())
        branches.finish()

    def _live_on(self, rng: random.Random) -> None:
        """Go on after a start, and let everybody have the answers."""
        self.rng = rng
        for name in rng.choice(LIVES):
            self.note(f"{name} in a copy")
            self.do(name)
            self.quiet(rng.choice((0.01, 0.3)))
            self._look_for_failure()

    def note(self, text: str) -> None:
        """A line of the history."""
        self.result.history.append(f"{self.machine.threads.now_s:.3f} {text}")

    def move(self, steps: int) -> None:
        for _ in range(steps):
            if not self.machine.step():
                break
        self.pump()

    def pump(self) -> None:
        self.model.now_ms = int(self.machine.threads.now_s * 1000)
        for (
            client
        ) in self.clients:  # what one had is another's behind that, which may be closed, too
            client.pump_up_to_close()
        for client in self.clients:
            client.pump()
        lost = [
            client for client in self.clients if client.is_refused or client.client.session.is_ended
        ]
        for client in lost:
            self.lose(client)

    def pump_one(self, client: SimClient) -> None:
        if any(each.is_being_closed() for each in self.clients):
            self.pump()
        else:
            client.pump()

    def lose(self, client: SimClient) -> None:
        client.lose()
        self.clients.remove(client)

    def client(self) -> SimClient:
        clients = [client for client in self.clients if client.vhost == HERE]
        if len(clients) < 2 and (not clients or self.rng.random() < 0.2):
            return self.client_of(HERE)
        return self.rng.choice(clients)

    def client_of(self, vhost: str) -> SimClient:
        """Another client, of this vhost."""
        client = self.client_if_there(vhost)
        assert client is not None, vhost
        return client

    def client_if_there(self, vhost: str) -> SimClient | None:
        """Another client, of this vhost; None when a store that failed meanwhile has taken the vhost with it."""
        self.next_client += 1
        try:
            self.clients.append(SimClient(self.machine, self.model, self.next_client, vhost))
        except Refused:
            self._look_for_failure()
            node = self.machine.node
            return (
                self.client_if_there(vhost) if node is not None and vhost in node.vhosts else None
            )
        return self.clients[-1]

    # -- the life of the process --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start; a start that the disk fails is tried again on a disk that does not."""
        self.machine.doing = "start"
        for _ in range(4):
            try:
                self.machine.start()
            except PowerCut:
                self.machine.die(is_power=self.is_power())
            except StorageError as error:
                if not self.is_faulty:
                    raise Violation(f"a start is refused: {error}") from error
                self.note(f"start refused: {error}")
                self.was_faulty = True
                self.heal()
                self.machine.die(is_power=False)
            else:
                self.is_after_faults, self.was_faulty = self.was_faulty, self.is_faulty
                self.is_worse = self.is_worse and self.is_faulty
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
        asker = self.client()
        asker.send(asker.declare(self.new_home(DEAD)))
        for name in NAMES[:2]:
            self.machine.settle()
            asker.pump()
            asker.send(asker.declare(self.new_home(name)))
        self.machine.settle()
        self.pump()

    def _forget_clients(self) -> None:
        for client in self.clients:
            for home in client.gets:
                home.grace += 1
            client.is_lost = True
        self.clients.clear()

    def is_power(self) -> bool:
        """Whether the power goes now, or the process is killed."""
        rng = self.machine.branches.rng if self.machine.branches.is_copy else self.rng
        return rng.random() < 0.7 and self.plan.may_lose_power

    def crash_now(self, *, is_power: bool) -> None:
        """The power goes, or the process is killed, at this moment; and what the next start finds."""
        self._forget_clients()
        is_power = self.machine.die(is_power=is_power)
        self.note("power cut" if is_power else "killed")
        if is_power and not self.plan.may_lose_power:
            self.model.promise_nothing()
        while self.damages:
            self.damages.pop()(self)
        if is_power and self.plan.has_damage and self.rng.random() < 0.5:
            damage_a_write(self)
        strays = self.plan.strays if is_power and self.plan.has_damage else 0.0
        if strays and self.rng.random() < strays:
            stray(self)
        if not self.plan.is_plain and self.rng.random() < 0.2:
            disk = self.machine.disk
            disk.cut_before = disk.operations + self.rng.randint(0, 30)
        self.start()
        self.adopt(is_power=is_power)

    def adopt(self, *, is_power: bool) -> None:
        self.machine.branches.is_open = False
        is_suspicious = self.is_after_faults and not is_power
        self.machine.is_suspicious = self.machine.is_suspicious or is_suspicious
        self.model.begin_start(is_suspicious=is_suspicious, is_after_power_cut=is_power)
        self.machine.disk.cut_before = None
        self.machine.cuts.clear()
        self.heal()
        self.model.now_ms = int(self.machine.threads.now_s * 1000)
        self.auditor.adopt()
        try:
            self.auditor.look(is_exact=False, is_after_power_cut=is_power)
        except PowerCut:
            raise AssertionError("the power is not to go now") from None
        self._check_reports()
        self._check_set_aside()
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
        if "Traceback" in reason or not (self.was_faulty and self.is_worse):
            raise Violation(f"the store failed: {reason}")
        self._forget_clients()
        try:
            self.machine.stop()
        except PowerCut:
            pass
        is_power = self.machine.die(is_power=self.rng.random() < 0.5)
        self.heal()
        self.start()
        self.adopt(is_power=is_power)

    def calls_fail(self, *, is_full: bool = False) -> None:
        """Calls to the disk fail from here on, for nothing but want of room if it `is_full`."""
        self.is_faulty = self.was_faulty = self.machine.has_failed = True
        self.is_worse = self.is_worse or not is_full

    def heal(self) -> None:
        self.machine.disk.heal()
        self.is_faulty = False

    def _end_well(self) -> None:
        """Everything is answered; a clean stop loses nothing, and neither does a power cut after it."""
        self.machine.doing = "end"
        try:
            self.machine.disk.cut_before = None
            self.machine.cuts.clear()
            self.quiet(20.0)
            self._look_for_failure()
            for client in self.clients:
                if client.unconfirmed or any(client.waiting.values()):
                    raise Violation(
                        f"without an answer: {len(client.unconfirmed)} publishes,"
                        f" {[len(each) for each in client.waiting.values()]} methods"
                    )
            for client in list(self.clients):
                self.lose(client)
            self.quiet(3.0)
            self.auditor.look(is_exact=True)
            self.quiet(3.0)
            self.model.all_safe(self.machine.faulty())
            if self.rng.random() < 0.5:
                restart(self)
            else:
                self.crash_now(is_power=True)
        except PowerCut:
            raise AssertionError("the power is not to go now") from None

    def quiet(self, seconds: float) -> None:
        self.machine.let_pass(seconds)
        self.pump()

    # -- what operations need ---------------------------------------------------------------------------------------

    def do(self, name: str) -> None:
        """Take an operation."""
        OPERATIONS[name](self)

    def new_home(self, name: str) -> Home:
        rng = self.rng
        self.identity += 1
        is_durable = name == DEAD or self.plan.is_plain or rng.random() < 0.85
        home = Home(name, self.identity, is_durable=is_durable)
        if name != DEAD and not self.plan.is_plain:
            home.has_dead_letters = rng.random() < self.plan.letters
            home.ttl_ms = rng.choice((50, 500, 5000)) if rng.random() < 0.12 else None
            home.levels = rng.choice((1, 3)) if rng.random() < self.plan.priorities else None
            home.version = rng.choice((1, 2, 2)) if rng.random() < 0.5 else 2
            if self.plan.bounds and rng.random() < self.plan.bounds:
                home.most = rng.choice((0, 1, 3, 8))
        self.model.homes.append(home)
        self.model.current[name] = home
        return home

    def some_home(self) -> Home | None:
        homes = [home for home in self.model.current.values() if home.is_at_hand]
        return self.rng.choice(homes) if homes else None

    def end_of(self, home: Home) -> None:
        """What clients have of a queue that goes away is theirs no more."""
        for client in self.clients:
            for copy in client.deliveries.values():
                if copy.home is home:
                    copy.is_outstanding = False
        for copy in home.all_copies():
            if copy.origin is None and home.name != DEAD:
                copy.is_certain = False

    def resegment(self, segment_size: int, entry_count: int) -> None:
        """The store is written anew between a clean stop and a start."""
        self.machine.endings.insert(0, Ending(is_power=False))
        self.stop()
        try:
            self.machine.resegment(segment_size, entry_count)
        except CannotUse:  # what a stop that failed has left may need a start before, as it says
            if self.was_stopped:
                raise
        self.crash_now(is_power=self.is_power())

    def stop(self, *, is_well: bool = True) -> bool:
        """A clean stop, on a disk that is well; gives whether the power went with the process."""
        for client in list(self.clients):
            self.lose(client)
        if is_well:
            self.heal()
        self.machine.settle()
        was_faulty, had_old_pages = self.was_faulty, self.machine.has_old_pages
        is_clean = self.machine.stop()
        # A stop that ended takes nothing from it.
        is_power = self.machine.die(is_power=self.rng.random() < 0.5)
        if not is_clean and not was_faulty:
            raise Violation("a stop was not clean")
        if is_clean:
            self.model.stopped(self.machine.starts)
        is_suspect = was_faulty or had_old_pages or self._is_miscounted()
        self.was_stopped = is_clean
        self.has_stopped = is_clean and not (is_suspect or self.plan.has_damage)
        return is_power

    def _is_miscounted(self) -> bool:
        """Whether this process has met what a sync that failed in one before has cost: the next start counts again."""
        if not self.machine.has_failed:
            return False
        names = [name for name, _ in self.machine.observer.events]
        start = max(at for at, name in enumerate(names) if name == "recovery_finished")
        return "index_unreadable" in names[start:]

    def was_clean(self) -> bool:
        """Whether the last start has found a clean stop."""
        return bool(self.machine.observer.named("recovery_finished")[-1][0])


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
