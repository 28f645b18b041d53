"""What is known of own files: which are due, which the log is ahead of, which were refused."""

from __future__ import annotations

import errno
from typing import cast

from burrowmq.storage.files.filesystem import File
from burrowmq.storage.log.files import LARGE, OwnFile
from burrowmq.storage.log.groups import Groups, LogOptions
from burrowmq.storage.log.own_files import OwnFiles
from burrowmq.storage.log.replay import Replayed
from tests.support.sim_filesystem import SimFileSystem


class Written:
    """Own files of a disk, and what is known of them."""

    def __init__(self) -> None:
        self.base = SimFileSystem()
        self.groups = Groups(self.base, "/data", b"i" * 16, LogOptions(limit=1 << 20), Replayed())
        self.own: OwnFiles = self.groups.own

    def file(self, name: str, size: int) -> File:
        """A file that so much was written to."""
        file = OwnFile(self.groups, self.base.create(f"/{name}"))
        file.pwrite(bytes(size), 0)
        return file


def paths(files: list[File]) -> list[str]:
    return [file.path for file in files]


def test_few_bytes_are_due_and_many_are_not() -> None:
    written = Written()
    few = [written.file(f"few{number}", 100) for number in range(5)]
    large = written.file("large", LARGE + 1)
    assert paths(written.own.choose([*few, large])) == ["/large"]
    assert [path for path, _ in written.own.due()] == paths(few)
    assert paths(written.own.choose([few[0], large])) == ["/few0", "/large"]
    many = [written.file(f"many{number}", LARGE) for number in range(5)]
    assert written.own.choose(many) == many
    each = [written.file(f"each{number}", 1000) for number in range(300)]
    assert written.own.choose(each) == []  # a sync of each would cost more than to write all twice
    each = [written.file(f"more{number}", 5000) for number in range(300)]
    assert written.own.choose(each) == each


def test_the_log_is_told_of_those_only_that_it_is_ahead_of() -> None:
    written = Written()
    own = written.own
    files = [written.file(name, 10) for name in ("a", "b", "c")]
    assert own.choose(files[:2]) == []
    own.note_logged()
    assert (own.behind_count, list(own.due())) == (2, [])
    assert own.has_all_behind(files)
    assert not own.has_all_behind(files[:1])
    own.drop("/a")
    own.drop("/c")
    assert [own.is_gone(path) for path in ("/a", "/c")] == [True, False]
    assert (list(own.gone_from()), own.take_gone(""), own.take_gone("")) == ([""], ["/a"], [])
    assert [own.forget("/b"), own.forget("/b")] == [True, False]
    assert own.waiting() == {}
    assert own.get("/c") is None


def test_what_is_in_the_log_already_is_not_due_again() -> None:
    """No group may come of it; what is written later would be said behind what ends the file, a rename for instance."""
    written = Written()
    own = written.own
    file = written.file("a", 10)
    for _ in range(2):
        assert own.choose([file]) == []
        own.note_logged()
    assert own.choose([file]) == []
    assert list(own.due()) == []
    file.pwrite(b"again", 0)
    assert (list(own.due()), own.over()) == ([], [("/a", [(0, b"again")])])


def test_a_directory_takes_all_below_it_along() -> None:
    written = Written()
    written.base.mkdir("/q")
    written.base.mkdir("/qq")
    files = [written.file(name, 10) for name in ("q/a", "qq/a")]
    assert written.own.choose(files) == []
    written.own.drop_below("/q")
    assert list(written.own.waiting()) == ["/qq/a"]


def test_what_only_the_log_has_is_repeated_until_it_is_written_elsewhere() -> None:
    written = Written()
    own = written.own
    files = [written.file(name, 10) for name in ("a", "b")]
    own.choose(files)
    own.note_logged()
    assert own.spoil("/a")
    assert not own.spoil("/unknown")
    assert own.has_spoilt
    waiting = own.waiting()
    assert list(own.spoilt(waiting)) == ["/a"]
    own.begin(waiting)
    assert (list(own.waiting()), own.get("/b")) == (["/a"], None)


def test_a_refusal_is_told_once() -> None:
    written = Written()
    own = written.own
    files = [written.file(name, 10) for name in ("a", "b")]
    own.choose(files)
    error = OSError(errno.EIO, "no")
    own.refuse("/a", error)
    assert paths(own.refused()) == ["/a"]
    assert own.waiting().keys() == {"/b"}, "it is never synced again"
    told, others = own.take_refused(files)
    assert ([cast("File", item).path for item, _ in told], paths(others)) == (["/a"], ["/b"])
    assert own.take_refused(files) == ([], files)
    assert own.refused() == []


def test_a_refusal_is_kept_until_it_is_told() -> None:
    written = Written()
    own = written.own
    files = [written.file(name, 10) for name in ("a", "b")]
    own.choose(files)
    waiting = own.waiting()
    own.refuse("/a", OSError(errno.EIO, "no"))
    own.begin(waiting)  # the log has nothing of it
    assert (own.get("/b"), paths(own.refused())) == (None, ["/a"])
    own.forget("/a")
    assert own.refused() == []


def test_few_bytes_of_files_in_which_nothing_waits_are_taken_at_once() -> None:
    written = Written()
    own = written.own
    file = OwnFile(written.groups, written.base.create("/file"))
    assert own.takes_at_once([(file, bytes(LARGE), 0)])
    assert not own.takes_at_once([(file, bytes(LARGE + 1), 0)])
    assert own.takes_at_once([(file, bytes(LARGE), 0)] * 4)
    assert not own.takes_at_once([(file, bytes(LARGE), 0)] * 5)
    assert own.is_plain
    own.note_logged_at_once([(file, b"some", 0)])
    own.note_logged_at_once([(file, b"some", 0)])
    assert own.is_behind("/file")
    assert paths(own.overdue()) == ["/file"]
    assert own.takes_at_once([(file, b"more", 0)])
    file.pwrite(b"waits", 0)
    assert not own.takes_at_once([(file, b"more", 5)])
    assert own.choose([file]) == []
    assert not own.is_plain
    own.note_logged()
    assert own.takes_at_once([(file, b"more", 5)])
    own.refuse("/file", OSError(errno.EIO, "refused"))
    assert not own.is_plain
    assert not own.takes_at_once([(file, b"more", 5)])


def test_what_is_written_over_what_the_log_says_goes_into_the_next_group() -> None:
    written = Written()
    own = written.own
    one, two = written.file("one", 10), OwnFile(written.groups, written.base.create("/two"))
    one.pwrite(b"not said yet", 0)
    assert own.over() == []
    assert own.choose([one]) == []
    own.note_logged()
    own.note_logged_at_once([(two, b"1234", 4), (two, b"56", 0)])
    one.pwrite(b"behind", 12)
    one.pwrite(b"!", 11)
    two.pwrite(b"?", 8)
    two.pwritev([b"ab", b"cd"], 6)
    assert own.over() == [("/one", [(11, b"!")]), ("/two", [(6, b"ab")])]
    assert own.choose([one]) == []
    assert own.over() == [("/two", [(6, b"ab")])]  # the other is due with all of it
    own.note_logged()
    assert own.over() == []
    two.pwrite(b"over", 3)
    assert own.forget("/two")
    one.pwrite(b"x", 17)
    own.drop_below("")
    assert own.over() == []


def test_where_a_generation_begins_nothing_is_written_over_but_what_it_repeats() -> None:
    written = Written()
    own = written.own
    files = [written.file(name, 10) for name in ("a", "b")]
    own.choose(files)
    own.note_logged()
    for file in files:
        file.pwrite(b"over", 2)
    own.spoil("/a")
    own.begin(own.waiting())
    assert own.over() == [("/a", [(2, b"over")])]
