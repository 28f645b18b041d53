"""A burst that is sent again is stored once, in order, whatever broke; and what would not hold is found."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import pytest

from tests.cluster.resend import Tally, Verdict, judge, run


def verdict(directory: Path, how: str, **changed: object) -> Verdict:
    options = {"cycles": 1, "window": "first-id", "seed": 7, "duplicate_window_ms": 120_000}
    return asyncio.run(run(directory, argparse.Namespace(how=how, **(options | changed))))


@pytest.mark.usefixtures("nats_server")
@pytest.mark.parametrize("how", ["cut", "leader"])
def test_each_message_is_stored_once_and_in_order(tmp_path: Path, how: str) -> None:
    found = verdict(tmp_path, how)
    assert found.is_sound
    assert found.confirmed > 100


@pytest.mark.usefixtures("nats_server")
def test_without_an_id_messages_are_doubled(tmp_path: Path) -> None:
    assert verdict(tmp_path, "cut", window="no-id").doubled


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("nats_server")
def test_it_holds_in_many_cycles_of_all_kinds(tmp_path: Path) -> None:
    hows = "cut,leader,connected,all,pause,step-down,late"
    assert verdict(tmp_path, hows, cycles=14).is_sound


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("nats_server")
def test_beyond_the_duplicate_window_it_does_not_hold(tmp_path: Path) -> None:
    # A server that was suspended for longer than that reads what others have long taken: the window has to be long.
    assert verdict(tmp_path, "late", cycles=3, duplicate_window_ms=2_000).doubled


def test_what_goes_wrong_is_seen() -> None:
    tally = Tally(confirmed={1, 2, 3}, refused={5})
    assert judge(tally, [1, 2, 3, 5]).is_sound
    assert judge(tally, [1, 3]).lost == 1
    assert judge(tally, [1, 2, 2, 3]).doubled == 1
    assert judge(tally, [2, 1, 3]).out_of_order == 1
    assert judge(tally, [1, 2, 3, 4]).invented == 1
