"""The real file system and the simulated one keep the same promises."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from burrowmq.storage.files import filesystem as filesystem_module
from burrowmq.storage.files.filesystem import (
    FileSystem,
    OsFile,
    OsFileSystem,
    compiled_calls,
    remove_tree,
)
from tests.support.sim_filesystem import SimFileSystem


@pytest.fixture(params=["os", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileSystem, str]:
    filesystem: FileSystem = OsFileSystem() if request.param == "os" else SimFileSystem()
    directory = str(tmp_path / "store")
    filesystem.mkdir(directory)
    return filesystem, directory


def test_write_read_truncate(disk: tuple[FileSystem, str]) -> None:
    filesystem, directory = disk
    file = filesystem.create(f"{directory}/a")
    file.pwrite(b"hello", 0)
    file.pwrite(b"far", 10)
    file.pwritev([b"x", bytearray(b"yz"), memoryview(b"w")], 5)
    assert file.pread(100, 0) == b"helloxyzw\0far"
    assert file.pread(3, 12) == b"r"
    assert file.pread(3, 50) == b""
    file.write_through(b"r and f", 12)
    file.write_through(b"urther", 19)
    assert file.pread(100, 10) == b"far and further"
    file.truncate(5)
    file.fdatasync()
    filesystem.fsync_dir(directory)
    assert file.size() == filesystem.file_size(file.path) == 5
    assert filesystem.read_file(file.path) == b"hello"
    assert filesystem.open(f"{directory}/a").pread(9, 1) == b"ello"
    file.close()
    file.close()


def test_what_close_answers_is_nobodys_concern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The descriptor is gone all the same, and durable is what a sync said."""
    filesystem, closed, close = OsFileSystem(), list[str](), os.close
    own = (str(tmp_path), os.devnull)

    def failing(fd: int) -> None:
        # What other tests have left may be closed meanwhile.
        path = os.readlink(f"/proc/self/fd/{fd}")
        close(fd)
        if path.startswith(own):
            closed.append(path)
            raise OSError(errno.EIO, "close")

    monkeypatch.setattr(os, "close", failing)
    filesystem.keep_spare()
    filesystem.create(f"{tmp_path}/a").close()
    filesystem.reserve(f"{tmp_path}/b", 1)
    filesystem.fsync_dir(str(tmp_path))
    filesystem.let_go()
    assert len(closed) == 4


def test_names(disk: tuple[FileSystem, str]) -> None:
    filesystem, directory = disk
    for name in ("b", "a"):
        filesystem.create(f"{directory}/{name}").close()
    filesystem.mkdir(f"{directory}/sub/deep")
    filesystem.mkdir(f"{directory}/sub/deep")
    assert filesystem.listdir(directory) == ["a", "b", "sub"]
    filesystem.rename(f"{directory}/a", f"{directory}/b")
    assert filesystem.listdir(directory) == ["b", "sub"]
    assert filesystem.exists(f"{directory}/b")
    assert filesystem.exists(f"{directory}/sub")
    filesystem.unlink(f"{directory}/b")
    assert not filesystem.exists(f"{directory}/b")
    filesystem.rmtree(f"{directory}/sub")
    filesystem.rmtree(f"{directory}/sub")
    assert filesystem.listdir(directory) == []
    assert filesystem.disk_free(directory) > 0


def grown(path: Path) -> Path:
    """A tree with files, folders, and links to what is outside."""
    (outside := path / "outside").mkdir()
    (outside / "kept").write_bytes(b"x")
    root = path / "root"
    for folder in ("a/b", "c", "d"):
        (root / folder).mkdir(parents=True)
        (root / folder / "file").write_bytes(b"x")
    (root / "c" / "folder").symlink_to(outside)
    (root / "c" / "nowhere").symlink_to(path / "nothing")
    return root


def test_a_tree_goes_and_what_its_links_lead_to_stays(tmp_path: Path) -> None:
    root = grown(tmp_path)
    remove_tree(str(root))
    assert not root.exists()
    assert (tmp_path / "outside" / "kept").read_bytes() == b"x"
    with pytest.raises(FileNotFoundError):
        remove_tree(str(root))
    remove_tree(str(root), is_lenient=True)


def test_a_tree_that_is_a_link_stays_and_what_it_leads_to(tmp_path: Path) -> None:
    (link := tmp_path / "link").symlink_to(grown(tmp_path))
    with pytest.raises(NotADirectoryError):
        remove_tree(str(link))
    remove_tree(str(link), is_lenient=True)
    assert (link / "a" / "b" / "file").read_bytes() == b"x"


def test_a_tree_of_which_a_part_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = grown(tmp_path)
    unlink = os.unlink

    def refuse(path: str) -> None:
        if path.endswith("c/file"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        unlink(path)

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(PermissionError):
        remove_tree(str(root))
    remove_tree(str(root), is_lenient=True)
    assert [each for each in root.rglob("*") if not each.is_dir()] == [root / "c" / "file"]
    monkeypatch.undo()
    remove_tree(str(root))
    assert not root.exists()


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda fs, d: fs.open(f"{d}/none"), FileNotFoundError),
        (lambda fs, d: fs.unlink(f"{d}/none"), FileNotFoundError),
        (lambda fs, d: fs.read_file(f"{d}/none"), FileNotFoundError),
        (lambda fs, d: fs.rename(f"{d}/none", f"{d}/x"), FileNotFoundError),
        (lambda fs, d: fs.listdir(f"{d}/none"), FileNotFoundError),
        (lambda fs, d: fs.create(f"{d}/none/x"), FileNotFoundError),
        (lambda fs, d: (fs.create(f"{d}/x"), fs.create(f"{d}/x")), FileExistsError),
    ],
)
def test_errors(
    disk: tuple[FileSystem, str],
    act: Callable[[FileSystem, str], object],
    error: type[OSError],
) -> None:
    with pytest.raises(error):
        act(*disk)


def test_an_unlinked_file_stays_readable(disk: tuple[FileSystem, str]) -> None:
    filesystem, directory = disk
    file = filesystem.create(f"{directory}/a")
    file.pwrite(b"still here", 0)
    filesystem.unlink(f"{directory}/a")
    assert file.pread(10, 0) == b"still here"


def test_small_and_large_parts_are_written_in_their_order(disk: tuple[FileSystem, str]) -> None:
    filesystem, directory = disk
    parts = [str(number).encode() * 200 for number in range(3000)]
    parts[10:10] = [b"a" * 300_000, b"b" * 300_000]
    file = filesystem.create(f"{directory}/a")
    file.pwritev(parts, 3)
    assert file.pread(1 << 23, 3) == b"".join(parts)


def test_short_writes_and_reads_are_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite, pread = os.pwrite, os.pread
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, bytes(data)[:3], at))
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 2), at))
    file = OsFileSystem().create(str(tmp_path / "a"))
    file.pwrite(b"0123456789", 0)
    file.pwritev([b"abc", b"def"], 10)
    assert file.pread(100, 0) == b"0123456789abcdef"


def test_a_write_that_makes_no_progress_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OsFileSystem().create(str(tmp_path / "a"))
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    with pytest.raises(OSError, match="0 bytes"):
        file.pwrite(b"x", 0)


def test_the_descriptor_goes_with_the_last_reference(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "a", os.O_RDWR | os.O_CREAT)
    file = OsFile("a", fd)
    os.fstat(fd)
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def _descriptors() -> set[str]:
    found = set(os.listdir("/proc/self/fd"))
    return {each for each in found if os.path.exists(f"/proc/self/fd/{each}")}


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Nothing that tests before have left closes its files meanwhile, whose numbers others get."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_what_it_keeps_for_itself_it_lets_go_of_and_takes_again(tmp_path: Path) -> None:
    disk = OsFileSystem(None)
    files = [disk.create(str(tmp_path / name)) for name in "ab"]
    before, threads = _descriptors(), set(threading.enumerate())
    for _ in range(2):
        disk.keep_spare()
        assert disk.sync_all(files, [str(tmp_path)]) == []
        assert len(_descriptors() - before) == 1
        disk.let_go()
        # Those of tests before may end meanwhile.
        assert _descriptors() <= before
        assert set(threading.enumerate()) <= threads


@pytest.fixture(params=["compiled", "threads"])
def real_disk(request: pytest.FixtureRequest) -> OsFileSystem:
    if request.param == "threads":
        return OsFileSystem(None, None)
    if compiled_calls()[0] is None:
        pytest.skip("the compiled calls are not built here, or BURROWMQ_PURE forbids them")
    return OsFileSystem(*compiled_calls())


def test_what_fails_among_several_is_named_and_keeps_nothing_from_the_others(
    real_disk: OsFileSystem, tmp_path: Path
) -> None:
    files = [real_disk.create(f"{tmp_path}/{name}") for name in "abcde"]
    for file in files:
        file.pwrite(b"data", 0)
    assert real_disk.sync_all(files, [str(tmp_path)]) == []
    reading, writing = os.pipe()
    files[0] = OsFile("first pipe", os.dup(writing))  # a pipe cannot be synced
    files[3] = OsFile("second pipe", writing)
    failed = real_disk.sync_all(files, [f"{tmp_path}/none", str(tmp_path)])
    os.close(reading)
    assert [(item, error.errno) for item, error in failed] == [
        (files[0], errno.EINVAL),
        (files[3], errno.EINVAL),
        (f"{tmp_path}/none", errno.ENOENT),
    ]
    assert [item for item, _ in real_disk.sync_all([], [str(tmp_path), f"{tmp_path}/none"])] == [
        f"{tmp_path}/none"
    ]


def test_each_of_several_files_is_synced(real_disk: OsFileSystem) -> None:
    reading, writing = os.pipe()
    files = [OsFile(f"pipe {number}", os.dup(writing)) for number in range(5)]  # none can be
    failed = real_disk.sync_all(files, [])
    for number in (reading, writing):
        os.close(number)
    assert [item for item, _ in failed] == files


def test_several_writes_end_at_the_first_that_is_refused(
    real_disk: OsFileSystem, tmp_path: Path
) -> None:
    files = [real_disk.create(f"{tmp_path}/{name}") for name in "abc"]
    assert real_disk.write_some([]) == 0
    assert real_disk.write_some([(file, b"data", 2) for file in files]) == 3
    closed = real_disk.create(f"{tmp_path}/d")
    closed.close()
    writes = [(files[0], b"more", 4), (files[0], b"!", 8), (closed, b"x", 0), (files[1], b"y", 0)]
    assert real_disk.write_some(writes) == 2
    assert [file.pread(20, 0) for file in files] == [
        b"\0\0damore!",
        b"\0\0data",
        b"\0\0data",
    ]


@pytest.mark.parametrize("flag", [0, 1 << 30])
def test_a_system_without_writes_through_writes_and_syncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: int
) -> None:
    """No such flag in this Python, or none in the kernel or its file system."""
    monkeypatch.setattr(filesystem_module, "_DSYNC", flag)
    file = OsFileSystem().create(str(tmp_path / "a"))
    file.write_through(b"data", 3)
    assert file.pread(10, 0) == b"\0\0\0data"


def test_a_refused_write_through_says_what_failed() -> None:
    file = OsFile("/gone", -1)
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        file.write_through(b"data", 0)
    assert caught.value.filename == "/gone"
    assert caught.value.__notes__ == ["pwritev2"]


def test_room_can_be_taken_where_nothing_reserves_it(tmp_path: Path) -> None:
    path = tmp_path / "ballast"
    with open(path, "wb") as file:
        filesystem_module._write_zeros(file.fileno(), 600_001)
    assert path.read_bytes() == bytes(600_001)


@pytest.mark.parametrize("operation", [51, fcntl.F_GETFD], ids=["refused", "done"])
def test_a_drives_cache_is_synced_too_or_else_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: int
) -> None:
    """Linux has no such operation: one that it refuses, and one that it takes."""
    monkeypatch.setattr(filesystem_module, "_FULL_FSYNC", operation)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with open(tmp_path / "f", "wb") as file:
        filesystem_module._full_fsync(file.fileno())
        assert synced == ([file.fileno()] if operation == 51 else [])


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_full_sync_that_failed_is_not_taken_for_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    with open(tmp_path / "f", "wb") as file, pytest.raises(OSError, match=os.strerror(number)):
        filesystem_module._full_fsync(file.fileno())
