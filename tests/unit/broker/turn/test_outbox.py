"""burrowmq.broker.turn.outbox: what many connections write goes to their sockets with one call, and each is told."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from burrowmq.broker.turn.outbox import Outbox, SendEach, compiled_send

LARGE = 8 * 1024 * 1024


class Connection:
    """One that takes its output back."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.told: list[tuple[bytes, int]] = []
        self.fault: Exception | None = None

    def sent(self, data: bytes, size: int) -> None:
        self.told.append((data, size))
        if self.fault is not None:
            raise self.fault


class World:
    def __init__(self, send_each: SendEach | None) -> None:
        self.reported: list[Exception] = []
        self.outbox = Outbox(self.reported.append, send_each)


@pytest.fixture
def send_each() -> SendEach:
    found = compiled_send()
    if found is None:
        pytest.skip("_send_c is not compiled here, or BURROWMQ_PURE=1 forbids it")
    return found


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    """Three sockets that do not block, and their other ends."""
    made = [socket.socketpair() for _ in range(3)]
    for ours, theirs in made:
        ours.setblocking(False)
        theirs.setblocking(False)
    yield made
    for ours, theirs in made:
        ours.close()
        theirs.close()


def test_each_socket_gets_its_own_and_each_sender_is_told(
    pairs: list[tuple[socket.socket, socket.socket]], send_each: SendEach
) -> None:
    world = World(send_each)
    connections = [Connection(ours.fileno()) for ours, _ in pairs]
    world.outbox.open()
    for number, connection in enumerate(connections):
        world.outbox.put(connection, b"%d" % number * (number + 1))
    assert not any(connection.told for connection in connections)
    world.outbox.close()
    assert [theirs.recv(100) for _, theirs in pairs] == [b"0", b"11", b"222"]
    assert [each.told for each in connections] == [[(b"0", 1)], [(b"11", 2)], [(b"222", 3)]]
    assert not world.outbox.is_open
    world.outbox.close()
    assert [len(each.told) for each in connections] == [1, 1, 1], "once"


def test_what_a_socket_does_not_take_is_the_senders_again(
    pairs: list[tuple[socket.socket, socket.socket]], send_each: SendEach
) -> None:
    world = World(send_each)
    slow, gone, closed = (Connection(ours.fileno()) for ours, _ in pairs)
    pairs[1][1].close()
    closed.descriptor = -1
    world.outbox.open()
    world.outbox.put(slow, bytes(LARGE))
    world.outbox.put(gone, b"nobody reads this")  # and no signal ends the process
    world.outbox.put(closed, b"nor this")
    world.outbox.close()
    ((_, taken),) = slow.told
    assert 0 < taken < LARGE
    world.outbox.open()
    world.outbox.put(slow, b"more")
    world.outbox.close()
    assert slow.told[1:] == [(b"more", -1)]
    assert gone.told == [(b"nobody reads this", -1)]
    assert closed.told == [(b"nor this", -1)]


def test_a_descriptor_that_has_become_a_file_is_not_written_to(
    send_each: SendEach, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("outbox") / "index"
    with path.open("wb") as file:
        assert send_each([file.fileno()], [b"confirm"]) == [-1]
    assert path.read_bytes() == b""


def test_descriptors_and_octets_are_as_many(send_each: SendEach) -> None:
    with pytest.raises(ValueError, match="as many descriptors as octets"):
        send_each([1], [])
    with pytest.raises(TypeError):
        send_each([1], ["text"])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        send_each([1], [None])  # type: ignore[list-item]
    assert send_each([], []) == []


def test_what_one_sender_raises_is_reported_and_the_others_are_told() -> None:
    world = World(lambda descriptors, octets: [len(each) for each in octets])
    first, second = Connection(1), Connection(2)
    first.fault = KeyError("a bug")
    world.outbox.open()
    world.outbox.put(first, b"a")
    world.outbox.put(second, b"bc")
    world.outbox.close()
    assert world.reported == [first.fault]
    assert second.told == [(b"bc", 2)]


def test_where_nothing_could_be_sent_together_each_sends_its_own() -> None:
    fault = MemoryError()

    def send_each(descriptors: list[int], octets: list[bytes]) -> list[int]:
        raise fault

    world = World(send_each)
    connections = [Connection(1), Connection(2)]
    world.outbox.open()
    for connection in connections:
        world.outbox.put(connection, b"a")
    world.outbox.close()
    assert world.reported == [fault]
    assert [each.told for each in connections] == [[(b"a", -1)]] * 2


def test_who_puts_something_while_the_others_are_told_finds_it_closed() -> None:
    world = World(lambda descriptors, octets: [len(each) for each in octets])
    seen: list[bool] = []

    class Curious(Connection):
        def sent(self, data: bytes, size: int) -> None:
            seen.append(world.outbox.is_open)

    world.outbox.open()
    world.outbox.put(Curious(1), b"a")
    world.outbox.close()
    assert seen == [False]


def test_without_the_compiled_part_it_never_opens() -> None:
    world = World(None)
    world.outbox.open()
    assert not world.outbox.is_open
    world.outbox.close()


def test_the_interpreted_broker_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURROWMQ_PURE", "1")
    assert compiled_send() is None
