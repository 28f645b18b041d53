"""burrowmq.broker.imports.move: an end is found, whatever waits on the way (kills and power cuts: test_move_*.py)."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from burrowmq.broker.imports import inbox, move
from burrowmq.storage.names import QueueNames
from tests.simulation.store_world import OPTIONS
from tests.support.import_bench import Power
from tests.support.messages import message


@pytest.mark.parametrize("has_copied", [False, True])
@pytest.mark.parametrize("is_single", [False, True])
def test_an_answer_behind_more_than_may_wait_here_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_copied: bool, is_single: bool
) -> None:
    """Nothing is read while too much waits: a few large messages, and behind them how many there are."""
    monkeypatch.setattr(inbox, "UNREAD_BYTES", 1000)
    for module in (inbox, move):
        monkeypatch.setattr(module, "REPLY_S", 0.2)
    left = [message(b"%d:" % number + b"x" * 900, persistent=True) for number in range(9)]
    arguments = {"x-single-active-consumer": True} if is_single else {}
    power = Power(
        tmp_path / "j", left, options=OPTIONS, is_slow=True, is_copy=has_copied, arguments=arguments
    )
    if has_copied:
        power.start().move()
        power.is_copy = False
    node = power.start()
    node.move()
    assert power.left == []
    assert [body[:1] for body in node.drain()] == [b"%d" % number for number in range(9)]


def test_what_the_disk_refuses_here_stays_there(tmp_path: Path) -> None:
    """Until it has it: what is only in memory here goes with a kill."""
    left = [message(b"%d:" % number, persistent=True) for number in range(9)]
    power = Power(tmp_path / "j", left, options=OPTIONS, batch=3)
    node = power.start()

    def told(names: QueueNames, kind: str, reason: str) -> None:
        node.found.note_blocked(is_blocked=bool(reason))

    node.engine.on_queue_fault = told
    power.disk.fail("pwrite", errno.EIO, times=1 << 30, path_part="/queues/")
    for _ in range(2):
        with pytest.raises(inbox.Lost, match="the disk refuses"):
            node.move()
        assert node.found.is_blocked
        assert len(power.left) == 9
    power.disk.heal()
    node.engine.idle()
    assert not node.found.is_blocked
    node.move()
    assert power.left == []
    assert [body[:1] for body in node.drain()] == [b"%d" % number for number in range(9)]


def test_nothing_more_goes_to_a_queue_that_is_declared_anew_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has nothing of what is known of the one before: the next attempt begins anew."""
    left = [message(b"%d:" % number, persistent=True) for number in range(9)]
    power = Power(tmp_path / "j", left, options=OPTIONS, batch=3)
    node = power.start()

    async def declared_anew(count: int) -> None:
        node.found.made_ms += len(power.left) == 6

    monkeypatch.setattr(node, "may_go_on", declared_anew)
    with pytest.raises(inbox.Lost, match="declared anew"):
        node.move()
    assert len(power.left) == 6
    assert [body[:1] for body in node.drain()] == [b"0", b"1", b"2"]
