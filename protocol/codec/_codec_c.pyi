# Types of the compiled codec; what each thing does is told in _codec_py.py, its twin.

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

from burrowmq.protocol.codec._sheaf_py import ToQueues

_T = TypeVar("_T")
_Q = TypeVar("_Q")

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
    is_mixed: bool
    def __init__(
        self,
        channel: int,
        address: bytes,
        flags: int,
        messages: list[Message],
        size: int,
        is_mixed: bool = False,
    ) -> None: ...

class AckRun:
    channel: int
    first_tag: int
    last_tag: int
    multiple: bool
    method: int
    requeue: bool
    def __init__(
        self,
        channel: int,
        first_tag: int,
        last_tag: int,
        multiple: bool,
        method: int = 80,
        requeue: bool = False,
    ) -> None: ...

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
    message_max: int
    def __init__(self, frame_max: int) -> None: ...
    @property
    def buffered(self) -> int: ...
    def feed(self, data: bytes) -> list[PublishRun | AckRun | Frame | BadFrame]: ...
    def room(self, most: int) -> memoryview | None: ...
    def filled(self, count: int) -> list[PublishRun | AckRun | Frame | BadFrame]: ...

class Sheaf(Generic[_T]):
    target: _T
    messages: list[Message]
    size: int
    flags: int

def look_up(
    messages: list[Message],
    routes: dict[bytes, _T],
    rings: dict[bytes, Ring[_T]],
    resolve: Callable[[bytes], _T],
    found: list[_T],
) -> None: ...
def sheaves(messages: list[Message], routes: list[_T]) -> list[Sheaf[_T]]: ...
def shares(messages: list[Message], routes: Sequence[ToQueues[_Q]]) -> list[Sheaf[_Q]]: ...
def places(messages: list[Message], some: list[Message]) -> list[int]: ...
def header_fields(raw: bytes, names: frozenset[bytes]) -> bytes: ...
def look_up_by_headers(
    messages: list[Message],
    names: frozenset[bytes],
    with_address: bool,
    routes: dict[bytes, _T],
    resolve: Callable[[bytes, Message], _T],
) -> list[_T]: ...

RING_IS_QUICK: Final[bool]

class Ring(Generic[_T]):
    targets: list[_T]
    def __init__(
        self,
        ends: list[int],
        targets: list[_T],
        seed: int,
        missing: int = 0,
        header: bytes | None = None,
        prop: int = 0,
    ) -> None: ...
    def of_key(self, address: bytes) -> _T: ...

def look_up_by_ring(
    messages: list[Message], ring: Ring[_T], resolve: Callable[[Message], _T]
) -> list[_T]: ...
def hash_octets(octets: bytes, seed: int) -> int: ...
def jump(key: int, bucket_count: int) -> int: ...
def header_flags(payload: bytes) -> int: ...
def load_message(address: bytes, raw: bytes, size: int, flags: int, handle: int) -> Message: ...
def take(messages: deque[Message], max_count: int, max_bytes: int) -> tuple[list[Message], int]: ...
def body_bytes(messages: Iterable[Message]) -> int: ...
def raw_bytes(messages: Iterable[Message]) -> int: ...
def encode_deliver(
    channel: int,
    consumer_tag: bytes,
    first_tag: int,
    redelivered: bool,
    messages: list[Message],
    frame_max: int,
) -> bytes: ...
def deliver_parts(
    channel: int,
    consumer_tag: bytes,
    first_tag: int,
    redelivered: bool,
    messages: list[Message],
    frame_max: int,
) -> list[bytes]: ...
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
def deadlines(messages: list[Message], ttl_ms: int, now_ms: int) -> list[int]: ...
def are_of_user(messages: list[Message], name: bytes) -> bool: ...
def by_priority(
    messages: list[Message], top: int, due: list[int] | None
) -> list[tuple[int, list[Message], int, list[int] | None]]: ...
def first_deaths(
    messages: Sequence[Message], header_max: int
) -> list[tuple[list[Message], bytes | None, bool]]: ...
def with_fields(messages: list[Message], address: bytes, fields: bytes) -> list[Message]: ...
