"""What always holds of a queue between two turns, as a check that BURROWMQ_VERIFY=1 runs and tests call.

`verify` raises AssertionError with a sentence that names the queue, the level and both figures. One function for each
part of a queue; each yields a sentence for each rule that does not hold, so that a rule can be read, and broken by its
test, by itself. State: none. Called by `broker.node.turn_check` at the end of a turn, and by tests after each step;
never by the queue itself. A check changes nothing and reads no clock.

What it costs is bounded: of a level that has more than `WALK_LIMIT` messages in RAM only the figures are compared,
and the messages are not looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.run import LOGGED

WALK_LIMIT = 10_000
"""Messages in RAM up to which a level's are looked at one by one."""


def verify(queue: Queue, walk_limit: int = WALK_LIMIT) -> None:
    """Raise AssertionError with the first rule that does not hold of `queue`; what it is loading does not count."""
    for place, sentence in _broken(queue, walk_limit):
        raise AssertionError(f"queue {queue.name!r}{place}: {sentence}")


def _broken(queue: Queue, walk_limit: int) -> Iterator[tuple[str, str]]:
    if queue.is_asleep:  # it has no part that could be wrong
        yield from (("", sentence) for sentence in _asleep(queue))
        return
    if queue.is_deleted:
        yield from (("", sentence) for sentence in _deleted(queue))
        return
    for number, level in enumerate(queue.levels):
        place = f", level {number}" if len(queue.levels) > 1 else ""
        is_walked = level.ram_count <= walk_limit
        for rules in (_ids, _requeued, _disk, _stored):
            yield from ((place, sentence) for sentence in rules(level))
        for rules in (_heap, _ram) if is_walked else ():
            yield from ((place, sentence) for sentence in rules(level))
        if not queue.durable and is_walked and level.durable_in_ram():
            yield (
                place,
                f"{len(level.durable_in_ram())} durable messages in a queue that is not durable",
            )
    for parts in (_counts, _guess, _consumers, _single_active, _leavers, _waiting, _drops, _expiry):
        yield from (("", sentence) for sentence in parts(queue))
    if all(level.ram_count <= walk_limit for level in queue.levels):
        yield from (("", sentence) for sentence in _persistent(queue))


def _asleep(queue: Queue) -> Iterator[str]:
    """Nobody has to wake it: it is no longer than its settings allow."""
    if not queue.settings.have_room_for(queue.ready_count, queue.ready_bytes):
        yield f"asleep with {queue.ready_count} messages of {queue.ready_bytes} bytes, and that is too much"


def _deleted(queue: Queue) -> Iterator[str]:
    if queue.ready_count or len(queue.consumers) or queue.getter_count:
        yield (
            f"deleted, yet it has {queue.ready_count} messages, {len(queue.consumers)} consumers "
            f"and {queue.getter_count} that wait for basic.get"
        )


# -- one level ----------------------------------------------------------------------------------------------------


def _ids(level: Backlog) -> Iterator[str]:
    """Every id of a part is lower than every id of the next: requeued, RAM, disk, the next message's."""
    heap, parked = level.requeued.heap, list(level.requeued.parked)
    requeued_end = max(
        max((entry[0] + 1 for entry in heap), default=0), parked[-1].stop if parked else 0
    )
    ram, disk = level.ram, level.disk
    ram_end = ram.first + len(ram.messages)
    if ram.messages and requeued_end > ram.first:
        yield f"requeued ids reach {requeued_end - 1}, and those in RAM begin at {ram.first}"
    if disk.count and max(requeued_end, ram_end if ram.messages else 0) > disk.first:
        yield f"ids in RAM reach {max(requeued_end, ram_end) - 1}, and those on disk begin at {disk.first}"
    if ram.messages and not disk.count and ram_end < level.next_seq:
        yield f"ids in RAM reach {ram_end - 1}, nothing is on disk, and the next id is {level.next_seq}"
    if max(requeued_end, ram_end if ram.messages else 0, disk.first + disk.count) > level.next_seq:
        yield (
            f"the next id is {level.next_seq}, and there are requeued ids up to {requeued_end}, in RAM up to "
            f"{ram_end}, on disk {disk.count} from {disk.first} on"
        )


def _heap(level: Backlog) -> Iterator[str]:
    """What came back: a heap, each id once, its bytes counted, none that is parked too."""
    heap = level.requeued.heap
    for place in range(1, len(heap)):
        if heap[(place - 1) // 2][0] >= heap[place][0]:
            yield f"no heap: {heap[(place - 1) // 2][0]} stands above {heap[place][0]}"
            return
    ids = sorted(entry[0] for entry in heap)
    twice = next((left for left, right in pairwise(ids) if left == right), None)
    if twice is not None:
        yield f"id {twice} came back twice"
    size = sum(entry[1].size for entry in heap)
    if level.requeued.bytes != size:
        yield f"requeued messages have {size} bytes, {level.requeued.bytes} are counted"
    for first, stop, _ in level.requeued.parked:
        both = [seq for seq in ids if first <= seq < stop]
        if both:
            yield f"id {both[0]} is in RAM and parked in {first}..{stop - 1}"
    if not level.has_expiries and any(entry[2] for entry in heap):
        yield "a requeued message expires, and has_expiries is False"


def _requeued(level: Backlog) -> Iterator[str]:
    """What was parked: ranges in order, apart and not empty, that add up."""
    parked = level.requeued.parked
    ranges = list(parked)
    empty = next((each for each in ranges if each.first >= each.stop), None)
    if empty is not None:
        yield f"the parked range {empty.first}..{empty.stop - 1} is empty"
    for left, right in pairwise(ranges):
        if left.stop > right.first:
            yield f"parked ranges {left.first}..{left.stop - 1} and {right.first}..{right.stop - 1} overlap"
    count = sum(each.stop - each.first for each in ranges)
    if parked.count != count:
        yield f"parked ranges hold {count} ids, {parked.count} are counted"
    if ranges and parked.first_seq != ranges[0].first:
        yield f"parked ids begin at {ranges[0].first}, first_seq is {parked.first_seq}"
    if parked.bytes < 0 or (parked.bytes and not ranges):
        yield f"{parked.bytes} bytes in {count} parked messages"


def _ram(level: Backlog) -> Iterator[str]:
    """What is in RAM: its stretches, deadlines and bytes add up."""
    ram = level.ram
    count = len(ram.messages)
    described = sum(len(seqs) for seqs, _ in ram.by_kind())
    if described != count:
        yield f"{count} messages in RAM, {described} described by kind"
    if ram.has_expiries and ram.expiry_count != count:
        yield f"{count} messages in RAM, {ram.expiry_count} deadlines"
    if ram.has_expiries and count and not level.has_expiries:
        yield "RAM keeps deadlines, and has_expiries is False"
    size = level.requeued.bytes + sum(message.size for message in ram.messages)
    if level.ram_bytes != size:
        yield f"messages in RAM have {size} bytes, {level.ram_bytes} are counted"


def _disk(level: Backlog) -> Iterator[str]:
    """The range on disk: no negative figures, its known sizes add up, what is left-over lies in it."""
    disk = level.disk
    if disk.count < 0 or disk.bytes < 0:
        yield f"{disk.count} messages of {disk.bytes} bytes on disk"
    known = disk.known_sizes
    if disk.count and known is not None and known != (disk.count, disk.bytes):
        yield (
            f"{disk.count} messages of {disk.bytes} bytes on disk, the sizes that are kept make "
            f"{known[0]} of {known[1]} bytes"
        )
    ids = [entry[0] for entry in disk.start_batch_rest]
    if ids and not (disk.first <= ids[0] and ids[-1] < level.next_seq):
        yield f"left-over ids {ids[0]}..{ids[-1]} lie outside of {disk.first}..{level.next_seq - 1}"
    if any(left >= right for left, right in pairwise(ids)):
        yield "left-over ids are not in order"
    size = sum(entry[1].size for entry in disk.start_batch_rest)
    if disk.start_batch_rest.bytes != size:
        yield f"left-over messages have {size} bytes, {disk.start_batch_rest.bytes} are counted"


def _stored(level: Backlog) -> Iterator[str]:
    """What is on disk, or said to be in the store, needs one, which has no id that is not given out yet."""
    if level.has_log:
        if level.log.next_seq > level.next_seq:
            yield f"the next id is {level.next_seq}, and the store has ids up to {level.log.next_seq - 1}"
        return
    on_disk = level.disk.count + level.requeued.parked.count
    logged = any(kind & LOGGED for _, kind in level.ram.by_kind())
    if on_disk or logged or any(entry[3] & LOGGED for entry in level.requeued.heap):
        yield f"messages are logged, {on_disk} of them only on disk, and the store was never opened"


# -- the queue ----------------------------------------------------------------------------------------------------


def _counts(queue: Queue) -> Iterator[str]:
    """No count is negative, and no part is more than its whole; a guess is put right when the queue is pumped."""
    if _is_being_settled(queue):
        return
    ready = queue.ready_count
    for what, part, part_bytes in (
        ("unacked", queue.counts.unacked_count, queue.counts.unacked_bytes),
        ("persistent", queue.counts.persistent_count, queue.counts.persistent_bytes),
        (
            "unacked persistent",
            queue.counts.unacked_persistent_count,
            queue.counts.unacked_persistent_bytes,
        ),
    ):
        if part < 0 or part_bytes < 0 or (part_bytes and not part):
            yield f"{part} {what} messages of {part_bytes} bytes"
    for what, whole in (
        ("unacked", queue.counts.unacked_count),
        ("persistent", queue.counts.persistent_count),
    ):
        if queue.counts.unacked_persistent_count > whole:
            yield f"{queue.counts.unacked_persistent_count} messages are unacked and persistent, of {whole} {what}"
    if queue.counts.persistent_count > ready + queue.counts.unacked_count:
        yield (
            f"{queue.counts.persistent_count} persistent messages of {ready} ready and "
            f"{queue.counts.unacked_count} unacked"
        )


def _persistent(queue: Queue) -> Iterator[str]:
    """Persistent messages are those unacked, those in RAM, and no more than all of those on disk."""
    if _is_being_settled(queue):
        return
    least = queue.counts.unacked_persistent_count + sum(
        len(level.durable_in_ram()) for level in queue.levels
    )
    on_disk = sum(level.disk.count + level.requeued.parked.count for level in queue.levels)
    if not least <= queue.counts.persistent_count <= least + on_disk:
        yield (
            f"{queue.counts.persistent_count} persistent messages are counted; {least} are unacked or in RAM, "
            "and at most "
            f"{on_disk} on disk"
        )


def _guess(queue: Queue) -> Iterator[str]:
    """The counts are a guess for as long as kinds of messages are unknown, and what leaves the disk is watched then."""
    if not queue.counts.is_guess or _is_being_settled(queue):
        return
    if not queue.levels.known_kinds()[2]:
        yield "the count of persistent messages is a guess, and the kinds of all are known"
    if not all(level.is_watched for level in queue.levels):
        yield "the count of persistent messages is a guess, and nobody is told of what leaves the disk"


def _is_being_settled(queue: Queue) -> bool:
    return queue.counts.is_guess and queue.is_dirty


def _consumers(queue: Queue) -> Iterator[str]:
    """Who may be served is registered, in the ring of its priority, once; what consumers hold the queue counts."""
    consumers = queue.consumers
    registered = list(consumers)
    in_rings = [(priority, each) for priority, ring in consumers.rings for each in ring]
    if consumers.open_count != len(in_rings):
        yield f"{len(in_rings)} consumers may be served, {consumers.open_count} are counted"
    for priority, consumer in in_rings:
        if consumer not in registered:
            yield f"consumer {consumer.tag!r} may be served and is not registered"
        if consumer.priority != priority or consumer.is_blocked:
            yield (
                f"consumer {consumer.tag!r} of priority {consumer.priority}, blocked: {consumer.is_blocked}, "
                f"is to be served with those of {priority}"
            )
    if len({id(consumer) for _, consumer in in_rings}) < len(in_rings):
        yield "a consumer is to be served twice in one round"
    for consumer in registered:
        if consumer.unacked_count < 0 or (consumer.no_ack and consumer.unacked_count):
            yield f"consumer {consumer.tag!r} (no_ack: {consumer.no_ack}) has {consumer.unacked_count} unacked"
    held = sum(consumer.unacked_count for consumer in registered)
    if held > queue.counts.unacked_count:
        yield f"consumers hold {held} unacked messages, the queue counts {queue.counts.unacked_count}"


def _single_active(queue: Queue) -> Iterator[str]:
    """A single active consumer, or an exclusive one, is registered; with a single active one nobody else is served."""
    consumers, active = queue.consumers, queue.consumers.active
    if queue.consumers.exclusive is not None and list(consumers) != [queue.consumers.exclusive]:
        yield f"an exclusive consumer {queue.consumers.exclusive.tag!r} and {len(consumers)} registered ones"
    if not queue.settings.single_active_consumer:
        return
    if (active is None) != (not len(consumers)) or (active and active not in list(consumers)):
        tag = active.tag if active else None
        yield f"the single active consumer is {tag!r}, of {len(consumers)} registered ones"
    for _, ring in consumers.rings:
        others = [each.tag for each in ring if each is not active]
        if others:
            yield f"consumer {others[0]!r} may be served and is not the single active one"


def _leavers(queue: Queue) -> Iterator[str]:
    """Who left and holds messages is not registered; who waits for that is, and is not served."""
    consumers = queue.consumers
    registered = list(consumers)
    for leaver in consumers.leavers:
        if leaver in registered:
            yield f"consumer {leaver.tag!r} has left and is registered"
        if not leaver.unacked_count and not queue.is_dirty:
            yield f"consumer {leaver.tag!r} has left, holds nothing, and is still waited for"
    for successor in consumers.successors:
        if successor not in registered or any(successor in ring for _, ring in consumers.rings):
            yield f"consumer {successor.tag!r} waits for one that leaves, and is served or not registered"
        if not consumers.leavers and not queue.is_dirty:
            yield f"consumer {successor.tag!r} waits, and nobody leaves"


def _waiting(queue: Queue) -> Iterator[str]:
    """Nobody waits for what is there: the queue is to be pumped, a read is under way, or the disk refuses the queue."""
    if queue.is_blocked or queue.is_dirty or any(level.is_loading for level in queue.levels):
        return
    if queue.getter_count:
        yield f"{queue.getter_count} wait for basic.get, and the queue neither reads nor is to be pumped"
    if queue.ready_count:
        able = [each.tag for _, ring in queue.consumers.rings for each in ring if each.credit() > 0]
        if able:
            yield f"{queue.ready_count} messages are ready, consumer {able[0]!r} can take some, and nothing happens"


def _drops(queue: Queue) -> Iterator[str]:
    """What was dropped and has to be read is counted where it lay, and is being read."""
    dying, drops = sum(level.dying_count for level in queue.levels), queue.drops
    waiting = drops.waiting_count if drops is not None else 0
    if dying != waiting:
        yield f"{waiting} dropped messages wait to be read, {dying} are counted"
    if drops is not None and drops.are_waiting and not drops.is_reading:
        yield "dropped messages wait to be read, and nobody reads"


def _expiry(queue: Queue) -> Iterator[str]:
    """The timer is armed exactly when a deadline is noted, and for the head if that is in RAM and expires.

    Nothing expires while the disk refuses the queue: the end of that has it pumped, which sets the timer.
    """
    due, is_armed = queue.expiry.due_ms, queue.expiry.timer is not None
    if is_armed != bool(due):
        yield f"the expiry timer is {'armed' if is_armed else 'not armed'}, its deadline is {due}"
    level = next((level for level in reversed(queue.levels) if level.count), None)
    head = level.head() if level is not None else None
    is_waiting = queue.is_dirty or queue.is_blocked
    if head is not None and head[1] and not is_waiting and not 0 < due <= head[1]:
        yield f"the head expires at {head[1]}, the timer's deadline is {due}"
