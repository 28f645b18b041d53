"""burrowmq.broker.imports.journal: what is known after a stop, whatever was written last."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from burrowmq.broker.imports import journal as module
from burrowmq.broker.imports.journal import Journal
from burrowmq.broker.imports.recognise import SIZE


def opened(path: Path, made_ms: int = 1) -> Journal:
    journal = Journal(path, "/", "q", made_ms)
    journal.open()
    return journal


def begun(path: Path) -> Journal:
    journal = opened(path)
    journal.begin(10)
    return journal


def digests(first: int, count: int) -> bytes:
    return b"".join(number.to_bytes(SIZE, "big") for number in range(first, first + count))


def test_a_new_one_has_not_begun(tmp_path: Path) -> None:
    journal = opened(tmp_path / "j")
    assert (journal.there, journal.count) == (-1, 0)
    journal.close()
    journal.close()


def test_it_is_read_again(tmp_path: Path) -> None:
    journal = begun(tmp_path / "j")
    journal.intend(digests(0, 3), [100])
    journal.intend(digests(3, 2), [0, 7, 1 << 40])
    again = opened(tmp_path / "j")
    assert (again.there, again.count, again.last) == (10, 5, 2)
    assert again.next_ids == (0, 7, 1 << 40)
    assert (again.known, again.batch) == (digests(0, 5), digests(3, 2))


def test_its_directories_are_durable_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are new with the first import: a power cut that took them would leave messages that nobody knows."""
    path = tmp_path / "data" / "import" / "other" / "j"
    path.parent.mkdir(parents=True)
    synced: list[str] = []
    fsync = os.fsync

    def noting(file: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{file}"))
        fsync(file)

    monkeypatch.setattr(os, "fsync", noting)
    begun(path)
    assert synced == [str(path), *map(str, path.parents[:3])]


def test_it_belongs_to_the_queue_that_was_there_when_it_began(tmp_path: Path) -> None:
    journal = begun(tmp_path / "j")
    journal.intend(digests(0, 3), [100])
    journal.move()
    assert opened(tmp_path / "j").count == 3
    other = opened(tmp_path / "j", made_ms=2)
    assert (other.there, other.count, other.is_moving, other.known) == (-1, 0, False, b"")
    other.begin(7)
    other.intend(digests(8, 1), [0])
    again = opened(tmp_path / "j", made_ms=2)
    assert (again.there, again.count) == (7, 1)


def test_what_a_run_has_stored_and_what_is_moved_is_known(tmp_path: Path) -> None:
    journal = begun(tmp_path / "j")
    journal.intend(digests(0, 3), [100])
    journal.stored(42)
    again = opened(tmp_path / "j")
    assert (again.stored_by, again.is_moving) == (42, False)
    again.move()
    again.move()
    again.intend(digests(3, 1), [103])
    third = opened(tmp_path / "j")
    assert (third.stored_by, third.is_moving, third.count) == (0, True, 4)
    third.forget()
    assert opened(tmp_path / "j").there == -1


@pytest.mark.parametrize("stored", [0, 1, 2])
def test_the_last_batch_may_have_been_stored_in_part(tmp_path: Path, stored: int) -> None:
    journal = begun(tmp_path / "j")
    journal.intend(digests(0, 3), [100])
    journal.intend(digests(3, 2), [103])
    journal.settle(stored)
    again = opened(tmp_path / "j")
    assert (again.count, again.known) == (3 + stored, digests(0, 3 + stored))
    again.settle(again.last)
    assert opened(tmp_path / "j").count == 3 + stored


def test_any_torn_end_counts_as_not_written(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = begun(path)
    journal.intend(digests(0, 3), [100])
    whole = path.stat().st_size
    journal.intend(digests(3, 2), [103])
    data = path.read_bytes()
    for end in range(whole, len(data)):
        path.write_bytes(data[:end])
        again = opened(path)
        assert (again.count, again.known) == (3, digests(0, 3)), end
        assert path.stat().st_size == whole
        again.close()
    path.write_bytes(data[:-1] + bytes((data[-1] ^ 1,)))
    assert opened(path).count == 3
    path.write_bytes(b'{"there')
    assert opened(path).there == -1


def test_what_is_held_of_the_digests_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KNOWN_MAX", 4)
    journal = begun(tmp_path / "j")
    for first in range(0, 12, 3):
        journal.intend(digests(first, 3), [first])
    assert (journal.count, journal.known) == (12, digests(8, 4))


def test_digests_that_are_forgotten_take_no_memory_when_it_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KNOWN_MAX", 1_000)
    monkeypatch.setattr(os, "fsync", lambda _: None)

    def peak(records: int) -> int:
        path = tmp_path / str(records)
        journal = begun(path)
        for _ in range(records):
            journal.intend(bytes(100 * SIZE), [0])
            journal.stored(1)
        journal.close()
        tracemalloc.start()
        again = opened(path)
        _, found = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        again.close()
        assert again.count == 100 * records
        return found

    assert peak(1_000) - peak(500) < 1_000 * SIZE, "800,000 octets of digests more"


def test_a_record_that_says_it_is_longer_than_the_file_is_torn(tmp_path: Path) -> None:
    journal = begun(tmp_path / "j")
    journal.intend(digests(0, 3), [100])
    whole = (tmp_path / "j").stat().st_size
    with (tmp_path / "j").open("ab") as file:
        file.write(b"I" + b"\xff" * 40)
    again = opened(tmp_path / "j")
    assert (again.count, (tmp_path / "j").stat().st_size) == (3, whole)


def test_a_file_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "j").write_bytes(b"no JSON\n")
    with pytest.raises(ValueError, match="Expecting value"):
        opened(tmp_path / "j")
