"""PendingSockets: a limit on pending sockets, and a word to the operator about those that fail."""

from __future__ import annotations

from burrowmq.broker.sockets.pending import PendingSockets
from tests.support.bench.observer import RecordingObserver


class Socket:
    def __init__(self, name: str) -> None:
        self.peer_name = name
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def test_one_too_many_is_named_and_a_place_is_free_again() -> None:
    observer = RecordingObserver()
    pending = PendingSockets(1, "letter", observer)
    first, second = Socket("a:1"), Socket("b:2")
    assert pending.enter(first)
    assert not pending.enter(second)
    assert observer.named("connection_failed") == [("b:2", 0, "1 letters are in progress", "")]
    pending.leave(first)
    pending.leave(first)  # a second time does no harm
    assert pending.enter(second)
    assert pending.in_progress == 1


def test_a_refused_socket_has_left() -> None:
    observer = RecordingObserver()
    pending = PendingSockets(5, "letter", observer)
    socket = Socket("a:1")
    pending.enter(socket)
    pending.refused(socket, "why")
    assert pending.in_progress == 0
    assert [text for _, _, text, _ in observer.named("connection_failed")] == ["why"]


def test_closing_ends_those_on_their_way() -> None:
    pending = PendingSockets(5, "letter", RecordingObserver())
    sockets = [Socket("a:1"), Socket("b:2")]
    for each in sockets:
        pending.enter(each)
    pending.leave(sockets[0])
    pending.close()
    assert [each.is_aborted for each in sockets] == [False, True]
    assert pending.in_progress == 0
