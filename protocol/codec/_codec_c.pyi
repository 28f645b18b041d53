# Types of the compiled codec; what each thing does is told in _codec_py.py, its twin.

from collections import deque
from collections.abc import Iterable
from typing import Final

NAME: Final[str]
CONSTANTS: Final[dict[str, int]]

class Message:
    address: bytes
    raw: bytes
    size: int
    flags: int
    channel: int
    frame_max: int
    handle: int
    def __init__(
        self,
        address: bytes,
        raw: bytes,
        size: int,
        flags: int,
        channel: int,
        frame_max: int,
        handle: int = -1,
    ) -> None: ...

class PublishRun:
    channel: int
    address: bytes
    flags: int
    messages: list[Message]
    size: int
    def __init__(
        self, channel: int, address: bytes, flags: int, messages: list[Message], size: int
    ) -> None: ...

class AckRun:
    channel: int
    first_tag: int
    last_tag: int
    multiple: bool
    def __init__(self, channel: int, first_tag: int, last_tag: int, multiple: bool) -> None: ...

class Frame:
    type: int
    channel: int
    payload: bytes
    def __init__(self, frame_type: int, channel: int, payload: bytes) -> None: ...

class BadFrame:
    type: int
    channel: int
    payload: bytes
    too_large: bool
    value: int
    def __init__(
        self, frame_type: int, channel: int, payload: bytes, too_large: bool, value: int
    ) -> None: ...

class HotCodec:
    frame_max: int
    def __init__(self, frame_max: int) -> None: ...
    @property
    def buffered(self) -> int: ...
    def feed(self, data: bytes) -> list[PublishRun | AckRun | Frame | BadFrame]: ...

def header_flags(payload: bytes) -> int: ...
def load_message(address: bytes, raw: bytes, size: int, flags: int, handle: int) -> Message: ...
def take(messages: deque[Message], max_count: int, max_bytes: int) -> tuple[list[Message], int]: ...
def body_bytes(messages: Iterable[Message]) -> int: ...
def encode_deliver(
    channel: int,
    consumer_tag: bytes,
    first_tag: int,
    redelivered: bool,
    messages: list[Message],
    frame_max: int,
) -> bytes: ...
def encode_get_ok(
    channel: int,
    tag: int,
    redelivered: bool,
    message: Message,
    message_count: int,
    frame_max: int,
) -> bytes: ...
def encode_return(
    channel: int, code: int, text: str, message: Message, frame_max: int
) -> bytes: ...
def encode_ack(channel: int, tag: int, multiple: bool) -> bytes: ...
def encode_nack(channel: int, tag: int, multiple: bool, requeue: bool) -> bytes: ...
def split_address(address: bytes) -> tuple[bytes, bytes]: ...
def join_address(exchange: bytes, routing_key: bytes) -> bytes: ...
