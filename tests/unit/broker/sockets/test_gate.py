"""Gate: a limit on sockets on their way in, and who is told of those that do not come through."""

from __future__ import annotations

from burrowmq.broker.sockets.gate import Gate
from tests.support.bench.observer import RecordingObserver


class Socket:
    def __init__(self, name: str) -> None:
        self.peer_name = name
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def test_one_too_many_is_named_and_a_place_is_free_again() -> None:
    observer = RecordingObserver()
    gate = Gate(1, "letter", observer)
    first, second = Socket("a:1"), Socket("b:2")
    assert gate.enter(first)
    assert not gate.enter(second)
    assert observer.named("connection_failed") == [("b:2", 0, "1 letters are in progress", "")]
    gate.leave(first)
    gate.leave(first)  # a second time does no harm
    assert gate.enter(second)
    assert gate.in_progress == 1


def test_a_refused_socket_has_left() -> None:
    observer = RecordingObserver()
    gate = Gate(5, "letter", observer)
    socket = Socket("a:1")
    gate.enter(socket)
    gate.refused(socket, "why")
    assert gate.in_progress == 0
    assert [text for _, _, text, _ in observer.named("connection_failed")] == ["why"]


def test_closing_ends_those_on_their_way() -> None:
    gate = Gate(5, "letter", RecordingObserver())
    sockets = [Socket("a:1"), Socket("b:2")]
    for each in sockets:
        gate.enter(each)
    gate.leave(sockets[0])
    gate.close()
    assert [each.is_aborted for each in sockets] == [False, True]
    assert gate.in_progress == 0
