"""Heartbeats of links over sockets: what another broker is sent, and when it is called silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from burrowmq.broker.link.tcp import TcpLink
from burrowmq.protocol.constants import HEARTBEAT_FRAME


class Agreed:
    """A client connection that has agreed on an interval."""

    heartbeat_s = 10
    state = "running"
    out = b""

    def receive_data(self, data: bytes) -> list[Any]:
        return []


class World:
    """A link, with the loop's timer, the socket and the owner that it has."""

    def __init__(self) -> None:
        self.beats: list[Callable[[], None]] = []
        self.written: list[bytes] = []
        self.lost_for: list[str] = []
        self.is_aborted = False
        self.link = TcpLink(cast("Any", self), cast("Any", Agreed()), cast("Any", self))
        self.link.connection_made(cast("Any", self))
        self.link.data_received(HEARTBEAT_FRAME)

    def beat(self, times: int = 1) -> None:
        """Half an interval passes."""
        for _ in range(times):
            self.beats.pop()()

    # The loop's, whose timers are not cancelled: who is gone asks for none.
    def call_later(self, delay_s: float, call: Callable[[], None]) -> World:
        assert delay_s == 5
        self.beats.append(call)
        return self

    def cancel(self) -> None:
        self.beats.clear()

    # The transport's.
    def set_write_buffer_limits(self, **_: int) -> None: ...

    def get_extra_info(self, _: str) -> None: ...

    def is_closing(self) -> bool:
        return self.is_aborted

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def abort(self) -> None:
        self.is_aborted = True

    # The owner's.
    def lost(self, _: object, reason: str) -> None:
        self.lost_for.append(reason)


def test_a_broker_that_is_silent_for_two_intervals_is_gone() -> None:
    world = World()
    world.beat(4)
    assert world.written == [HEARTBEAT_FRAME] * 4
    assert not world.lost_for
    world.link.data_received(HEARTBEAT_FRAME)
    world.beat(4)
    assert not world.lost_for, "an octet begins it anew"
    world.beat()
    assert world.lost_for == ["missed heartbeats, timeout: 10s"]
    assert world.is_aborted
    assert not world.beats, "nothing is left of it"
    world.link.connection_lost(None)
    assert len(world.lost_for) == 1


def test_a_broker_that_is_not_read_is_not_called_silent() -> None:
    world = World()
    world.link.pause_reading()
    world.beat(20)
    world.link.resume_reading()
    world.beat(3)
    assert not world.lost_for
    world.beat()
    assert world.lost_for
