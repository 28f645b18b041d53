"""scrub: what it says before a pass, while one is under way, and after it."""

from __future__ import annotations

import dataclasses

import pytest

from burrowmq.storage.engine import Engine
from burrowmq.storage.types import ScrubPass, ScrubStatus
from tests.support.served import Served

DONE = ScrubPass(began_ms=1_000, ended_ms=61_000, bytes=5 << 20, found=0, unread=0)


def said(served: Served, monkeypatch: pytest.MonkeyPatch, status: ScrubStatus) -> list[str]:
    monkeypatch.setattr(Engine, "scrub", status)
    output = served.ctl("scrub")
    assert output.code == 0
    lines = output.out.splitlines()
    assert lines[0].startswith("Asking for the check of everything that is stored on node")
    return lines[1:]


def test_it_begins_a_pass(served: Served) -> None:
    output = served.ctl("scrub", "--start")
    assert output.code == 0
    assert "Starting the check of everything that is stored" in output.out
    assert "Last pass: ended " in output.out
    assert served.node.engine.scrub.last is not None
    assert '"last_complete":{"began_ms":' in served.ctl("scrub", "--formatter", "json").out


def test_it_says_how_far_it_is(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    (first, second) = said(served, monkeypatch, ScrubStatus())
    assert "one begins when somebody asks" in first
    assert second == "No pass has read everything yet"
    running = ScrubStatus(
        is_running=True,
        period_s=100.0,
        bytes_per_s=2048,
        began_ms=5000,
        position="queue 'q' in vhost '/', segment 3",
        bytes_done=3 << 20,
        bytes_total=6 << 20,
        found=2,
        unread=1,
        damaged_files=(("/data/x.qi", "damaged header"),),
        last=dataclasses.replace(DONE, unread=2),
        last_complete=DONE,
    )
    lines = said(served, monkeypatch, running)
    assert ": 50 %, 3 of 6 MiB, 2 KiB a second" in lines[0]
    assert lines[1] == ("It is at queue 'q' in vhost '/', segment 3; damaged messages so far: 2")
    assert lines[2].endswith("after 60 s, 5 MiB, 0 damaged messages, 2 queues could not be read")
    assert lines[3].startswith("Last complete pass: ended ")
    assert lines[4:] == ["Queues that cannot be read: 1", "Damaged: /data/x.qi: damaged header"]
    waiting = ScrubStatus(period_s=100.0, next_ms=5000, last=DONE, last_complete=DONE)
    assert said(served, monkeypatch, waiting)[0].startswith("The next pass begins at ")
