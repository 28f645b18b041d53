"""AmqpTransport on asyncio's interface: reads, writes, pauses, heartbeats, ends.

Covers: broker/sockets/straight.py
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
from typing import Any, cast

import pytest
from pika import spec

from burrowmq.broker.session.held import HELD_MAX
from burrowmq.broker.sockets.transport import (
    FEW_READS,
    FIRST_BYTES,
    IN_PLACE_BYTES,
    LARGE_READ,
    LARGE_WRITE,
    OTHERS_BYTES,
    PUBLISHER_SLICE_S,
    SLICE_FROM,
    SLICE_S,
    TURN_BYTES,
    UNREAD_PAUSE,
    WRITE_HARD_LIMIT,
    AmqpTransport,
)
from burrowmq.broker.turn.intake import ROUND_S
from burrowmq.broker.turn.outbox import Outbox
from burrowmq.protocol.codec import _large_py
from tests.support.amqp_frames import content
from tests.support.bench.broker import BrokerBench
from tests.support.wire_client import PROTOCOL_HEADER, method_bytes, publish_bytes

NO_DESCRIPTOR = 1 << 20
HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"


@pytest.fixture(autouse=True, scope="module")
def lent():
    """The interpreted codec lends room for bodies that are not that large, too."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_large_py, "LENT_FROM", 2 * _large_py.LENT)
        yield


class FakeSocketTransport:
    """asyncio's transport, as far as ours uses it."""

    def __init__(self, descriptor: int = -1, *, is_secure: bool = False) -> None:
        self.written: list[bytes] = []
        self.buffered = 0
        self.is_reading = True
        self.state = "open"
        self.options: list[tuple[int, int, Any]] = []
        self.ssl_object = object() if is_secure else None
        self.descriptor = descriptor

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high

    def get_extra_info(self, name: str) -> object:
        if name == "ssl_object":
            return self.ssl_object
        assert name == "socket"
        return self

    def fileno(self) -> int:
        return self.descriptor

    def setsockopt(self, level: int, option: int, value: Any) -> None:
        self.options.append((level, option, value))

    def write(self, data: bytes) -> None:
        self.written.append(bytes(data))

    def writelines(self, parts: list[bytes]) -> None:
        self.written += map(bytes, parts)

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def pause_reading(self) -> None:
        assert self.is_reading
        self.is_reading = False

    def resume_reading(self) -> None:
        assert not self.is_reading
        self.is_reading = True

    def is_closing(self) -> bool:
        return self.state != "open"

    def close(self) -> None:
        self.state = "closed"

    def abort(self) -> None:
        self.state = "aborted"


class World:
    def __init__(
        self,
        sock: FakeSocketTransport | None = None,
        *,
        handshake_timeout_s: float = 1000.0,
        is_nodelay: bool = True,
        default_mode: str = "bounded",
    ) -> None:
        self.bench = BrokerBench(default_mode=default_mode)
        self.client = self.bench.socket()
        self.now_s = 0.0
        self.bench.scheduler.monotonic = lambda: self.now_s  # type: ignore[method-assign]
        self.sock = sock or FakeSocketTransport()
        self.transport = AmqpTransport(
            cast("Any", self.sock),
            self.client.session,
            handshake_timeout_s,
            is_nodelay=is_nodelay,
        )

    def open(self, heartbeat: int = 0) -> None:
        start_ok = spec.Connection.StartOk(
            client_properties={}, mechanism="PLAIN", response="\0guest\0guest", locale="en_US"
        )
        for data in (
            PROTOCOL_HEADER,
            method_bytes(0, start_ok),
            method_bytes(0, spec.Connection.TuneOk(2047, 131072, heartbeat)),
            method_bytes(0, spec.Connection.Open(virtual_host="/")),
        ):
            self.transport.data_received(data)
            self.bench.run()
        assert self.client.session.is_open
        self.sock.written.clear()

    def lose(self) -> None:
        self.transport.connection_lost(None)


@pytest.fixture
def run():
    """Run a function on a loop of its own, for the timers that a transport starts."""

    def run_on_loop(step: Any) -> None:
        async def main() -> None:
            found = step()
            if found is not None:
                await found

        asyncio.run(main())

    return run_on_loop


def test_one_write_for_all_that_is_queued(run):
    def step() -> None:
        world = World()
        world.open()
        session = world.client.session
        session.write(b"a")
        session.write(b"b")
        world.bench.run()
        assert world.sock.written == [b"ab"]
        assert (world.transport.writes, world.transport.reads) == (4, 4)
        world.lose()

    run(step)


def test_a_heartbeat_is_heard_and_ends_no_turn(run):
    def step() -> None:
        world = World()
        world.open(heartbeat=10)
        turns, heard = world.bench.scheduler.turns, world.transport.bytes_received
        world.transport.data_received(HEARTBEAT)
        world.bench.run()
        assert world.bench.scheduler.turns == turns
        assert world.transport.bytes_received == heard + len(HEARTBEAT)
        # These octets are the middle of a frame: what is not one by itself is not taken for one.
        publish = publish_bytes(0, "", "", b"x" + HEARTBEAT + b"y")
        at = publish.index(HEARTBEAT)
        for part in (publish[:at], HEARTBEAT, publish[at + len(HEARTBEAT) :]):
            world.transport.data_received(part)
            world.bench.run()
        assert b"unexpected method" in b"".join(world.sock.written), "a publish on channel 0"
        world.lose()

    run(step)


class Together(World):
    """One whose outputs are sent with others'."""

    def __init__(self, taken: int, sock: FakeSocketTransport | None = None) -> None:
        super().__init__(sock)
        self.open()
        if self.transport.descriptor < 0:
            self.transport.descriptor = NO_DESCRIPTOR
        self.taken = taken
        self.sent: list[tuple[list[int], list[bytes]]] = []
        self.outbox = Outbox(_unexpected, self._send_each)
        self.bench.scheduler.outbox = self.outbox

    def _send_each(self, descriptors: list[int], octets: list[bytes]) -> list[int]:
        self.sent.append((descriptors, octets))
        return [min(self.taken, len(each)) for each in octets]

    def flush(self, *parts: bytes) -> None:
        self.outbox.open()
        self.client.session.write_parts(list(parts))
        self.client.session.flush()


def _unexpected(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(("taken", "rest"), [(4, []), (3, [b"d"]), (0, [b"abcd"]), (-1, [b"abcd"])])
def test_what_a_socket_has_not_taken_with_others_is_written_by_itself(run, taken, rest):
    def step() -> None:
        world = Together(taken)
        pause_until_the_turn_ends(world)
        before = world.transport.bytes_sent, world.transport.writes
        world.flush(b"ab", b"cd")
        assert world.sock.written == []
        assert not world.sock.is_reading, "the turn's output is not out yet"
        world.outbox.close()
        assert world.sent == [([NO_DESCRIPTOR], [b"abcd"])]
        assert world.sock.written == rest
        assert world.sock.is_reading
        assert (world.transport.bytes_sent, world.transport.writes) == (
            before[0] + 4,
            before[1] + 1,
        )
        world.lose()

    run(step)


def pause_until_the_turn_ends(world: World) -> None:
    world.transport.pause_reading("end of turn")
    assert not world.sock.is_reading


def test_what_is_large_or_has_something_before_it_or_is_encrypted_goes_by_itself(run):
    def step() -> None:
        world = Together(100)
        world.flush(bytes(LARGE_WRITE))
        world.sock.buffered = 1
        world.flush(b"behind it")
        world.sock.buffered = 0
        world.transport.descriptor = -1
        world.flush(b"a secret")
        world.outbox.close()
        assert world.sent == []
        assert b"".join(world.sock.written) == bytes(LARGE_WRITE) + b"behind it" + b"a secret"
        world.lose()

    run(step)


def test_a_connection_that_closes_has_its_last_output_first(run):
    async def step() -> None:
        world = Together(2)
        world.flush(b"last")
        world.transport.close()
        assert world.sent == [([NO_DESCRIPTOR], [b"last"])]
        assert world.sock.written == [b"st"]
        assert world.sock.state == "closed"
        world.lose()

    run(step)


def test_what_was_put_for_a_connection_that_is_aborted_reaches_nobody(run):
    def step() -> None:
        world = Together(-1)
        world.flush(b"too late")
        world.transport.abort()
        world.outbox.close()
        assert world.sent == [([-1], [b"too late"])]
        assert world.sock.written == []
        world.lose()

    run(step)


def test_what_the_socket_has_not_taken_is_counted(run):
    def step() -> None:
        world = World()
        world.open()
        assert world.transport.bytes_unsent == 0
        world.sock.buffered = 5
        assert world.transport.bytes_unsent == 5
        world.lose()

    run(step)


def test_reading_resumes_when_the_last_reason_is_gone(run):
    def step() -> None:
        world = World()
        for reason in ("alarm", "backlog", "alarm"):
            world.transport.pause_reading(reason)
        world.transport.resume_reading("alarm")
        world.transport.resume_reading("never given")
        assert not world.sock.is_reading
        world.transport.resume_reading("backlog")
        assert world.sock.is_reading
        world.lose()

    run(step)


def test_a_turn_ends_before_a_full_socket_is_empty(run):
    def step() -> None:
        world = World()
        world.open()
        for _ in range(2):
            world.transport.data_received(HEARTBEAT * (TURN_BYTES // len(HEARTBEAT) - 1))
            assert world.sock.is_reading
            world.transport.data_received(HEARTBEAT)
            assert not world.sock.is_reading
            world.bench.run()
            assert world.sock.is_reading
        world.transport.data_received(HEARTBEAT * (TURN_BYTES // len(HEARTBEAT)))
        world.transport.pause_reading("alarm")
        world.bench.run()
        assert not world.sock.is_reading
        world.transport.resume_reading("alarm")
        assert world.sock.is_reading
        world.lose()

    run(step)


def test_a_turn_ends_early_for_a_disk_that_has_nothing_to_do(run):
    def step() -> None:
        world = World()
        world.open()
        large = HEARTBEAT * (LARGE_READ // len(HEARTBEAT))
        world.transport.data_received(large)
        assert world.sock.is_reading
        world.bench.engine.is_hungry = True
        world.transport.data_received(HEARTBEAT)
        assert world.sock.is_reading, "a small read is the last one anyway"
        world.transport.data_received(large)
        assert not world.sock.is_reading
        world.bench.run()
        assert world.sock.is_reading
        world.lose()

    run(step)


class Slow(World):
    """One whose session takes so long for each octet; `pieces`: what it was given."""

    def __init__(
        self,
        octet_s: float,
        *,
        is_publisher: bool = False,
        heartbeat: int = 0,
        beside: World | None = None,
    ) -> None:
        super().__init__()
        self.open(heartbeat)
        if beside is not None:  # on its loop
            self.bench, self.client.session.scheduler = beside.bench, beside.bench.scheduler
        self.octet_s = octet_s
        self.pieces: list[bytes] = []
        self.client.session.is_publisher = is_publisher
        self.client.session.receive = self._receive  # type: ignore[method-assign]

    def _receive(self, data: bytes) -> None:
        self.pieces.append(data)
        self.now_s += len(data) * self.octet_s

    @property
    def sizes(self) -> list[int]:
        return [len(piece) for piece in self.pieces]


LARGE = bytes(range(251)) * 522  # 128 KB, no two parts of which are alike
MICROSECOND = 1e-6


@pytest.mark.parametrize("is_publisher", [False, True])
def test_a_read_that_takes_long_is_taken_in_by_turns(run, is_publisher: bool):
    def step() -> None:
        world = Slow(0.5 * MICROSECOND, is_publisher=is_publisher)
        slice_s = PUBLISHER_SLICE_S if is_publisher else SLICE_S
        world.transport.data_received(LARGE)
        assert world.sizes[0] == FIRST_BYTES
        assert world.now_s <= slice_s * 1.01
        done = sum(world.sizes)
        assert not world.sock.is_reading, "what is behind it waits in the socket"
        turns = 0
        while not world.sock.is_reading:
            turns, began, count = turns + 1, world.now_s, len(world.pieces)
            world.bench.loop.run_once()
            assert world.now_s - began <= slice_s * 1.01, "others have their turn after that"
            assert len(world.pieces) - count <= 3
        assert b"".join(world.pieces) == LARGE
        assert turns == pytest.approx((len(LARGE) - done) * 0.5 * MICROSECOND / slice_s, abs=3)
        # The next read is cut from its start, and what comes meanwhile stands behind it.
        world.pieces.clear()
        world.transport.data_received(LARGE[:30_000])
        world.transport.data_received(LARGE[30_000:30_010])
        world.bench.run()
        assert world.sizes[0] <= 1.01 * slice_s / 2 / (0.5 * MICROSECOND)
        assert b"".join(world.pieces) == LARGE[:30_010]
        assert world.sock.is_reading
        world.lose()

    run(step)


def test_the_reads_of_a_publisher_are_cut_as_long_as_they_may_take_long(run):
    def step() -> None:
        world = Slow(0, is_publisher=True)
        for _ in range(3):
            world.transport.data_received(LARGE)
        first = [FIRST_BYTES << at for at in range(4)]
        assert world.sizes == [*first, len(LARGE) - sum(first), len(LARGE), len(LARGE)]
        world.octet_s = 1 * MICROSECOND
        world.pieces.clear()
        world.transport.data_received(LARGE)
        world.bench.run()
        assert world.sizes[0] == len(LARGE), "nothing told of it"
        world.transport.data_received(LARGE)
        world.bench.run()
        assert max(world.sizes[1:]) <= PUBLISHER_SLICE_S / MICROSECOND
        world.octet_s = 0
        world.pieces.clear()
        for _ in range(10):
            world.transport.data_received(LARGE)
            world.bench.run()
        assert world.sizes[-1] == len(LARGE), "and quick ones are whole again"
        world.lose()

    run(step)


def test_who_is_no_publisher_is_given_no_more_than_the_first_part_at_a_time(run):
    def step() -> None:
        world = Slow(0)
        for _ in range(3):
            world.transport.data_received(LARGE)
        assert max(world.sizes) == OTHERS_BYTES
        assert world.sock.is_reading
        world.transport.data_received(LARGE[:SLICE_FROM])
        assert world.sizes[-1] == SLICE_FROM
        world.lose()

    run(step)


def test_what_many_send_at_once_is_taken_in_by_turns(run):
    """Each by itself would have a slice in the same turn, and everybody else would wait for all of them."""

    def step() -> None:
        first = Slow(MICROSECOND / 4)
        worlds = [first]
        first.bench.scheduler.monotonic = lambda: sum(each.now_s for each in worlds)
        worlds += [Slow(MICROSECOND / 4, beside=first) for _ in range(19)]
        for world in worlds:
            world.transport.data_received(LARGE)
        clock = first.bench.scheduler.monotonic
        most = ROUND_S + max(SLICE_S * 1.01, FIRST_BYTES * MICROSECOND / 4)
        assert clock() <= most
        waiting = [world for world in worlds if not world.pieces]
        assert waiting, "the time of this turn was spent before they came"
        assert not any(world.sock.is_reading for world in worlds)
        turns = 0
        while not all(world.sock.is_reading for world in worlds):
            began, turns = clock(), turns + 1
            first.bench.loop.run_once()
            assert clock() - began <= most, "others have their turn after that"
            if turns == 20:
                assert not [world for world in worlds if not world.pieces], "nobody is passed over"
        assert all(b"".join(world.pieces) == LARGE for world in worlds)
        small = LARGE[:SLICE_FROM]
        first.bench.scheduler.intake.spend(ROUND_S)
        first.transport.data_received(small)
        assert first.pieces[-1] == small, "what is small waits for nobody"
        for world in worlds:
            world.lose()

    run(step)


@pytest.mark.parametrize("reason", ["alarm", "backlog", "cluster", "unread output", "held"])
def test_the_rest_of_a_read_waits_as_what_is_still_in_the_socket(run, reason: str):
    def step() -> None:
        world = Slow(0.5 * MICROSECOND)
        receive = world.client.session.receive

        def stop(data: bytes) -> None:
            receive(data)
            world.transport.pause_reading(reason)

        world.client.session.receive = stop  # type: ignore[method-assign]
        world.transport.data_received(LARGE)
        world.bench.run()
        assert world.sizes == [FIRST_BYTES]
        world.transport.pause_reading("another")
        world.client.session.receive = receive  # type: ignore[method-assign]
        world.transport.resume_reading(reason)
        world.bench.run()
        assert world.sizes == [FIRST_BYTES], "one reason is left"
        world.transport.resume_reading("another")
        world.transport.pause_reading(reason)  # before its turn has come
        world.bench.run()
        assert world.sizes == [FIRST_BYTES]
        world.transport.resume_reading(reason)
        world.bench.run()
        assert b"".join(world.pieces) == LARGE
        assert world.sock.is_reading
        world.lose()

    run(step)


def test_a_large_content_that_is_under_way_does_not_wait_for_those_who_take_long(run):
    def step() -> None:
        world = with_queue()
        data = large_publish(1 << 20)
        world.transport.data_received(data[:LARGE_READ])
        world.bench.scheduler.intake.spend(ROUND_S)
        world.transport.data_received(data[LARGE_READ : 2 * LARGE_READ])
        assert world.sock.is_reading, "its octets are copied, and nobody looks at them"
        world.transport.data_received(data[2 * LARGE_READ :] + LARGE)
        assert not world.sock.is_reading, "but for what is behind it"
        world.lose()

    run(step)


def test_of_who_is_blocked_only_a_little_waits_undone(run):
    """When the alarm ends that is done at once, for everybody who waits."""

    def step() -> None:
        world = Slow(0, is_publisher=True)
        for _ in range(3):
            world.transport.data_received(LARGE)
        world.bench.alarms.update("memory", True)
        world.pieces.clear()
        world.transport.data_received(LARGE)
        assert world.sizes[0] == FIRST_BYTES
        world.lose()

    run(step)


@pytest.mark.parametrize("end", ["eof", "lost"])
def test_what_was_read_before_the_end_is_taken_in_before_it(run, end: str):
    """TLS's own goodbye comes with octets, and a reset may be noticed in between."""

    async def step() -> None:
        world = Slow(1 * MICROSECOND)
        world.transport.data_received(LARGE)
        assert not world.client.session.is_ended
        if end == "eof":
            world.transport.eof_received()
        world.lose()
        assert b"".join(world.pieces) == LARGE
        assert world.client.session.is_ended

    run(step)


def test_the_end_of_a_session_is_not_taken_in_again(run):
    def step() -> None:
        world = Slow(1 * MICROSECOND)
        world.transport.data_received(LARGE)
        world.client.session.lost("missed heartbeats")
        world.transport.abort()
        world.lose()
        assert world.sizes == [FIRST_BYTES]

    run(step)


def test_a_fault_in_the_rest_of_a_read_ends_the_connection(run):
    """As one in the read itself, which the loop answers by closing the socket."""

    def step() -> None:
        world = Slow(1 * MICROSECOND)
        world.transport.data_received(LARGE)

        def fail(data: bytes) -> None:
            raise MemoryError

        world.client.session.receive = fail  # type: ignore[method-assign]
        with pytest.raises(MemoryError):
            world.bench.run()
        assert world.sock.state == "aborted"
        world.lose()
        assert world.client.session.is_ended

    run(step)


def test_a_connection_does_not_doze_while_the_rest_of_a_read_waits(run):
    def step() -> None:
        world = Slow(1 * MICROSECOND, heartbeat=60)
        world.sock.descriptor = world.transport.descriptor = NO_DESCRIPTOR
        world.transport.data_received(LARGE)
        world.sock.options.clear()
        for now in (0, 10, 20):
            world.transport.heartbeat_due(now)
        assert world.sock.options == []
        world.bench.run()
        for now in (30, 40, 50):
            world.transport.heartbeat_due(now)
        assert world.sock.options != []
        world.lose()

    run(step)


def test_a_connection_that_ends_in_the_middle_of_a_read_takes_in_no_more(run):
    def step() -> None:
        world = Slow(1 * MICROSECOND)
        world.transport.data_received(LARGE)
        world.transport.abort()
        world.bench.run()
        assert world.sizes == [FIRST_BYTES]
        world.lose()

    run(step)


def test_a_large_read_is_not_taken_apart_at_once_while_its_channel_has_to_wait(run):
    """Of a read full of methods that nobody waits for, other connections would feel the decoding alone."""

    def step() -> None:
        world = World()
        world.open()
        count = 3 * OTHERS_BYTES // 25
        methods = [method_bytes(1, spec.Channel.Open())]
        methods += [
            method_bytes(1, spec.Queue.Declare(queue=f"q{number:05}", nowait=True))
            for number in range(count)
        ]
        world.transport.data_received(b"".join(methods))
        waiting = world.client.session._held._count
        assert HELD_MAX <= waiting < HELD_MAX + OTHERS_BYTES // 25
        assert not world.sock.is_reading
        world.transport.data_received(
            method_bytes(1, spec.Queue.Declare(queue="q00000", passive=True))
        )  # of a socket that does not stop at once
        world.bench.loop.run()
        assert len(world.bench.vhost.queues) == count
        assert world.sock.is_reading
        answers = b"".join(world.sock.written)
        assert answers.startswith(method_bytes(1, spec.Channel.OpenOk())[:11])
        assert method_bytes(1, spec.Queue.DeclareOk("q00000", 0, 0)) in answers
        world.lose()

    run(step)


class Kernel:
    """What a socket holds, for `os.readv`."""

    def __init__(self, held: bytes, fault: Exception | None = None) -> None:
        self.held = held
        self.fault = fault
        self.sizes: list[int] = []

    def readv(self, descriptor: int, rooms: tuple[memoryview]) -> int:
        (room,) = rooms
        assert descriptor == NO_DESCRIPTOR
        if self.fault is not None:
            raise self.fault
        if not self.held:
            raise BlockingIOError
        size = min(len(room), len(self.held))
        room[:size] = self.held[:size]
        self.held = self.held[size:]
        self.sizes.append(size)
        return size


def large_publish(size: int, exchange: str = "") -> bytes:
    """With frames such as are agreed on by default."""
    frames = [method_bytes(1, spec.Basic.Publish(exchange=exchange, routing_key="q"))]
    frames += content(1, bytes(range(256)) * (size // 256), None, [131_000] * (size // 131_000))
    return b"".join(frames)


def with_queue(*, is_secure: bool = False) -> World:
    """A connection that has declared a queue, and has published."""
    world = World(FakeSocketTransport(NO_DESCRIPTOR, is_secure=is_secure), default_mode="cached")
    world.open()
    world.transport.data_received(
        method_bytes(1, spec.Channel.Open())
        + method_bytes(1, spec.Queue.Declare(queue="q"))
        + publish_bytes(1, "", "nobody's", b"")
    )
    world.bench.run()
    world.sock.written.clear()
    return world


def test_a_large_content_is_read_to_where_it_belongs(run, monkeypatch):
    def step() -> None:
        world = with_queue()
        data = large_publish(1 << 20)
        behind = publish_bytes(1, "", "q", b"behind it")
        kernel = Kernel(data[LARGE_READ:] + behind)
        monkeypatch.setattr(os, "readv", kernel.readv)
        heard, reads = world.transport.bytes_received, world.transport.reads
        world.transport.data_received(data[:LARGE_READ])
        assert kernel.sizes
        assert len(kernel.held) < LARGE_READ + len(behind), "what is left is hardly worth it"
        assert world.transport.bytes_received - heard == LARGE_READ + sum(kernel.sizes)
        assert world.transport.reads - reads == 1 + len(kernel.sizes)
        if kernel.held:  # the compiled codec takes none of the next content
            world.transport.data_received(kernel.held)
        world.bench.run()
        first, second = world.bench.vhost.queues["q"].levels[0].ram.messages
        assert first.raw == data[data.index(b"\xce\x02") + 1 :]
        assert second.raw == behind[behind.index(b"\xce\x02") + 1 :]
        world.lose()

    run(step)


def test_so_much_of_a_large_content_and_no_more_is_read_in_a_turn(run, monkeypatch):
    def step() -> None:
        world = with_queue()
        data = large_publish(16 << 20)
        at = 3 << 20  # from where on there is memory for all of it
        world.transport.data_received(data[:at])
        world.bench.run()
        kernel = Kernel(data[at + LARGE_READ :])
        monkeypatch.setattr(os, "readv", kernel.readv)
        for turn in range(2):
            first = data[at : at + LARGE_READ] if not turn else kernel.held[:LARGE_READ]
            kernel.held = kernel.held[LARGE_READ:] if turn else kernel.held
            kernel.sizes.clear()
            world.transport.data_received(first)
            assert IN_PLACE_BYTES - LARGE_READ < LARGE_READ + sum(kernel.sizes) <= IN_PLACE_BYTES
            assert not world.sock.is_reading
            world.bench.run()
            assert world.sock.is_reading
        world.lose()

    run(step)


@pytest.mark.parametrize("reason", ["tls", "small", "paused", "nothing", "end", "broken", "other"])
def test_what_the_loop_has_to_read_is_left_to_it(run, monkeypatch, reason):
    def step() -> None:
        world = with_queue(is_secure=reason == "tls")
        data = large_publish(1 << 20)
        first = LARGE_READ - 1 if reason == "small" else LARGE_READ
        if reason == "other":
            data = publish_bytes(1, "", "q", b"x" * 100) * (len(data) // 150)
        fault = ConnectionResetError() if reason == "broken" else None
        kernel = Kernel(b"" if reason == "nothing" else data[first:], fault)
        monkeypatch.setattr(os, "readv", (lambda *_: 0) if reason == "end" else kernel.readv)
        if reason == "paused":
            world.transport.pause_reading("alarm")
        heard = world.transport.bytes_received
        world.transport.data_received(data[:first])
        assert world.transport.bytes_received - heard == first
        assert not kernel.sizes
        world.bench.run()
        monkeypatch.undo()
        world.transport.data_received(data[first:])
        world.transport.resume_reading("alarm")
        world.bench.run()
        assert world.bench.vhost.queues["q"].ready_count >= 1
        assert world.sock.state == "open"
        world.lose()

    run(step)


def test_what_is_wrong_with_a_large_content_is_answered_as_ever(run, monkeypatch):
    def step() -> None:
        world = with_queue()
        for data, answer in (
            (large_publish(1 << 20, "nowhere"), b"no exchange 'nowhere'"),
            (large_publish(1 << 20)[:-1] + b"?" + HEARTBEAT * 50_000, b"FRAME_ERROR"),
        ):
            world.sock.written.clear()
            kernel = Kernel(data[LARGE_READ:])
            monkeypatch.setattr(os, "readv", kernel.readv)
            world.transport.data_received(data[:LARGE_READ])
            assert kernel.sizes
            world.transport.data_received(kernel.held)
            world.bench.run()
            assert answer in b"".join(world.sock.written)
            world.transport.data_received(
                method_bytes(1, spec.Channel.CloseOk()) + method_bytes(1, spec.Channel.Open())
            )
        world.lose()

    run(step)


@pytest.fixture
def pair():
    """Two connected sockets: ours, whose buffers are small, and the client's."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    theirs.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def test_much_output_goes_to_the_socket_and_the_rest_to_the_loop(run, pair):
    ours, theirs = pair

    def step() -> None:
        world = World(FakeSocketTransport(ours.fileno()))
        world.open()
        output = bytes(range(256)) * (LARGE_WRITE // 256) * 16
        world.client.session.write(output)
        world.bench.run()
        (rest,) = world.sock.written
        sent = theirs.recv(len(output))
        assert sent
        assert sent + rest == output
        world.lose()

    run(step)


@pytest.mark.parametrize("sizes", [[LARGE_WRITE] * 20, [100_000, 3, 4 << 20, 7], [1] * 70_000])
def test_large_parts_are_written_as_they_lie_and_nothing_is_lost(run, pair, sizes: list[int]):
    ours, theirs = pair

    def step() -> None:
        world = World(FakeSocketTransport(ours.fileno()))
        world.open()
        parts = [bytes((number % 251,)) * size for number, size in enumerate(sizes)]
        world.client.session.write_parts(parts)
        assert world.client.session.pending_bytes == sum(sizes)
        world.bench.run()
        got = b""
        with contextlib.suppress(BlockingIOError):
            while True:
                got += theirs.recv(1 << 20)
        assert got
        assert got + b"".join(world.sock.written) == b"".join(parts)
        world.lose()

    run(step)


@pytest.mark.parametrize("reason", ["tls", "small", "buffered", "broken"])
def test_output_goes_to_the_loop_that_cannot_go_past_it(run, pair, reason):
    ours, theirs = pair

    def step() -> None:
        descriptor = 1 << 20 if reason == "broken" else ours.fileno()
        world = World(FakeSocketTransport(descriptor, is_secure=reason == "tls"))
        world.open()
        world.sock.buffered = 1 if reason == "buffered" else 0
        output = b"x" * (LARGE_WRITE - (reason == "small"))
        world.client.session.write(output)
        world.bench.run()
        assert world.sock.written == [output]
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
        world.lose()

    run(step)


def test_a_full_buffer_stops_deliveries_until_it_has_drained(run):
    def step() -> None:
        world = World()
        world.open()
        world.transport.pause_writing()
        assert world.client.session.is_congested
        world.client.session.write(b"reply")
        world.bench.run()
        assert world.client.session.is_congested
        began = world.transport.unread_since_s
        assert began is not None
        assert began <= world.client.session.scheduler.monotonic()
        world.transport.resume_writing()
        assert not world.client.session.is_congested
        assert world.transport.unread_since_s is None
        world.lose()

    run(step)


def test_who_does_not_read_its_answers_is_not_read_until_it_does(run):
    def step() -> None:
        world = World()
        world.open()
        world.transport.pause_writing()
        world.client.session.write(b"a few answers")
        world.bench.run()
        assert world.sock.is_reading
        world.sock.buffered = UNREAD_PAUSE + 1
        world.client.session.write(b"one more")
        world.bench.run()
        assert not world.sock.is_reading
        world.transport.resume_writing()
        assert world.sock.is_reading
        world.lose()

    run(step)


def test_who_reads_nothing_at_all_is_dropped(run):
    def step() -> None:
        world = World()
        world.open()
        world.transport.pause_writing()
        world.sock.buffered = WRITE_HARD_LIMIT + 1
        world.client.session.write(b"x")
        world.bench.run()
        assert world.sock.state == "aborted"
        world.lose()

    run(step)


def test_a_large_write_that_is_under_way_is_no_reason_to_stop_reading_or_to_drop_anybody(run):
    def step() -> None:
        world = World()
        world.open()
        write = world.sock.writelines

        def fill(parts: list[bytes]) -> None:
            write(parts)
            world.sock.buffered = 2 * WRITE_HARD_LIMIT
            world.transport.pause_writing()

        world.sock.writelines = fill  # type: ignore[method-assign]
        world.client.session.write_parts([b"x" * LARGE_WRITE] * 3)
        world.bench.run()
        for above, state, is_reading in [
            (0, "open", True),
            (UNREAD_PAUSE, "open", True),
            (UNREAD_PAUSE + 1, "open", False),
            (WRITE_HARD_LIMIT, "open", False),
            (WRITE_HARD_LIMIT + 1, "aborted", False),
        ]:
            world.sock.buffered = 2 * WRITE_HARD_LIMIT + above
            world.client.session.write(b"an answer")
            world.bench.run()
            assert (world.sock.state, world.sock.is_reading) == (state, is_reading)
        world.lose()

    run(step)


def test_what_was_read_of_a_large_write_is_no_room_for_answers(run):
    def step() -> None:
        world = World()
        world.open()
        world.transport.pause_writing()
        world.transport._filled = 2 * WRITE_HARD_LIMIT
        for unread, is_reading in [(UNREAD_PAUSE, True), (2 * UNREAD_PAUSE + 1, False)]:
            world.sock.buffered = unread
            world.client.session.write(b"an answer")
            world.bench.run()
            assert world.sock.is_reading == is_reading
        world.lose()

    run(step)


def test_nodelay_is_withdrawn_only_when_asked(run):
    def step() -> None:
        usual, off = World(), World(is_nodelay=False)
        for world in (usual, off):
            world.lose()
        assert usual.sock.options == []
        assert off.sock.options == [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)]

    run(step)


def test_a_handshake_that_does_not_end_is_ended(run):
    async def steps() -> None:
        slow, quick = World(handshake_timeout_s=0.0), World(handshake_timeout_s=0.0)
        quick.open()
        for _ in range(3):
            await asyncio.sleep(0)
        assert (slow.sock.state, quick.sock.state) == ("aborted", "open")
        ((_, code, reason, _),) = slow.bench.observer.named("connection_failed")
        assert (code, reason) == (0, "the handshake took longer than 0 s")
        slow.lose()
        quick.lose()
        assert not slow.bench.observer.named("connection_closed")

    run(steps)


@pytest.mark.parametrize("first", [b"", PROTOCOL_HEADER[:4], PROTOCOL_HEADER])
@pytest.mark.parametrize("error", [None, ConnectionResetError("reset")])
def test_who_leaves_while_it_logs_in_is_told_of_once(run, first, error):
    def step() -> None:
        world = World()
        if first:
            world.transport.data_received(first)
        world.bench.run()
        if error is None:
            world.transport.eof_received()
        world.transport.connection_lost(error)
        found = [reason for *_, reason in world.bench.observer.named("connection_closed")]
        said = str(error) if error else "client unexpectedly closed TCP connection"
        assert found == ([said] if first else []), "who says nothing looks whether the port is open"

    run(step)


def test_who_was_refused_is_told_of_by_that_alone(run):
    def step() -> None:
        world = World()
        world.transport.data_received(b"GET / HTTP/1.1\r\n")
        world.bench.run()
        world.transport.connection_lost(None)
        assert not world.bench.observer.named("connection_closed")

    run(step)


def test_closing_later_writes_first(run):
    async def steps() -> None:
        world = World()
        world.open()
        world.client.session.write(b"bye")
        world.transport.close_after(1000.0)
        world.transport.close_after(0.0)
        for _ in range(3):
            await asyncio.sleep(0)
        assert (world.sock.written, world.sock.state) == ([b"bye"], "closed")
        world.lose()

    run(steps)


def test_abort_resets(run):
    def step() -> None:
        world = World()
        world.transport.abort()
        assert world.sock.state == "aborted"
        assert [option for _, option, _ in world.sock.options] == [socket.SO_LINGER]
        world.lose()

    run(step)


def test_the_end_is_told_with_its_reason(run):
    def step() -> None:
        world = World()
        world.open()
        world.transport.connection_lost(ConnectionResetError("reset"))
        ((_, user, vhost, reason),) = world.bench.observer.named("connection_closed")
        assert (user, vhost, reason) == ("guest", "/", "reset")
        assert world.client.session.wire is None
        assert not world.transport.eof_received()

    run(step)


def test_a_heartbeat_goes_out_after_half_an_interval_of_silence(run):
    def step() -> None:
        world = World()
        world.open(heartbeat=60)
        sent_at = []
        # As the node looks: four times in an interval, a second early or late.
        for now in (100.0, 114.1, 129.0, 144.9, 158.0, 173.9, 187.0, 202.9, 216.0):
            world.transport.data_received(HEARTBEAT)
            before = len(world.sock.written)
            world.transport.heartbeat_due(now)
            if len(world.sock.written) > before:
                sent_at.append(now)
        assert sent_at == [129.0, 158.0, 187.0, 216.0]
        world.client.session.write(b"x")
        world.bench.run()
        world.transport.heartbeat_due(246.0)
        assert world.sock.written[-1] == b"x", "what was written spares the heartbeat"
        world.lose()

    run(step)


def test_a_peer_silent_for_two_intervals_is_dropped(run):
    def step() -> None:
        world = World()
        world.open(heartbeat=10)
        world.transport.heartbeat_due(100.0)
        world.transport.heartbeat_due(110.0)
        world.transport.heartbeat_due(119.0)
        assert world.sock.state == "open"
        world.transport.heartbeat_due(120.0)
        assert world.sock.state == "aborted"
        ((*_, reason),) = world.bench.observer.named("connection_closed")
        assert reason == "missed heartbeats from client, timeout: 10s"
        # With a reset: what it was delivered is others' now, and the kernel sends it no more.
        assert (socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0") in world.sock.options
        world.lose()

    run(step)


@pytest.mark.parametrize("heard", [0.3, 0.5, 0.75, 0.999])
def test_a_peer_is_not_dropped_before_two_intervals_have_passed_since_it_was_heard(run, heard):
    def step() -> None:
        world = World()
        world.open(heartbeat=1)
        now, looks = 100.0, 0
        while world.sock.state == "open":
            if now >= 100 + heard and not looks:
                world.transport.data_received(HEARTBEAT)
                looks = 1
            world.transport.heartbeat_due(now)
            now += 0.25
        assert 2.0 <= now - 0.25 - (100 + heard) <= 2.5
        world.lose()

    run(step)


def test_a_peer_that_we_do_not_read_is_not_called_silent(run):
    def step() -> None:
        world = World()
        world.open(heartbeat=10)
        world.transport.pause_reading("alarm")
        for now in range(100, 200, 10):
            world.transport.heartbeat_due(float(now))
        assert world.sock.state == "open"
        world.lose()

    run(step)


def test_no_heartbeats_were_agreed(run):
    def step() -> None:
        world = World()
        world.open(heartbeat=0)
        for now in range(100, 1000, 10):
            world.transport.heartbeat_due(float(now))
        assert (world.sock.written, world.sock.state) == ([], "open")
        world.lose()

    run(step)


class Silent:
    """A connection with heartbeats, and the other end of its real socket."""

    def __init__(self, heartbeat: int = 60) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        self.peer = socket.create_connection(listening.getsockname())
        self.own, _ = listening.accept()
        listening.close()
        self.own.setblocking(False)
        sock = FakeSocketTransport(self.own.fileno())
        self.world = World(sock)
        self.world.open(heartbeat=heartbeat)
        sock.setsockopt = self.own.setsockopt  # type: ignore[method-assign]
        self.transport = self.world.transport

    def low_water(self) -> int:
        return self.own.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)

    def is_told(self, wait_s: float = 0.0) -> bool:
        """Whether a loop would be told of it."""
        return bool(select.select([self.own], [], [], wait_s)[0])

    def doze(self) -> None:
        """It was used a moment ago, and no more since."""
        self.transport.heartbeat_due(100.0)
        assert self.low_water() == 9

    def end(self) -> None:
        self.world.lose()
        self.peer.close()
        self.own.close()


def test_the_heartbeats_of_a_silent_connection_are_read_by_the_looks(run):
    def step() -> None:
        silent = Silent()
        assert silent.low_water() == 1
        silent.doze()
        for now in (130.0, 160.0, 190.0, 220.0, 250.0, 280.0, 310.0):
            silent.peer.sendall(HEARTBEAT)
            assert not silent.is_told()
            turns = silent.world.bench.scheduler.turns
            heard = silent.transport.bytes_received
            silent.transport.heartbeat_due(now)
            assert silent.transport.bytes_received == heard + 8
            assert silent.transport.heartbeat_octets % 8 == 0 < silent.transport.heartbeat_octets
        assert (silent.world.sock.state, silent.low_water()) == ("open", 9)
        assert silent.world.bench.scheduler.turns == turns
        silent.transport.heartbeat_due(400.0)
        silent.transport.heartbeat_due(430.0)
        assert silent.world.sock.state == "aborted"
        silent.end()

    run(step)


def test_a_silent_connection_is_sent_its_heartbeats_straight(run):
    def step() -> None:
        silent = Silent()
        assert silent.transport.looks(100.0) == 4
        silent.doze()
        assert silent.transport.looks(130.0) == 2
        written, sent = len(silent.world.sock.written), silent.transport.bytes_sent
        for now in (130.0, 160.0):
            silent.transport.heartbeat_due(now)
            assert silent.peer.recv(100) == HEARTBEAT
        assert len(silent.world.sock.written) == written
        assert silent.transport.bytes_sent == sent + 16
        silent.world.sock.buffered = 5
        silent.transport.heartbeat_due(190.0)
        assert silent.world.sock.written[written:] == [HEARTBEAT], "behind what waits"
        silent.end()

    run(step)


@pytest.mark.parametrize("fault", ["full", "gone"])
def test_a_heartbeat_that_the_socket_does_not_take_is_left_to_the_loop(run, fault):
    def step() -> None:
        silent = Silent()
        silent.doze()
        if fault == "full":
            with contextlib.suppress(BlockingIOError):
                while True:
                    silent.own.send(bytes(1 << 20))
        else:
            silent.own.shutdown(socket.SHUT_WR)
        written = len(silent.world.sock.written)
        silent.transport.heartbeat_due(130.0)
        assert silent.world.sock.written[written:] == [HEARTBEAT]
        silent.end()

    run(step)


@pytest.mark.parametrize(("interval", "looks"), [(19, 4), (20, 2), (600, 2)])
def test_only_long_intervals_have_few_looks(run, interval, looks):
    def step() -> None:
        silent = Silent(interval)
        silent.doze()
        assert silent.transport.looks(100.0 + interval / 2) == looks
        silent.end()

    run(step)


@pytest.mark.parametrize("used_at", range(0, 60, 7))
def test_a_silent_connection_that_was_used_once_hears_of_us_within_an_interval(run, used_at):
    """pika looks for octets every 65 seconds, where the interval is 60."""

    def step() -> None:
        silent = Silent()
        bench, sock = silent.world.bench, silent.world.sock
        silent.doze()
        due, heard = 115.0, 0.0
        for second in range(100, 300):
            if second == 160 + used_at:
                silent.peer.sendall(method_bytes(1, spec.Channel.Open()))
                assert silent.is_told(1.0)
                silent.transport.data_received(silent.own.recv(100))
                bench.run()
                heard = float(second)
            if second >= due:
                now = due
                due = now + 60 // silent.transport.looks(now)
                before = silent.transport.bytes_sent
                silent.transport.heartbeat_due(now)
                if silent.transport.bytes_sent > before:
                    heard = now
                silent.transport._heard_at = now  # that one is not silent
            assert not heard or second - heard <= 60
        assert sock.state == "open"
        silent.end()

    run(step)


@pytest.mark.parametrize("before", [b"", HEARTBEAT], ids=["alone", "behind a heartbeat"])
@pytest.mark.parametrize("by_look", [False, True], ids=["told", "found by a look"])
def test_what_comes_on_a_silent_connection_is_told_of_and_ends_that(run, before, by_look):
    def step() -> None:
        silent = Silent()
        silent.doze()
        silent.peer.sendall(before + method_bytes(1, spec.Channel.Open()))
        assert silent.is_told(1.0)
        if by_look:
            silent.transport.heartbeat_due(130.0)
        else:
            silent.transport.data_received(silent.own.recv(100))
        assert silent.low_water() == 1
        silent.world.bench.run()
        assert silent.world.sock.written[-1][7:11] == b"\0\x14\0\x0b", "channel.open-ok"
        silent.end()

    run(step)


def test_a_connection_in_use_does_not_doze(run):
    def step() -> None:
        silent = Silent()
        for now in (100.0, 115.0, 130.0):
            for _ in range(FEW_READS + 1):
                silent.transport.data_received(HEARTBEAT)
            silent.transport.heartbeat_due(now)
            assert silent.low_water() == 1
        silent.end()

    run(step)


def test_the_end_of_a_silent_connection_is_told_of(run):
    def step() -> None:
        silent = Silent()
        silent.doze()
        silent.peer.close()
        assert silent.is_told(1.0)
        silent.transport.heartbeat_due(130.0)
        assert silent.world.sock.state == "open", "the loop finds out by itself"
        silent.end()

    run(step)


def test_what_is_shorter_than_a_heartbeat_waits_for_its_rest(run):
    def step() -> None:
        silent = Silent()
        silent.doze()
        frame = method_bytes(1, spec.Channel.Open())
        silent.peer.sendall(frame[:5])
        assert not silent.is_told()
        silent.peer.sendall(frame[5:])
        assert silent.is_told(1.0)
        silent.end()

    run(step)


def test_a_connection_that_is_silent_in_the_middle_of_a_frame_is_told_of_each_octet(run):
    def step() -> None:
        silent = Silent()
        frame = method_bytes(1, spec.Channel.Open())
        silent.transport.data_received(frame[:-1])
        for now in (100.0, 115.0, 130.0):
            silent.transport.heartbeat_due(now)
        silent.peer.sendall(frame[-1:])
        assert silent.is_told(1.0)
        silent.end()

    run(step)


def test_a_connection_whose_octets_another_reads_does_not_doze(run):
    def step() -> None:
        world = World(FakeSocketTransport(7, is_secure=True))
        world.open(heartbeat=60)
        for now in (100.0, 115.0, 130.0):
            world.transport.heartbeat_due(now)
        assert world.sock.options == []
        world.lose()

    run(step)


@pytest.mark.parametrize("no_ack", [True, False])
def test_a_client_that_has_ended_its_side_is_delivered_nothing_more(run, no_ack):
    """RabbitMQ 3.10.8, live: its consumers are gone at once, whatever of its output is unread."""

    def step() -> None:
        world = World()
        world.open()
        for method in (
            spec.Channel.Open(),
            spec.Queue.Declare(queue="q"),
            spec.Basic.Consume(queue="q", no_ack=no_ack),
        ):
            world.transport.data_received(method_bytes(1, method))
            world.bench.run()
        publisher = world.bench.connect(1)
        world.sock.buffered = 1000  # asyncio tells of the end of the socket once this is read
        if not world.transport.eof_received():
            world.sock.close()
        world.bench.run()
        publisher.send(publish_bytes(1, "", "q", b"x") * 3)
        world.bench.run()
        queue = world.bench.vhost.queues["q"]
        assert (queue.ready_count, queue.consumer_count) == (3, 0)
        world.lose()

    run(step)


def test_a_client_that_has_ended_its_side_has_a_while_to_read(run, monkeypatch):
    monkeypatch.setattr("burrowmq.broker.sockets.transport.CLOSE_GRACE_S", 0.02)

    async def step() -> None:
        world = World()
        world.open()
        world.sock.buffered = 1000
        assert not world.transport.eof_received()
        world.sock.close()
        async with asyncio.timeout(5):
            while world.sock.state != "aborted":  # noqa: ASYNC110 - a timer's work, which sets nothing
                await asyncio.sleep(0.005)
        world.lose()

    run(step)
