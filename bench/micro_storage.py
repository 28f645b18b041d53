"""What the store costs by itself: append, restart both ways, drain.

    python -m bench.micro_storage [--messages 1000000] [--size 1000] [--version 2] [--confirm fsync] [--dir DIR]

The engine runs as in the broker, with its disk and reader threads; a plain queue stands for the event loop. One lazy
queue takes runs of 128 messages with at most 4,096 unconfirmed (or none waited for, with --no-confirm), then the node
stops cleanly and starts, is abandoned as kill -9 would and starts, and the queue is drained in reads of 2,048.
BURROWMQ_PURE=1 measures the interpreted packer. Prints one JSON object; times are wall, CPU is the whole process.
"""

from __future__ import annotations

import argparse
import gc
import json
import queue
import resource
import shutil
import tempfile
import time
from collections.abc import Callable

from burrowmq.protocol.codec import NAME, Message, load_message
from burrowmq.storage import record
from burrowmq.storage.engine import Engine
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.types import PERSISTENT, StoreOptions

_RUN = 128
_WINDOW = 4096
_READ = 2048


class _Silent:
    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


class _Loop:
    """The event loop's part: callbacks posted by the store's threads."""

    def __init__(self) -> None:
        self.inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def run_until(self, is_done: Callable[[], bool]) -> None:
        while not is_done():
            self.inbox.get(timeout=60)()

    def run_next(self) -> None:
        self.inbox.get(timeout=60)()

    def run_ready(self) -> None:
        while not self.inbox.empty():
            self.inbox.get()()


class _Clock:
    """Wall and CPU time of a stretch, for each message."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def per_message(self, count: int) -> dict[str, float]:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return {
            "seconds": round(wall, 3),
            "wall_us": round(wall / count * 1e6, 3),
            "cpu_us": round(cpu / count * 1e6, 3),
        }


def _raw(size: int) -> bytes:
    header = b"\x00\x3c\x00\x00" + size.to_bytes(8, "big") + b"\x10\x00\x02"
    body = b"x" * size
    frames = b"\x02\x00\x01" + len(header).to_bytes(4, "big") + header + b"\xce"
    return frames + b"\x03\x00\x01" + size.to_bytes(4, "big") + body + b"\xce"


def _engine(directory: str, confirm: str) -> Engine:
    return Engine(directory, OsFileSystem(), StoreOptions(confirm=confirm), _Silent(), load_message)


def _append(engine: Engine, log: QueueLog, loop: _Loop, arguments: argparse.Namespace) -> None:
    raw = _raw(arguments.size)
    address = b"\x00\x05queue"
    frame_max = len(raw)
    paused = [False]
    committed = [0]
    staged: dict[int, int] = {}
    engine.on_backlog = lambda is_over: paused.__setitem__(0, is_over)
    engine.on_committed = lambda epoch: committed.__setitem__(0, epoch)
    count = arguments.messages
    is_confirmed = not arguments.no_confirm
    seq = 0
    while seq < count:
        runs = min(_RUN, count - seq)
        # Bodies differ so that nothing is shared: bytes(raw) alone would be one object.
        messages = [
            Message(
                address, raw[:-9] + b"%08d" % at + b"\xce", arguments.size, PERSISTENT, 1, frame_max
            )
            for at in range(seq, seq + runs)
        ]
        log.append(seq, messages, None, runs * arguments.size)
        seq += runs
        if is_confirmed:
            engine.require_sync()
            staged[engine.epoch] = seq
        engine.hand_over()
        loop.run_ready()
        loop.run_until(lambda: not paused[0])
        if is_confirmed:
            while committed[0] and seq - staged.get(committed[0], 0) > _WINDOW:
                loop.run_next()
    last = engine.epoch if not engine._collecting.is_empty() else engine.epoch - 1
    engine.hand_over()
    loop.run_until(lambda: committed[0] >= last)


def _drain(log: QueueLog, loop: _Loop, count: int) -> int:
    seq = found = 0
    while found < count:
        answers: list[tuple[int, int]] = []
        log.read(
            seq,
            _READ,
            1 << 30,
            lambda loaded, next_seq, answers=answers: answers.append((len(loaded), next_seq)),
        )
        loop.run_until(lambda answers=answers: bool(answers))
        got, seq = answers[0]
        found += got
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--version", type=int, choices=(1, 2), default=2)
    parser.add_argument("--confirm", choices=("fsync", "written"), default="fsync")
    parser.add_argument("--no-confirm", action="store_true", help="nobody waits for any commit")
    parser.add_argument("--dir", help="where to make the data directory")
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="micro-storage-", dir=arguments.dir)
    count = arguments.messages
    result: dict[str, object] = {
        "codec": NAME,
        "packer": record.NAME,
        "messages": count,
        "size": arguments.size,
        "version": arguments.version,
        "confirm": "nobody waits" if arguments.no_confirm else arguments.confirm,
    }
    try:
        loop = _Loop()
        engine = _engine(directory, arguments.confirm)
        engine.recover()
        engine.start(loop.inbox.put)
        log = engine.open_queue("/", "queue", durable=True, version=arguments.version)
        clock = _Clock()
        _append(engine, log, loop, arguments)
        result["append"] = clock.per_message(count)
        result["queue_memory_bytes"] = log.memory_bytes
        stats = engine.stats()
        result["batches"], result["file_syncs"] = stats["commits"], stats["file_syncs"]
        clock = _Clock()
        engine.close()
        result["stop_s"] = clock.per_message(1)["seconds"]
        for kind in ("clean", "unclean"):
            gc.collect()
            engine = _engine(directory, arguments.confirm)
            clock = _Clock()
            report = engine.recover()
            result[f"start_{kind}_s"] = clock.per_message(1)["seconds"]
            assert report.messages == count, report
            assert report.clean == (kind == "clean")
        engine.start(loop.inbox.put)
        log = engine.open_queue("/", "queue", durable=True, version=arguments.version)
        clock = _Clock()
        _drain(log, loop, count)
        result["drain"] = clock.per_message(count)
        result["rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        engine.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
