"""Three short kill cycles; `python -m tests.crash.kill_cycles` runs twenty long ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.journal import QueueLedger, judge, make_body, read_body
from tests.crash.kill_cycles import CONVERSIONS, SCENARIOS, WITH_LOG, Cycle, Report, run
from tests.support.broker_process import external_target

# Lazy with fan-out during compaction, mode default with declarations, large bodies.
CHOSEN = (1, 3, 2)
# Declarations, and a conversion on the way.
LOGGED = (3, 5)


@pytest.mark.slow
@pytest.mark.skipif(external_target() is not None, reason="kills a process of its own")
@pytest.mark.parametrize("number", CHOSEN, ids=[str(SCENARIOS[n]) for n in CHOSEN])
def test_nothing_confirmed_is_lost_when_the_node_is_killed(tmp_path: Path, number: int) -> None:
    report = Report()
    large = max(SCENARIOS[number].sizes) > 100_000
    Cycle(tmp_path, SCENARIOS[number], 100 if large else 1500, seed=number).run(report)
    assert report.is_clean, (report.summary(), report.problems)
    assert report.confirmed >= 100


@pytest.mark.slow
@pytest.mark.skipif(external_target() is not None, reason="kills a process of its own")
@pytest.mark.parametrize("number", [0, 1], ids=[str(CONVERSIONS[n]) for n in (0, 1)])
def test_nothing_is_lost_when_the_node_is_killed_in_a_conversion(
    tmp_path: Path, number: int
) -> None:
    report = Report()
    Cycle(tmp_path, CONVERSIONS[number], 1500, seed=number).run(report)
    assert report.is_clean, (report.summary(), report.problems)
    assert report.confirmed >= 1500


@pytest.mark.slow
@pytest.mark.skipif(external_target() is not None, reason="kills a process of its own")
@pytest.mark.parametrize("number", LOGGED, ids=[str(WITH_LOG[n]) for n in LOGGED])
def test_nothing_is_lost_when_a_node_with_a_commit_log_is_killed(
    tmp_path: Path, number: int
) -> None:
    report = Report()
    Cycle(tmp_path, WITH_LOG[number], 1500, seed=number).run(report)
    assert report.is_clean, (report.summary(), report.problems)
    assert report.confirmed >= 1500


@pytest.mark.long
@pytest.mark.skipif(external_target() is not None, reason="kills a process of its own")
def test_thirty_kills_with_a_commit_log(tmp_path: Path) -> None:
    report = run(30, 4000, 1, tmp_path, WITH_LOG)
    assert report.is_clean, (report.summary(), report.problems)


@pytest.mark.long
@pytest.mark.skipif(external_target() is not None, reason="kills a process of its own")
def test_twenty_kills_in_version_1_and_in_conversions(tmp_path: Path) -> None:
    report = run(20, 3000, 1, tmp_path, CONVERSIONS)
    assert report.is_clean, (report.summary(), report.problems)


@pytest.mark.long
@pytest.mark.skipif(external_target() is not None, reason="kills a process of its own")
def test_twenty_kills_under_a_hundred_thousand_confirmed_messages(tmp_path: Path) -> None:
    report = run(20, 6500, 1, tmp_path)
    assert report.is_clean, (report.summary(), report.problems)
    assert report.confirmed >= 100_000


def test_the_oracle_sees_each_kind_of_damage() -> None:
    first, second = (1, 1), (1, 2)
    confirmed = {first, second}
    good = [(first, True), (second, True)]
    assert judge(QueueLedger(), confirmed, good, expect_redelivered=True).is_clean
    for drained, field in (
        ([(first, True)], "lost"),
        ([*good, (None, True)], "corrupt"),
        ([*good, (second, True)], "duplicated"),
        (good[::-1], "out_of_order"),
        ([(first, False), (second, True)], "unflagged"),
    ):
        verdict = judge(QueueLedger(), confirmed, drained, expect_redelivered=True)
        assert getattr(verdict, field) == 1
        assert not verdict.is_clean


def test_acked_messages_are_not_missed() -> None:
    ledger = QueueLedger(acked={(1, 1)})
    assert judge(ledger, {(1, 1)}, [], expect_redelivered=True).is_clean


@pytest.mark.parametrize("size", [1, 14, 15, 300, 70_000])
def test_any_damage_to_a_body_shows(size: int) -> None:
    body = make_body(3, 9, size)
    assert read_body(body) == (3, 9)
    for at in {0, len(body) // 2, len(body) - 1}:
        damaged = bytearray(body)
        damaged[at] ^= 1
        assert read_body(bytes(damaged)) is None
    assert read_body(body[:-1]) is None
    assert read_body(body + b"x") is None
