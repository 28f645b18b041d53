"""Stores of format 1: each level gets its own name, whatever interrupts that, and no message is lost or changes hands."""

from __future__ import annotations

import errno
import json
import random

import pytest

from burrowmq.storage.directory.terms import dump_json, load_json, take_terms, write_terms
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import StorageError, StoreRefused
from burrowmq.storage.names import NAME_FILE, QueueNames, parse_names
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver, SimDefinitions, read_all
from tests.support.engine_on_disk import commit, publish
from tests.support.sim_filesystem import PowerCut, SimFileSystem
from tests.support.store_record import changed
from tests.support.stored_message import FakeMessage

LEVELS = {("/", "q"): 3, ("/", "p"): 1}
# Log names of format 1 and how many messages each has; "r" has no levels.
LOGS = {"q": 3, "q\x001": 20, "q\x003": 5, "p\x001": 4, "r\x001": 6, "q\x004": 7}
FOUND = {
    QueueNames("/", "q"): 3,
    QueueNames("/", "q", 1): 20,
    QueueNames("/", "q", 3): 5,
    QueueNames("/", "p", 1): 4,
    QueueNames("/", "r\x001"): 6,
    QueueNames("/", "q\x004"): 7,
}
STORE_FILE = "/data/STORE.json"


def engine_on(
    filesystem: SimFileSystem, levels: dict[tuple[str, str], int] | None = LEVELS
) -> Engine:
    return Engine(
        "/data",
        filesystem,
        StoreOptions(segment_entry_count=16),
        SilentObserver(),
        FakeMessage,
        lambda _: SimDefinitions(filesystem, {("queue", "q"): {}}),
        None if levels is None else lambda _: levels,
    )


def replace(filesystem: SimFileSystem, path: str, data: bytes) -> None:
    filesystem.unlink(path)
    file = filesystem.create(path)
    file.pwrite(data, 0)
    file.fdatasync()
    filesystem.fsync_dir(path.rpartition("/")[0])


def store_of_format_1(version: int, *, clean: bool, strict: bool = True) -> SimFileSystem:
    """A store of format 1: levels are queues of other names, and nothing says levels."""
    filesystem = SimFileSystem(strict=strict)
    engine = engine_on(filesystem)
    engine.recover()
    engine.start_inline()
    for name, count in LOGS.items():
        log = engine.open_queue("/", name, durable=True, version=version)
        publish(log, 0, count - 1)
        publish(log, count - 1, 1, 5000)
    commit(engine)
    if clean:
        engine.close()
    parts = take_terms(filesystem, "/data")
    for path in [path for path in filesystem.paths() if path.endswith(NAME_FILE)]:
        replace(filesystem, path, filesystem.content(path).replace(b"LEVEL: 0\n", b""))
    text = changed(filesystem.content(STORE_FILE), has_check=False, format=1)
    replace(filesystem, STORE_FILE, text)
    if parts is not None:
        terms = load_json(parts[0])
        for row in terms["queues"]:  # type: ignore[index, call-overload]
            del row[11:]  # type: ignore[union-attr, arg-type, index]
        write_terms(filesystem, "/data", [dump_json(terms), *parts[1:]])
    return filesystem


def counts(engine: Engine) -> dict[QueueNames, int]:
    """Open everything and read it."""
    engine.start_inline()
    found = {}
    for names in FOUND:
        log = engine.open_queue(names.vhost, names.name, durable=True, level=names.level)
        numbers = [int(message.raw[22:30]) for _, message, _ in read_all(log, 7)]  # type: ignore[attr-defined]
        assert numbers == list(range(len(numbers)))
        found[names] = len(numbers)
    return found


def check_names(filesystem: SimFileSystem) -> None:
    """Everything has its new name, and says so."""
    text = json.loads(filesystem.content(STORE_FILE))
    assert (text["format"], text.get("taking_over")) == (2, None)
    paths = [path for path in filesystem.paths() if path.endswith(NAME_FILE)]
    names = {parse_names(filesystem.content(path)): path.split("/")[-2] for path in paths}
    assert names == {one: one.directory for one in FOUND}
    assert not [path for path in filesystem.paths() if path.endswith(".tmp")]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("clean", [True, False])
def test_levels_and_queues_are_told_apart(version: int, clean: bool) -> None:
    filesystem = store_of_format_1(version, clean=clean)
    engine = engine_on(filesystem)
    report = engine.recover()
    assert (report.clean, report.lost, set(report.queues)) == (clean, 0, set(FOUND))
    check_names(filesystem)
    assert counts(engine) == FOUND
    assert engine.stats()["shared_live_messages"] == len(FOUND)
    engine.close()
    engine = engine_on(filesystem, None)
    assert engine.recover().clean
    assert counts(engine) == FOUND


def test_the_version_in_the_name_file_stays() -> None:
    filesystem = store_of_format_1(1, clean=False)
    engine_on(filesystem).recover()
    directory = QueueNames("/", "q", 1).directory
    (path,) = (path for path in filesystem.paths() if path.endswith(f"{directory}/{NAME_FILE}"))
    assert filesystem.content(path).endswith(
        b"LEVEL: 1\nINDEX: v1\n"
    ) or b"INDEX: v2" in filesystem.content(path)


@pytest.mark.slow
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("clean", [True, False])
def test_a_start_that_is_cut_off_goes_on_where_it_was(strict: bool, clean: bool) -> None:
    cut_at, is_done = 0, False
    while not is_done:
        cut_at += 1
        filesystem = store_of_format_1(2 - cut_at % 2, clean=clean, strict=strict)
        for attempt in range(3):
            filesystem.cut_before = filesystem.operations + cut_at
            try:
                engine_on(filesystem).recover()
                is_done = not attempt
                break
            except PowerCut:
                rng = random.Random(cut_at)
                filesystem = filesystem.cut(rng) if attempt else filesystem.process_killed()
        filesystem.cut_before = None
        filesystem = filesystem.cut(random.Random(cut_at))
        engine = engine_on(filesystem)
        report = engine.recover()
        assert (set(report.queues), report.lost) == (set(FOUND), 0), cut_at
        check_names(filesystem)
        assert counts(engine) == FOUND
    assert cut_at > 30


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EMFILE])
@pytest.mark.parametrize("operation", ["rename", "fsync_dir", "fdatasync", "create", "pwrite"])
def test_a_call_that_fails_ends_the_start_or_not_and_costs_nothing(
    operation: str, number: int
) -> None:
    for nth in range(1, 12):
        filesystem = store_of_format_1(2, clean=True)
        filesystem.fail(operation, number, nth=nth)
        try:
            engine_on(filesystem).recover()
        except StorageError:
            filesystem = filesystem.process_killed()
        filesystem.heal()
        filesystem = filesystem.cut(random.Random(nth))
        engine = engine_on(filesystem)
        assert set(engine.recover().queues) == set(FOUND)
        check_names(filesystem)
        assert counts(engine) == FOUND


@pytest.mark.parametrize("clean", [True, False])
def test_what_a_level_and_a_queue_shared_stays_with_the_level(clean: bool) -> None:
    filesystem = store_of_format_1(2, clean=clean)
    engine = engine_on(filesystem)
    engine.recover()
    engine.start_inline()
    assert not engine.is_stored("/", "q\x001")
    namesake = engine.open_queue("/", "q\x001", durable=True)
    assert namesake.recovered is None
    publish(namesake, 0, 2)
    commit(engine)
    level = engine.open_queue("/", "q", durable=True, level=1)
    assert level.recovered is not None
    assert level.recovered.count == 20
    namesake.delete()
    commit(engine)
    assert len(read_all(level, 7)) == 20


@pytest.mark.parametrize("clean", [True, False])
def test_levels_that_are_presumed_are_there_when_it_is_known_which_there_are(clean: bool) -> None:
    filesystem = store_of_format_1(2, clean=clean)
    # The row of q cannot be used, and there is one of a queue that is called as its level 4 was.
    engine_on(filesystem, {("/", "p"): 255, ("/", "q"): 3}).recover()
    filesystem = filesystem.process_killed()
    check_names(filesystem)
    engine = engine_on(filesystem)
    assert set(engine.recover().queues) == set(FOUND)
    assert counts(engine) == FOUND


def test_terms_that_speak_twice_of_the_same_files_count_as_none() -> None:
    filesystem = store_of_format_1(2, clean=True)
    parts = take_terms(filesystem, "/data")
    assert parts is not None
    terms = load_json(parts[0])
    rows = terms["queues"]  # type: ignore[index, call-overload]
    (row,) = (row for row in rows if row[1] == "q\x001")  # type: ignore[union-attr, index]
    rows.append(list(row))  # type: ignore[union-attr, arg-type]
    write_terms(filesystem, "/data", [dump_json(terms), *parts[1:]])
    engine = engine_on(filesystem)
    assert not engine.recover().clean
    assert counts(engine) == FOUND


def test_a_damaged_name_file_of_format_1_costs_nothing() -> None:
    filesystem = store_of_format_1(2, clean=False)
    for path in [path for path in filesystem.paths() if path.endswith(NAME_FILE)]:
        filesystem.unlink(path)
    engine = engine_on(filesystem)
    engine.recover()
    engine.start_inline()
    for names, count in FOUND.items():
        assert engine.is_stored(*names)
        log = engine.open_queue(names.vhost, names.name, durable=True, level=names.level)
        assert len(read_all(log, 7)) == count


def test_who_knows_no_levels_is_refused_and_writes_nothing() -> None:
    filesystem = store_of_format_1(2, clean=True)
    before = {path: filesystem.content(path) for path in filesystem.paths()}
    with pytest.raises(StoreRefused, match=r"is of format 1"):
        engine_on(filesystem, None).recover()
    assert {path: filesystem.content(path) for path in filesystem.paths()} == before


def test_a_store_without_levels_only_gets_its_number() -> None:
    filesystem = store_of_format_1(2, clean=True)
    renames = filesystem.counters.calls["rename"]
    engine = engine_on(filesystem, {("/", "nothing"): 255, ("elsewhere", "q"): 2})
    report = engine.recover()
    assert report.clean
    assert filesystem.counters.calls["rename"] == renames + 1
    assert json.loads(filesystem.content(STORE_FILE))["format"] == 2
    assert QueueNames("/", "q\x001") in report.queues
