"""burrowmq.broker.imports.move: the power of this node is cut, and what the disk kept of a batch is any part of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from burrowmq.protocol.codec import Message, join_address
from burrowmq.protocol.constants import PERSISTENT
from burrowmq.protocol.properties import Properties, build
from tests.simulation.store_world import OPTIONS, WITH_LOG
from tests.support.fake_scheduler import FakeScheduler
from tests.support.import_bench import Node, Power
from tests.support.messages import body_of, message

TOP = 3
SEEDS = 25


def some(rng: random.Random, count: int, *, by_priority: bool, persistent: float) -> list[Message]:
    """Messages of all sizes, in the order in which a queue gives them out."""
    priorities = [rng.randrange(TOP + 1) for _ in range(count)] if by_priority else [0] * count
    return [
        message(
            b"%d:" % index + b"x" * rng.choice((0, 20, 60, 130, 400, 900)),
            persistent=rng.random() < persistent,
            priority=priority if by_priority else None,
        )
        for index, priority in enumerate(sorted(priorities, reverse=True))
    ]


def numbers(bodies: list[bytes]) -> list[int]:
    return [int(body.partition(b":")[0]) for body in bodies]


def moved(power: Power, rng: random.Random, cuts: int) -> Node:
    """A run that comes to its end, behind so many that did not."""
    for _ in range(cuts):
        if not power.run_until_cut(rng, 40):
            break
    node = power.start()
    node.move()
    assert power.left == [] or power.is_copy
    return node


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("has_log", [False, True])
@pytest.mark.parametrize("top", [None, TOP])
def test_all_of_it_is_here_once_and_in_order(
    tmp_path: Path, seed: int, has_log: bool, top: int | None
) -> None:
    rng = random.Random(f"{seed} {has_log} {top}")
    left = some(rng, 90, by_priority=top is not None, persistent=1)
    power = Power(
        tmp_path / "journal",
        left,
        options=WITH_LOG if has_log else OPTIONS,
        is_loaded=rng.random() < 0.5,
        max_priority=top,
    )
    node = moved(power, rng, 4)
    assert numbers(node.drain()) == numbers([body_of(each.raw) for each in left])


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("is_copy", [False, True])
def test_whatever_is_said_of_publishers_and_of_what_is_transient(
    tmp_path: Path, seed: int, is_copy: bool
) -> None:
    """A transient message that was acknowledged there goes with the node that has it; it is not here twice."""
    rng = random.Random(f"{seed} {is_copy}")
    left = some(rng, 90, by_priority=rng.random() < 0.5, persistent=0.7)
    power = Power(
        tmp_path / "journal",
        left,
        options=rng.choice((OPTIONS, WITH_LOG)),
        batch=rng.choice((7, 20, 40)),
        is_quiet=rng.random() < 0.5,
        is_copy=is_copy,
        max_priority=rng.choice((None, TOP)),
        mode=rng.choice(("default", "lazy")),
    )
    all_of_it = numbers([body_of(each.raw) for each in left])
    lasting = {at for at, each in enumerate(left) if each.flags & PERSISTENT}
    found = numbers(moved(power, rng, 4).drain())
    assert [each for each in found if each in lasting] == [
        each for each in all_of_it if each in lasting
    ]
    assert found == sorted(set(found))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_messages_that_are_all_alike_are_counted(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    left = [message(b"0:", persistent=True)] * 90
    power = Power(tmp_path / "journal", left, options=rng.choice((OPTIONS, WITH_LOG)))
    assert moved(power, rng, 4).drain() == [b"0:"] * 90


def test_a_ttl_goes_on_where_it_is_known_how_much_was_used_up(tmp_path: Path) -> None:
    """Ten seconds of a minute are used up; of the message without a time nobody knows, and it is said."""
    now = FakeScheduler().wall_ms()
    address = join_address(b"", b"q")
    stamped = Properties(delivery_mode=2, headers={"timestamp_in_ms": now - 10_000})
    left = [build(address, stamped, b"1:"), message(b"2:", persistent=True)]
    power = Power(
        tmp_path / "journal", left, options=OPTIONS, trusts_times=True, message_ttl_ms=60_000
    )
    node = power.start()
    node.move()
    assert power.row.ttl_anew == 1
    node.scheduler.advance(49_999)
    assert node.found.ready_count == 2
    node.scheduler.advance(2)
    assert numbers(node.drain()) == [2]
