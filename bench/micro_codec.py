"""Times the hot codec by itself: microseconds of processor time a message, best of five.

Run it as ``python -m bench.micro_codec``; it prints a line a stage for each of the two codecs. The
figures regress when a change makes the parser or the encoder touch a message more often than it did.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from pamqp import body, commands, frame, header

from burrowmq.protocol.codec import _codec_py

COUNT = 2000


def wire(size: int, varying: bool) -> bytes:
    """COUNT publishes as a client would send them."""
    parts = []
    for number in range(COUNT):
        properties = commands.Basic.Properties(
            delivery_mode=1, message_id=f"m{number:08}" if varying else None
        )
        length = size + number % 64 if varying else size
        parts.append(frame.marshal(commands.Basic.Publish(routing_key="queue"), 1))
        parts.append(frame.marshal(header.ContentHeader(0, length, properties), 1))
        parts.append(frame.marshal(body.ContentBody(b"x" * length), 1))
    return b"".join(parts)


def best(work: Callable[[], object]) -> float:
    """Processor time of one message in microseconds."""
    results = []
    for _ in range(5):
        gc.collect()
        begin = time.process_time()
        for _ in range(5):
            work()
        results.append((time.process_time() - begin) / 5 / COUNT * 1e6)
    return min(results)


def parse(codec: ModuleType, data: bytes) -> object:
    """Parse everything in one go, as from one large read."""
    return codec.HotCodec(131072).feed(data)


def measure(codec: ModuleType) -> None:
    """Print the stages of one codec."""
    acks = b"".join(codec.encode_ack(1, tag, False) for tag in range(1, COUNT + 1))
    for label, data in (
        ("parse publish 16 B", wire(16, False)),
        ("parse publish 16-80 B varying", wire(16, True)),
        ("parse publish 1 KB", wire(1024, False)),
        ("parse ack", acks),
    ):
        show(codec, label, best(partial(parse, codec, data)))
    for label, size, channel in (
        ("encode deliver 16 B", 16, 1),
        ("encode deliver 16 B, other channel", 16, 2),
        ("encode deliver 1 KB", 1024, 1),
    ):
        messages = codec.HotCodec(131072).feed(wire(size, False))[0].messages
        encode = partial(codec.encode_deliver, channel, b"tag", 1, False, messages, 131072)
        show(codec, label, best(encode))
    queue = deque(codec.HotCodec(131072).feed(wire(16, False))[0].messages)

    def rotate() -> None:
        queue.extend(codec.take(queue, COUNT, 1 << 30)[0])

    show(codec, "take and extend", best(rotate))


def show(codec: ModuleType, label: str, microseconds: float) -> None:
    """One line of the report."""
    print(f"{codec.NAME:12} {label:36} {microseconds:8.3f} us")


def main() -> int:
    """Measure what is there."""
    measure(_codec_py)
    if find_spec("burrowmq.protocol.codec._codec_c") is None:
        print("compiled     not built")
        return 1
    measure(import_module("burrowmq.protocol.codec._codec_c"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
