"""A data directory made by the real engine, with messages as a client sends them, for readers of store files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pika import frame
from pika.spec import BasicProperties

from burrowmq.storage.disk.checked_writer import CheckedWriter
from burrowmq.storage.engine import Engine
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.types import PERSISTENT, StoreOptions
from tests.simulation.store_world import SilentObserver
from tests.support.stored_message import FakeMessage

OPTIONS = StoreOptions(segment_size_limit=64 * 1024, segment_entry_count=64, rewrite_above=8 * 1024)


def content(body: bytes, properties: BasicProperties | None = None, frame_max: int = 4096) -> bytes:
    """The header frame and the body frames."""
    frames = [frame.Header(1, len(body), properties or BasicProperties()).marshal()]
    for at in range(0, len(body), frame_max):
        piece = body[at : at + frame_max]
        frames.append(b"\x03\x00\x01" + len(piece).to_bytes(4, "big") + piece + b"\xce")
    return b"".join(frames)


def message(
    body: bytes,
    properties: BasicProperties | None = None,
    *,
    exchange: str = "",
    key: str = "key",
    is_persistent: bool = True,
) -> FakeMessage:
    """A message as the broker hands it to the store."""
    route = b"".join(
        len(part).to_bytes(1, "big") + part for part in (exchange.encode(), key.encode())
    )
    return FakeMessage(
        route, content(body, properties), len(body), PERSISTENT if is_persistent else 0
    )


@dataclass
class StoreOnDisk:
    """An engine that works inline, and its queues."""

    path: Path
    options: StoreOptions = OPTIONS

    def __post_init__(self) -> None:
        self.engine = Engine(
            str(self.path),
            OsFileSystem(),
            self.options,
            SilentObserver(),
            FakeMessage,
            make_writer=CheckedWriter,
        )
        self.engine.recover()
        self.engine.start_inline()
        self.logs: dict[tuple[str, str], QueueLog] = {}

    def log(self, name: str, vhost: str = "/", version: int = 2) -> QueueLog:
        """A queue's log, opened once; the version counts then."""
        found = self.logs.get((vhost, name))
        if found is None:
            found = self.engine.open_queue(vhost, name, durable=True, version=version)
            self.logs[vhost, name] = found
        return found

    def publish(
        self,
        name: str,
        messages: list[FakeMessage],
        vhost: str = "/",
        expiries: list[int] | None = None,
    ) -> None:
        """Append to a queue."""
        log = self.log(name, vhost)
        log.append(log.next_seq, messages, expiries, sum(one.size for one in messages))

    def commit(self) -> None:
        """Make it durable."""
        self.engine.require_sync()
        self.engine.hand_over()

    def upkeep(self) -> None:
        """Acks into the files, compactions."""
        self.commit()
        self.engine.idle()
