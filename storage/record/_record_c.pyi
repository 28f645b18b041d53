# What the compiled record packer offers: the functions of _record_py.py, and two for its tests.

from array import array
from collections.abc import Sequence

from burrowmq.storage.types import StoredMessage

NAME: str

def crc_folds() -> bool: ...
def choose_crc(fold: bool) -> None: ...
def crc32(data: bytes | bytearray | memoryview, seed: int) -> int: ...
def pack_records(
    messages: Sequence[StoredMessage],
    first_slot: int,
    segment_no: int,
    seed: int,
    start: int,
    limit: int,
) -> tuple[bytes, array[int]]: ...
def assign_handles(
    messages: Sequence[StoredMessage], start: int, count: int, first_handle: int
) -> None: ...
def unpack_record(
    buffer: bytes | bytearray | memoryview, offset: int, segment_no: int, slot: int, seed: int
) -> tuple[bytes, bytes, int, int] | None: ...
def unpack_many(
    buffer: bytes | bytearray | memoryview,
    offsets: Sequence[int],
    segment_no: int,
    slots: Sequence[int],
    seed: int,
    is_checked: bool = True,
) -> list[tuple[bytes, bytes, int, int] | None]: ...
def scan(
    buffer: bytes | bytearray | memoryview, start: int, seed: int
) -> tuple[array[int], array[int], array[int], array[int], int]: ...
def ranges_of(handles: Sequence[int]) -> list[tuple[int, int]]: ...
def message_columns(
    messages: Sequence[StoredMessage], start: int, count: int
) -> tuple[array[int], array[int], array[int]]: ...
def pack_index_entries(
    columns: tuple[bytes, bytes, bytes, array[int], array[int], array[int], array[int]],
    first_slot: int,
    segment_no: int,
    seed: int,
) -> bytes: ...
def pack_stored(
    messages: Sequence[StoredMessage],
    expiries: Sequence[int] | None,
    first_slot: int,
    segment_no: int,
    seed: int,
    location: int,
) -> tuple[bytes, bytes, bool] | None: ...
def pack_log_writes(seed: int, kind: int, writes: list[tuple[bytes, int, bytes]]) -> bytes: ...
def unpack_index_entries(
    buffer: bytes | bytearray | memoryview, first_slot: int, segment_no: int, seed: int
) -> tuple[bytes, bytes, bytes, array[int], array[int], array[int], array[int]]: ...
