"""Acknowledgements while the servers are away for longer than one waits for an answer.

Covers: cluster/intake.py
"""

from __future__ import annotations

from burrowmq.cluster.intake import Acks
from burrowmq.cluster.wire import Delivered

LONG_MS = 600_000.0


def acks() -> Acks:
    found = Acks(collect_count=2)
    found.inbox = b"in.a"
    return found


def test_what_was_sent_before_an_outage_goes_by_the_next_connection_however_late() -> None:
    found = acks()
    found.add([b"a", b"b"], 0.0)
    found.poll(0.0)
    found.lost()
    found.lost()  # another attempt at a connection
    assert found.poll(LONG_MS).count(b"PUB") == 2
    assert found.due_ms() == LONG_MS + 3_000.0


def test_what_waited_for_a_connection_is_repeated_like_any_other() -> None:
    found = acks()
    found.add([b"a", b"b"], 0.0)
    assert found.poll(LONG_MS).count(b"PUB") == 2
    assert found.poll(LONG_MS + 1_500.0).count(b"PUB") == 2


def test_what_nobody_leads_for_long_is_said_when_somebody_does() -> None:
    found = acks()
    found.add([b"a", b"b"], 0.0)
    found.poll(0.0)
    now_ms = 0.0
    while now_ms < LONG_MS:
        found.answered(Delivered(3, b"in.a.1", b"", b"NATS/1.0 503\r\n\r\n", b""), now_ms)
        due_ms = found.due_ms()
        assert due_ms is not None
        now_ms = due_ms
        assert found.poll(now_ms).count(b"PUB") == 2
