"""Cuts the power of a real file system under a loaded node, and compares what it confirmed with what is there.

The node's data directory is a small ext4 or XFS of its own, in an image behind a loop device. The cut is the kernel's
own: FS_IOC_SHUTDOWN without a flush of its log (what xfstests' `godown` does). From that call on nothing reaches the
image, and what no sync had made durable is gone: pages, sizes, names, directories. The process is stopped before, so
that it says nothing of a dead disk, and killed after; the file system is mounted again (its journal is replayed), and a
node starts on it. So that not only all or nothing is seen, a thread writes some pages back at times, in no order, as a
kernel short of memory does.

State: one image and one mount a cycle, both gone after it. Needs root and loop devices.
Callers: test_power_cuts_of_a_file_system, and for the release figures
`python -m tests.crash.power_cuts --cycles 100 --kind xfs`.
Oracle: kill_cycles', of scenarios whose confirms stand for a sync.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

from tests.crash.kill_cycles import CONVERSIONS, SCENARIOS, WITH_LOG, Cycle, Scenario, run

FS_IOC_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32); XFS calls it XFS_IOC_GOINGDOWN
WITHOUT_LOG_FLUSH = 2
SYNC_FILE_RANGE_WRITE = 2
SIZE_MB = 512  # XFS has none below 300
KINDS = {"ext4": ("mkfs.ext4", "-q", "-m0"), "xfs": ("mkfs.xfs", "-q")}
CUT = tuple(one for one in (*SCENARIOS, *CONVERSIONS, *WITH_LOG) if one.confirm == "fsync")


def reason_against(kind: str) -> str:
    """Why no such file system can be mounted here, or nothing."""
    if os.geteuid():
        return "only root may mount a file system"
    if shutil.which(KINDS[kind][0]) is None:
        return f"no {KINDS[kind][0]}"
    return "" if Path("/dev/loop-control").exists() else "no loop devices"


class CutDisk:
    """A file system whose power can be cut."""

    def __init__(self, place: Path, kind: str) -> None:
        self.place = place
        self._kind = kind
        self._image = place.with_suffix(".image")
        place.mkdir(parents=True)
        self._image.touch()
        os.truncate(self._image, SIZE_MB << 20)
        subprocess.run([*KINDS[kind], str(self._image)], check=True)
        self._mount()

    def _mount(self) -> None:
        # No barriers are missed for want of `noatime`; it only spares writes that nobody looks at. On a busy machine a
        # cycle takes longer than the five seconds after which ext4 would write everything back by itself.
        options = ["loop", "noatime", *(["commit=300"] if self._kind == "ext4" else [])]
        command = ["mount", "-o", ",".join(options), str(self._image), str(self.place)]
        subprocess.run(command, check=True)

    def cut(self) -> None:
        """From now on nothing is written; calls answer EIO until `restore`."""
        folder = os.open(self.place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(folder, FS_IOC_SHUTDOWN, struct.pack("=I", WITHOUT_LOG_FLUSH))
        finally:
            os.close(folder)

    def restore(self) -> None:
        """Mount what the image has."""
        subprocess.run(["umount", str(self.place)], check=True)
        self._mount()

    def close(self) -> None:
        """Take it away; its image, too."""
        subprocess.run(["umount", "-l", str(self.place)], check=False)
        self._image.unlink(missing_ok=True)


class Writeback(threading.Thread):
    """Writes some pages of some files back, in no order, and now and then commits the file system's journal."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(daemon=True)
        self._folder = folder
        self._random = random.Random(seed)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._ended = threading.Event()

    def run(self) -> None:
        """Until the power is gone."""
        while not self._ended.wait(self._random.random() * 0.02):
            try:
                self._write_some()
            except OSError:
                continue  # the file was deleted meanwhile, or the power is gone

    def _write_some(self) -> None:
        files = [one for one in self._folder.rglob("*") if one.is_file()]
        if not files:
            return
        file = os.open(self._random.choice(files), os.O_RDONLY)
        try:
            if self._random.random() < 0.05:
                os.fsync(file)
                return
            pages = os.fstat(file).st_size // 4096 + 1
            first = self._random.randrange(pages)
            count = self._random.randint(1, 16)
            sync = self._libc.sync_file_range
            range_of = (ctypes.c_int64(first * 4096), ctypes.c_int64(count * 4096))
            sync(file, *range_of, SYNC_FILE_RANGE_WRITE)
        finally:
            os.close(file)

    def end(self) -> None:
        """Stop it; returns when it has."""
        self._ended.set()
        self.join()


class PowerCycle(Cycle):
    """A kill cycle that ends with a cut; in this share of them pages are written back meanwhile."""

    def __init__(
        self,
        kind: str,
        directory: Path,
        scenario: Scenario,
        messages: int,
        seed: int,
        share_back: float = 0.7,
    ) -> None:
        super().__init__(directory, scenario, messages, seed)
        self._disk = CutDisk(self.node.data_dir, kind)
        is_written_back = self.random.random() < share_back
        self._writeback = Writeback(self.node.data_dir, seed) if is_written_back else None
        if self._writeback is not None:
            self._writeback.start()

    def end_node(self) -> None:
        """The power goes first, then the process, and comes back."""
        os.kill(self.node.running().pid, signal.SIGSTOP)
        self._disk.cut()
        if self._writeback is not None:
            self._writeback.end()
        self.node.kill()
        self._disk.restore()

    def close(self) -> None:
        """Unmount."""
        super().close()
        if self._writeback is not None:
            self._writeback.end()
        self._disk.close()


def main() -> int:
    """Run from the command line; the last line has the figures, the status says clean or not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--messages", type=int, default=3000, help="confirmed before each cut")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kind", choices=KINDS, default="ext4")
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    if reason := reason_against(options.kind):
        parser.error(reason)
    with tempfile.TemporaryDirectory(prefix="cut-", dir=options.directory) as place:
        make = partial(PowerCycle, options.kind)
        report = run(options.cycles, options.messages, options.seed, Path(place), CUT, make)
    for problem in report.problems:
        sys.stdout.write(f"PROBLEM {problem}\n")
    sys.stdout.write(f"{options.kind} seed={options.seed} {report.summary()}\n")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
