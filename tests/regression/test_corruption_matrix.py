"""File kinds times damage, after a crash and after a clean stop: refused, or exactly the touched messages lost, or none.

The oracle is the table: how many messages of three queues are missing; what is there is right and in order.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from burrowmq.storage.errors import StoreRefused
from tests.simulation.store_world import SilentObserver, make_message, read_all
from tests.support import offline_store
from tests.support.store_on_disk import StoreOnDisk, message

Damage = Callable[[Path], None]


def flip(offset: int) -> Damage:
    def change(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[offset] ^= 0x04
        path.write_bytes(bytes(data))

    return change


def append_garbage(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\xa5\x51\x01\x00" + b"garbage" * 9)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def duplicate(path: Path) -> None:
    number, rest = path.name.split(".", 1)
    shutil.copy(path, path.with_name(f"{int(number) + 50}.{rest}"))


ENTRIES_AT = 64 + 2 * (32 + offline_store.ENTRIES // 8)
REFUSED = -1

# file, damage, messages lost (REFUSED: the start is)
MATRIX = [
    ("STORE.json", empty, REFUSED),
    ("STORE.json", remove, REFUSED),
    ("STORE.json", flip(0), REFUSED),
    ("**/.vhost_name", flip(0), 0),
    ("**/.vhost_name", remove, 0),
    ("**/0.g0.seg", flip(8), 0),  # file header
    ("**/0.g0.seg", flip(66), 2),  # a record's head, in two queues
    ("**/0.g0.seg", flip(64 + 21), 2),  # its checksum
    ("**/0.g0.seg", flip(64 + 30), 2),  # its meta
    ("**/0.g0.seg", flip(3000), 2),  # a body
    ("**/0.g0.seg", flip(-3), 0),  # the seal, or the last record's end
    ("**/0.g0.seg", append_garbage, 0),
    ("**/0.g0.seg", duplicate, 0),
    ("**/queues/*/0.qi", flip(8), 0),  # header
    ("**/queues/*/0.qi", flip(64 + 3), 0),  # one copy of the acks
    ("**/queues/*/0.qi", flip(ENTRIES_AT + 32 * 21 + 9), 1),  # an entry
    ("**/queues/*/0.qi", append_garbage, 0),
    ("**/queues/*/0.qs", flip(8), 0),  # header
    ("**/queues/*/0.qs", flip(-9), 1),  # the last body
    ("**/queues/*/0.qs", append_garbage, 0),
]


def cut(size: int) -> Damage:
    def change(path: Path) -> None:
        path.write_bytes(path.read_bytes()[:size])

    return change


def zero_tail(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40] + bytes(40))


def zeros_behind(path: Path) -> None:
    path.write_bytes(path.read_bytes() + bytes(4096))


def _with_header(path: Path, at: int, field: bytes) -> None:
    """Change a field of a file's header, whose checksum is right again."""
    data = bytearray(path.read_bytes())
    data[at : at + len(field)] = field
    data[60:64] = zlib.crc32(data[:60]).to_bytes(4, "little")
    path.write_bytes(bytes(data))


def other_version(path: Path) -> None:
    _with_header(path, 4, b"\x63\x00")


def other_store(path: Path) -> None:
    _with_header(path, {b"PQS1": 24, b"BQS2": 16}.get(path.read_bytes()[:4], 20), bytes(16))


def swap_with_the_next(path: Path) -> None:
    number, rest = path.name.split(".", 1)
    other = path.with_name(f"{int(number) + 1}.{rest}")
    data = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(data)


def foreign_file(path: Path) -> None:
    path.with_name("notes.txt").write_text("not ours")
    path.with_name("x.seg").write_bytes(b"PQS1")


NONE = None  # there is no such file after this stop
SEG, QI, QS = "**/0.g0.seg", "**/queues/*/0.qi", "**/queues/*/0.qs"
IDX, JIF = "**/queues/*/0.idx", "**/queues/*/*.jif"

# version, file, damage, messages lost after a clean stop, after a crash
BOUNDARIES = [
    (2, SEG, empty, 26, 26),
    (2, SEG, cut(30), 26, 26),  # in the header
    (2, SEG, cut(64), 26, 26),  # behind it
    (2, SEG, cut(300), 26, 26),  # in the first record
    (2, SEG, cut(-1), 0, 0),  # in the seal
    (2, SEG, zero_tail, 0, 0),
    (2, SEG, zeros_behind, 0, 0),
    (2, SEG, remove, 26, 26),
    (2, SEG, other_version, REFUSED, REFUSED),
    (2, SEG, other_store, REFUSED, REFUSED),
    (2, SEG, swap_with_the_next, 0, 0),
    (2, SEG, foreign_file, 0, 0),
    (2, QI, empty, 20, 20),
    (2, QI, cut(64), 20, 20),
    (2, QI, cut(-1), 1, 1),
    (2, QI, zero_tail, 1, 1),
    (2, QI, zeros_behind, 0, 0),
    (2, QI, remove, 20, 20),
    (
        2,
        QI,
        other_version,
        0,
        REFUSED,
    ),  # after a clean stop no index is looked at before it is read
    (2, QI, other_store, 0, REFUSED),
    (2, QI, foreign_file, 0, 0),
    (2, QS, empty, 20, 20),
    (2, QS, cut(64), 20, 20),
    (2, QS, cut(-1), 1, 1),
    (2, QS, zero_tail, 1, 1),
    (2, QS, zeros_behind, 0, 0),
    (2, QS, remove, 20, 20),
    (2, QS, other_version, 0, 0),  # its records check themselves
    (2, QS, other_store, 0, 0),
    (2, QS, foreign_file, 0, 0),
    (1, IDX, flip(8), 0, 0),  # header
    (1, IDX, flip(200), 1, 1),  # an entry
    (1, IDX, flip(-3), 1, 1),  # the last body
    (1, IDX, empty, 20, 40),  # of two queues
    (1, IDX, cut(64), 20, 40),
    (1, IDX, cut(-1), 1, 1),
    (1, IDX, zero_tail, 1, 1),
    (1, IDX, zeros_behind, 0, 0),
    (1, IDX, append_garbage, 0, 0),
    (1, IDX, remove, 20, 40),
    (1, IDX, other_version, 0, REFUSED),
    (1, IDX, other_store, 0, REFUSED),
    (1, IDX, foreign_file, 0, 0),
    (1, JIF, flip(8), NONE, 0),
    (1, JIF, flip(70), NONE, 20),  # a block's head
    (1, JIF, empty, NONE, 20),
    (1, JIF, cut(64), NONE, 20),
    (1, JIF, cut(-1), NONE, 0),  # acks: those messages come again
    (1, JIF, zeros_behind, NONE, 0),
    (1, JIF, append_garbage, NONE, 0),
    (1, JIF, remove, NONE, 20),
    (1, JIF, other_version, NONE, REFUSED),
    (1, JIF, other_store, NONE, REFUSED),
    (1, JIF, foreign_file, NONE, 0),
    (2, "**/.queue_name", empty, 0, 0),
    (2, "**/.queue_name", remove, 0, 0),
    (2, "**/.queue_name", flip(8), 0, 0),
    (2, "terms", flip(70), 0, NONE),
    (2, "terms", cut(-1), 0, NONE),
    (2, "terms", remove, 0, NONE),
    (2, "CLEAN", flip(2), 0, NONE),
    (2, "CLEAN", remove, 0, NONE),
]


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(("version", "pattern", "damage", "clean", "crashed"), BOUNDARIES)
def test_what_is_cut_swapped_or_foreign_costs_what_it_touches(
    tmp_path: Path,
    version: int,
    pattern: str,
    damage: Damage,
    clean: int | None,
    crashed: int | None,
    is_clean: bool,
) -> None:
    wanted = clean if is_clean else crashed
    bodies = offline_store.make_store(tmp_path, is_clean=is_clean, scale=10, version=version)
    files = sorted(tmp_path.glob(pattern))
    if wanted is NONE:
        assert not files
        return
    damage(files[0])
    if wanted == REFUSED:
        before = files[0].read_bytes()
        with pytest.raises(StoreRefused):
            offline_store.open_engine(tmp_path)
        assert files[0].read_bytes() == before
        return
    found = offline_store.bodies_of(tmp_path)
    lost = 0
    for name, expected in bodies.items():
        kept = [raw for raw in found[name] if raw in set(expected)]
        assert kept == [raw for raw in expected if raw in set(kept)], name
        lost += len(set(expected) - set(kept))
    assert lost == wanted
    assert offline_store.bodies_of(tmp_path) == found


def remove_directory(path: Path) -> None:
    shutil.rmtree(path.parent)


# version, file, damage, messages lost after a clean stop
MISSING = [
    (2, QI, remove, 20),
    (2, QS, remove, 20),
    (1, IDX, remove, 20),
    (2, SEG, remove, 26),
    (1, SEG, remove, 26),
    (2, "**/.queue_name", remove, 0),
    (1, "**/.queue_name", remove, 0),
    (2, "**/.vhost_name", remove, 0),
    (2, "terms", remove, 0),
    (2, "CLEAN", remove, 0),
    (2, QI, remove_directory, 20),
    (1, IDX, remove_directory, 20),
]


@pytest.mark.parametrize("use", ["publish", "ack", "publish and ack"])
@pytest.mark.parametrize(("version", "pattern", "damage", "most"), MISSING)
def test_a_queue_whose_file_is_missing_goes_on_and_so_do_the_others(
    tmp_path: Path, version: int, pattern: str, damage: Damage, most: int, use: str
) -> None:
    bodies = offline_store.make_store(tmp_path, scale=10, version=version)
    damage(sorted(tmp_path.glob(pattern))[0])
    observer = SilentObserver()
    engine = offline_store.open_engine(tmp_path, observer=observer)
    logs = {name: engine.open_queue("/", name, durable=True, version=version) for name in bodies}
    expected: dict[str, list[bytes]] = {}
    lost: dict[str, int] = {}
    for name, log in logs.items():
        found = [(seq, message.raw) for seq, message, _ in read_all(log, 33)]
        expected[name] = [raw for _, raw in found]
        if "ack" in use and found:
            log.ack_many([found[0][0], found[-1][0]])
            expected[name] = expected[name][1:-1]
        if "publish" in use:
            more = [make_message(9000 + at, size, True) for at, size in enumerate((40, 5000))]
            log.append(log.next_seq, list(more), None, 5040)
            expected[name] += [one.raw for one in more]
        kept = {raw for _, raw in found}
        lost[name] = sum(raw not in kept for raw in bodies[name])
        offline_store.commit(engine)
        engine.idle()
    assert sum(lost.values()) == most
    if "queues" in pattern and most:
        assert sum(map(bool, lost.values())) == 1, "others lose nothing"
        assert observer.events["record_lost"]
    engine.close()
    assert offline_store.bodies_of(tmp_path) == expected
    assert offline_store.bodies_of(tmp_path) == expected


@pytest.mark.parametrize("damage", [remove, cut(300), flip(66)])
def test_what_a_clean_stop_had_and_a_start_does_not_find_is_said(
    tmp_path: Path, damage: Damage
) -> None:
    offline_store.make_store(tmp_path, scale=10)
    damage(sorted(tmp_path.glob(SEG))[0])
    observer = SilentObserver()
    engine = offline_store.open_engine(tmp_path, observer=observer)
    for name in ("small", "mixed", "also"):
        offline_store.read_all(engine, name)
    assert observer.events["record_lost"] in (2, 26)
    engine.close()


@pytest.mark.parametrize("damage", [flip(3), cut(1000), cut(7), remove])
def test_damaged_definitions_refuse_the_start_and_cost_nothing(
    tmp_path: Path, damage: Damage
) -> None:
    store = StoreOnDisk(tmp_path)
    store.engine.definitions.put("queue", "q", {"durable": True})
    store.publish("q", [message(b"kept")])
    store.commit()
    store.engine.close()
    path = tmp_path / "definitions.db"
    whole = path.read_bytes()
    damage(path)
    with pytest.raises(StoreRefused, match=r"definitions\.db"):
        StoreOnDisk(tmp_path)
    path.write_bytes(whole)
    again = StoreOnDisk(tmp_path)
    log = again.log("q")
    assert log.recovered is not None
    assert log.recovered.version == 2
    answer = log.read(0, 10, 1 << 20, lambda *_: None)
    assert answer is not None
    assert len(answer[0]) == 1
    again.engine.close()


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(("pattern", "damage", "most"), MATRIX)
def test_damage_costs_what_it_touches(
    tmp_path: Path, pattern: str, damage: Damage, most: int, is_clean: bool
) -> None:
    bodies = offline_store.make_store(tmp_path, is_clean=is_clean, scale=10)
    damage(sorted(tmp_path.glob(pattern))[0])
    if most == REFUSED:
        with pytest.raises(StoreRefused):
            offline_store.open_engine(tmp_path)
        return
    found = offline_store.bodies_of(tmp_path)
    lost = 0
    for name, expected in bodies.items():
        extra = [raw for raw in found[name] if raw not in expected]
        # An ack that was not durable may be forgotten: then its message comes again.
        assert not extra or not is_clean or "qi" in pattern, name
        kept = [raw for raw in found[name] if raw in expected]
        assert kept == [raw for raw in expected if raw in set(kept)], name
        lost += len(expected) - len(kept)
    assert lost == most
    # Whatever it was, a second start finds the same.
    assert offline_store.bodies_of(tmp_path) == found
