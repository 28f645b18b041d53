"""Is everything there that was promised, and nothing else? Looks at every queue of a node through a consumer.

`look` drains all queues into one client, compares, and gives everything back. `is_exact`: this process has taken in all
that the model says, so that what is not there is missing even where nobody promised it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from pika import spec

from burrowmq.storage.names import NAME_FILE, QueueNames, parse_names, vhost_directory
from tests.simulation.machine.blame import require_own_faults
from tests.simulation.machine.model import DEAD, HERE, Copy, Home, Model, keyed, place_of
from tests.simulation.machine.node import Machine, Violation
from tests.support.bench.client import Client
from tests.support.wire_client import method_bytes

PATIENCE_S = 30.0


class Auditor:
    """Compares one node with the model; `damaged` are numbers, `damaged_homes` names, that nothing is promised of."""

    def __init__(self, machine: Machine, model: Model) -> None:
        self.machine = machine
        self.model = model
        self.damaged: set[int] = set()
        self.damaged_homes: set[str] = set()

    # -- after a start ------------------------------------------------------------------------------------------

    def adopt(self) -> None:
        """Which queues are there after a start; the model goes on with those."""
        model, node = self.model, self.machine.node
        assert node is not None
        found: dict[str, int] = {}
        for vhost in node.vhosts.values():
            for name, queue in vhost.queues.items():
                found[keyed(vhost.name, name)] = self._identity(queue.arguments)
        for name in dict.fromkeys(home.name for home in model.homes):
            homes = [home for home in model.homes if home.name == name]
            required = [home for home in homes if home.is_declared and home.is_durable]
            newest = required[-1] if required else None
            if name not in found:
                if newest is not None and not newest.is_deleting:
                    raise Violation(f"{name} was declared durably and is gone")
                self._forget(homes, None)
                continue
            home = next((each for each in homes if each.identity == found[name]), None)
            if home is None or home.is_deleted or not home.is_durable:
                raise Violation(f"{name}: a queue is back that was deleted, or was never declared")
            if (
                newest is not None
                and newest is not home
                and not newest.is_deleting
                and newest.identity > home.identity
            ):
                raise Violation(f"{name}: an older queue is back in place of one that was declared")
            is_bound = any(node.vhosts[home.vhost].bindings_to("queue", home.queue))
            is_promised = home.is_declared and home.is_bound and not home.is_deleting
            if is_promised and not is_bound:
                raise Violation(f"{name}: its binding is gone")
            home.is_bound = is_bound and home.vhost == HERE
            self._forget(homes, home)
        for name in found:
            if all(home.name != name for home in model.homes):
                raise Violation(f"{name} was never declared")
        self._check_names()

    def _check_names(self) -> None:
        """Who looks at the files alone (`burrowmq-store`) knows by a file whose the promised messages of a queue are.

        It is durable with the first confirm, and where a start did not find it, a clean stop makes it anew. Where a
        sync of itself fails it is written again before the confirm.
        """
        disk = self.machine.disk
        has_failed = self.machine.has_failed and any(
            not path.endswith(NAME_FILE) for _, path in disk.failed
        )
        if has_failed or any(self.machine.limits.logs):
            return  # what a sync lost only a stop writes again, and what the log has is not in its place yet
        paths = set(disk.paths())
        for home in self.model.current.values():
            if home.levels is not None:
                continue  # its levels are directories of their own
            names = QueueNames(home.vhost, home.queue)
            root = f"/data/vhosts/{vhost_directory(home.vhost)}/queues"
            path = f"{root}/{names.directory}/{NAME_FILE}"
            home.has_name = path in paths and parse_names(disk.content(path)) == names
            needed = sum(self._must_be(copy, is_exact=False) for copy in home.all_copies())
            # `burrowmq-store` makes no directory for a queue that is empty; some may have gone to a client unread.
            if home.is_named and needed > home.grace and not home.has_name:
                raise Violation(f"{home.name}: the file with its name is gone, or says another")

    def _forget(self, homes: list[Home], kept: Home | None) -> None:
        model = self.model
        name = homes[0].name
        model.current.pop(name, None)
        for home in homes:
            if home is not kept:
                home.is_deleting = home.is_deleted = True
        if kept is not None:
            model.current[name] = kept
            # A deletion that the power cut short may have taken the files, and the one with the name among them.
            kept.is_named = kept.is_named and not kept.is_deleting
            kept.is_declared, kept.is_deleting = True, False

    # -- looking ------------------------------------------------------------------------------------------------

    def look(self, *, is_exact: bool, is_after_power_cut: bool = False) -> None:
        """Compare every queue."""
        contents = self._drain()
        self.model.now_ms = int(self.machine.threads.now_s * 1000)
        for name in sorted(contents, key=lambda each: each == DEAD):
            self._compare(self.model.current[name], contents[name])
        self._check_promises(contents, is_exact=is_exact)
        self._adopt_contents(contents, is_durable=is_after_power_cut)

    def _drain(self) -> dict[str, list[int]]:
        """The numbers of what is in each queue, in order."""
        machine = self.machine
        clients: dict[str, Client] = {}
        counts: dict[str, int] = {}
        contents: dict[str, list[int]] = {}
        for name in self._present():
            vhost, queue = place_of(name)
            client = clients.get(vhost)
            if client is None:
                client = clients[vhost] = Client(machine)
                client.open(vhost=vhost)
                client.call(1, spec.Channel.Open())
            client.session.receive(method_bytes(1, spec.Queue.Declare(queue=queue, passive=True)))
            client.session.receive(
                method_bytes(1, spec.Basic.Consume(queue=queue, consumer_tag=name))
            )
            contents[name] = []
        until = machine.threads.now_s + PATIENCE_S
        while True:
            machine.settle()
            for vhost, client in clients.items():
                for _, method in client.read():
                    if isinstance(method, spec.Queue.DeclareOk):
                        counts[keyed(vhost, method.queue)] = method.message_count
                    elif isinstance(method, spec.Basic.Deliver):
                        contents[method.consumer_tag].append(
                            self._number(method.consumer_tag, method.body)
                        )
                    elif isinstance(method, spec.Channel.Close | spec.Connection.Close):
                        raise Violation(f"the audit's channel was closed: {method.reply_text}")
            is_all = len(counts) == len(contents) and all(
                len(contents[name]) >= counts[name] for name in contents
            )
            if is_all or machine.threads.now_s >= until:
                break
            machine.pass_time(until)
        for name, count in counts.items():
            short = count - len(contents[name])
            if short and not self._may_differ(name) and not 0 < short <= self._weak_count(name):
                raise Violation(
                    f"{name}: {count} messages are said to be there, {len(contents[name])} came"
                )
        if len(counts) != len(contents):
            raise Violation("a passive declaration was not answered")
        for client in clients.values():
            client.session.wire = None
            client.session.lost("")
        machine.settle()
        return contents

    def _present(self) -> list[str]:
        """The queues that the node has and serves; of those that nobody declares or deletes just now it must have each."""
        node, present = self.machine.node, []
        assert node is not None
        inaccessible = self.machine.inaccessible()
        require_own_faults(self.machine, has_damage=bool(self.damaged) or bool(self.damaged_homes))
        for name, home in self.model.current.items():
            if name in inaccessible:
                continue
            vhost = node.vhosts.get(home.vhost)
            queue = None if vhost is None else vhost.queues.get(home.queue)
            if queue is not None and self._identity(queue.arguments) == home.identity:
                present.append(name)
            elif home.is_stable:
                raise Violation(f"{name} is gone")
        return present

    @staticmethod
    def _identity(arguments: Any) -> int:
        identity = arguments.get("x-sim")
        return int(getattr(identity, "value", identity))

    def _may_differ(self, name: str) -> bool:
        """Messages expire, or are dropped as too much behind a start, while they are counted; damaged ones are set aside."""
        home = self.model.current[name]
        is_mortal = home.most is not None or any(
            copy.deadline_ms is not None for copy in home.all_copies()
        )
        has_mortal = any(
            copy.deadline_ms is not None or other.most is not None
            for other in self.model.homes
            for copy in other.all_copies()
        )
        return (
            is_mortal
            or (name == DEAD and has_mortal)
            or name in self.damaged_homes
            or bool(self.damaged)
        )

    def _weak_count(self, name: str) -> int:
        """Messages that are counted and went with their pages: what a start has read, transient ones."""
        copies = self.model.current[name].all_copies()
        return sum(copy.is_suspect or copy.may_have_gone_in(self.machine.starts) for copy in copies)

    def _number(self, name: str, body: bytes) -> int:
        number = int(body[:8])
        publication = self.model.publications.get(number)
        if publication is None or publication.body != body:
            raise Violation(
                f"{name}: a message with other bytes than any that was published: {body[:40]!r}"
            )
        return number

    # -- comparing ----------------------------------------------------------------------------------------------

    def _compare(self, home: Home, numbers: list[int]) -> None:
        model = self.model
        for number, count in Counter(numbers).items():
            if number in model.rolled_back:
                raise Violation(f"{home.name}: {number} was rolled back")
            copies = [copy for copy in home.copies.get(number, ()) if self._may_be_there(copy)]
            while len(copies) < count and home.name == DEAD:
                heir = model.unforeseen_heir(home, number)
                if heir is None:
                    break
                copies.append(heir)
            while len(copies) < count and (back := model.not_expired(home, number)) is not None:
                copies.append(back)
            copies += self._back_by_damage(home, number, count - len(copies))
            if len(copies) < count:
                states = [(copy.state, copy.left_in) for copy in home.copies.get(number, ())]
                raise Violation(
                    f"{home.name}: {number} is there {count} times, may be {len(copies)}: {states}"
                )
            is_transient = not model.publications[number].is_persistent
            if is_transient and all(copy.born_in < model.start for copy in home.copies[number]):
                raise Violation(f"{home.name}: {number} is transient and survived")
        self._check_order(home, numbers)

    def _back_by_damage(self, home: Home, number: int, count: int) -> list[Copy]:
        """Dead letters of a message whose ack was damaged: it came back, and its time was over."""
        copies = self.model.publications[number].copies if home.name == DEAD else []
        origins = [copy for copy in copies if copy.home.has_dead_letters and self._is_damaged(copy)]
        return [self.model.bequeath(origins[0], home) for _ in range(count)] if origins else []

    def _is_damaged(self, copy: Copy) -> bool:
        return copy.number in self.damaged or copy.home.name in self.damaged_homes

    def _may_be_there(self, copy: Copy) -> bool:
        if self._is_damaged(copy):
            return True  # its ack may be what was damaged
        if copy.state == "gone":
            return False
        return copy.state == "in" or copy.left_in != self.model.start

    def _check_order(self, home: Home, numbers: list[int]) -> None:
        """Messages of one publisher and one priority are in the order in which they were published."""
        last: dict[tuple[int, int], int] = {}
        priority = home.levels
        for number in numbers:
            publication = self.model.publications[number]
            if home.name == DEAD or home.name in self.damaged_homes:
                continue
            level = min(publication.priority, priority) if priority is not None else 0
            key = (publication.publisher, level)
            if last.get(key, -1) > number:
                raise Violation(f"{home.name}: {number} comes after {last[key]}")
            last[key] = number
        if priority is not None:
            levels = [min(self.model.publications[one].priority, priority) for one in numbers]
            if levels != sorted(levels, reverse=True):
                raise Violation(f"{home.name}: not in the order of priorities: {levels}")

    def _check_promises(self, contents: dict[str, list[int]], *, is_exact: bool) -> None:
        places = {name: Counter(numbers) for name, numbers in contents.items()}
        model = self.model
        self._check_dead_letters(places)
        self._check_bounded(places)
        for home in [model.current[name] for name in contents]:
            missing: list[int] = []
            for number, copies in home.copies.items():
                wanted = [copy for copy in copies if self._must_be(copy, is_exact=is_exact)]
                short = len(wanted) - places[home.name][number]
                if short > 0:
                    here = sum(not self._is_elsewhere(copy, places) for copy in wanted)
                    missing += [number] * min(short, here)
            grace, home.grace = home.grace, 0
            if len(missing) > grace:
                raise Violation(
                    f"{home.name}: lost {sorted(missing)[:20]} of {sum(places[home.name].values())}"
                    f" (start {model.start}, {'exact' if is_exact else 'after a crash'})"
                )

    def _check_dead_letters(self, places: dict[str, Counter[int]]) -> None:
        """A dead letter's copy and its origin's ack are one commit: a promised message is in one of the two queues."""
        dead = self.model.current.get(DEAD)
        if dead is None or dead.is_replaced or DEAD not in places:
            return
        if self.damaged or self.damaged_homes:
            return
        missing: list[int] = []
        for number, heirs in dead.copies.items():
            owed = [heir for heir in heirs if heir.is_owed and heir.state == "in"]
            wanted = [heir for heir in owed if not self._may_have_gone(heir, places)]
            if len(wanted) > places[DEAD][number]:
                missing.append(number)
        if len(missing) > dead.grace:
            raise Violation(
                f"neither in its queue nor a dead letter: {missing} (start {self.model.start})"
            )

    def _check_bounded(self, places: dict[str, Counter[int]]) -> None:
        """What a full queue drops is a dead letter: a promised message is in its queue, or there, or was taken there.

        Which copy of a message is which dead letter nobody knows, so that they are counted together.
        """
        model = self.model
        dead = model.current.get(DEAD)
        was_always = sum(home.name == DEAD for home in model.homes) == 1
        if dead is None or not was_always or dead.is_deleting or DEAD not in places:
            return
        if self.damaged or self.damaged_homes or all(home.most is None for home in model.homes):
            return
        missing: list[int] = []
        grace = dead.grace
        gone: list[Copy] = []  # that somebody may have got from there who does not say so
        for number, publication in model.publications.items():
            lasting = [copy for copy in publication.copies if copy.has_to_last]
            wanted = [
                copy
                for copy in lasting
                if copy.state == "in" or (copy.heirs and not copy.is_settled)
            ]
            homes = {copy.home for copy in wanted}
            if not all(home.name in places for home in homes):
                continue
            found = sum(places[home.name][number] for home in homes)
            found += places[DEAD][number]
            found += sum(heir.is_settled for heir in dead.copies.get(number, ()))
            if found < len(wanted):
                missing.append(number)
                gone += wanted
                grace += sum(home.grace for home in homes)
        if len(missing) > grace:
            raise Violation(
                f"neither in a full queue nor a dead letter: {missing} (start {model.start})"
            )
        for copy in gone:
            copy.is_purged = True

    def _may_have_gone(self, heir: Copy, places: dict[str, Counter[int]]) -> bool:
        """Whether a dead letter's origin is back, or its time was over."""
        origin = heir.origin
        assert origin is not None
        is_over = self.model.is_over(origin)
        return heir.is_suspect or is_over or self._is_elsewhere(heir, places)

    def _must_be(self, copy: Copy, *, is_exact: bool) -> bool:
        home = copy.home
        if self._is_damaged(copy):
            return False
        if copy.state != "in" or (
            copy.origin is not None and not is_exact and not self._is_kept(copy)
        ):
            return False
        if self.model.is_over(copy) or (
            copy.origin is not None and self.model.is_over(copy.origin)
        ):
            return False
        if copy.origin is not None and copy.origin.number in self.damaged:
            return False
        if copy.is_promised and not home.is_replaced:
            return True
        return is_exact and copy.is_certain and not copy.may_have_gone_in(self.machine.starts)

    def _is_kept(self, heir: Copy) -> bool:
        """Whether a dead letter has to be here, its origin being away for good."""
        return heir.is_promised

    def _is_elsewhere(self, copy: Copy, places: dict[str, Counter[int]]) -> bool:
        """A message that came back to the queue it was rejected in."""
        origin = copy.origin
        return origin is not None and bool(places.get(origin.home.name, Counter())[copy.number])

    # -- going on -----------------------------------------------------------------------------------------------

    def _adopt_contents(self, contents: dict[str, list[int]], *, is_durable: bool) -> None:
        """What is found is in, what is not has left."""
        for name, numbers in contents.items():
            home = self.model.current[name]
            counts = Counter(numbers)
            was_replaced, home.is_replaced = home.is_replaced, False
            for number, copies in home.copies.items():
                found = counts[number]
                for copy in sorted(copies, key=_likely):
                    if copy.state == "gone" and not self._is_damaged(copy):
                        continue
                    if was_replaced and not found:
                        copy.is_promised = (
                            False  # the deletion that was cut short may have taken it
                        )
                    if found:
                        found -= 1
                        copy.state, copy.is_certain = "in", True
                        if is_durable and copy.publication.is_persistent and home.is_durable:
                            copy.is_promised = True
                    elif is_durable and not self._could_come(copy):
                        copy.state, copy.left_in = "gone", self.model.start
                    elif copy.state == "in":
                        copy.state, copy.left_in = "left", self._found_left_in(copy)
                    else:
                        copy.left_in = self._found_left_in(copy)

    def _found_left_in(self, copy: Copy) -> int:
        """What a start finds it makes durable, acks too: but not in pages whose sync failed in a process before."""
        start = self.model.start
        return (copy.left_in or start - 1) if self.model.are_pages_suspect else start

    def _could_come(self, copy: Copy) -> bool:
        return (
            self.model.is_over(copy)
            or copy.number in self.damaged
            or copy.home.name in self.damaged_homes
        )

    def exempt(self, numbers: Collection[int], homes: Collection[str]) -> None:
        """Bytes of these messages, or of what tells these queues' messages apart, were damaged."""
        self.damaged.update(numbers)
        self.damaged_homes.update(homes)


def _likely(copy: Copy) -> int:
    return ("in", "left", "gone").index(copy.state)
