"""Nothing confirmed is lost and nothing invented while servers and front-ends are killed; and what would be is seen."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.cluster import ledger as ledger_module
from tests.cluster.kills import run
from tests.cluster.ledger import Book
from tests.cluster.load import Consumer, _Answers, filler


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("nats_server")
def test_kills_lose_and_invent_nothing(tmp_path: Path) -> None:
    found = run(tmp_path, servers=6, front_ends=6, messages=20_000, rate=2_000.0, seed=2)
    assert found.confirmed >= 20_000
    assert found.is_clean, found


def delivered(consumer: Consumer, publisher: int, number: int, size: int = 16) -> None:
    body = struct.pack(">II", publisher, number) + filler(publisher, size)
    consumer._take(1, body, is_redelivered=False)


def test_what_goes_wrong_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    book = Book()
    ledger = book.add(7, "q")
    book.add(8, "other")
    consumer = Consumer("q", book, [0], {7: 16, 8: 16})
    first = ledger.reserve(5)
    answers = _Answers(ledger, first)
    answers.sent(5)
    answers.heard(struct.pack(">HHQB", 60, 120, 2, 0))  # the second is refused
    answers.heard(struct.pack(">HHQB", 60, 80, 4, 1))
    assert (bytes(ledger.confirmed[:5]), bytes(ledger.refused[:5])) == (
        b"\1\0\1\1\0",
        b"\0\1\0\0\0",
    )
    assert answers.open_count == 1
    for number in (2, 0, 4):
        delivered(consumer, 7, number)
    delivered(consumer, 8, 0)  # of another queue
    delivered(consumer, 7, 5)  # never published
    consumer._take(1, struct.pack(">II", 7, 3) + bytes(8), is_redelivered=False)  # other octets
    found = book.verdict()
    assert (found.published, found.confirmed, found.refused, found.seen) == (5, 3, 1, 3)
    assert (found.lost, found.reordered, found.invented, found.again) == (1, 1, 3, 0)
    assert not book.is_all_seen
    ledger.acked_ms[2] = ledger_module.now_ms()
    monkeypatch.setattr(ledger_module, "_BEGAN_S", ledger_module._BEGAN_S - 1.0)
    delivered(consumer, 7, 2)
    assert book.verdict().again == 1
