"""What is recorded of a whole store: its format and limits from the first start on, and the terms of a clean stop.

`terms` holds a JSON text (the queues and their index segments) and one snapshot of reference counts for each vhost,
little endian: magic "BQT1", u32 number of parts, for each part u32 length and the bytes, u32 CRC-32 of all before.
`CLEAN` holds the CRC of the terms and is written last, when nothing is written any more; a start removes it before it
does anything else. `STORE.json` records the format, the identity and the limits that the files were made with.

State: none but what a `RecordedStore` holds. Called by recovery, takeover and clean_stop. Source: RabbitMQ's
rabbit_recovery_terms for the idea.
"""

from __future__ import annotations

import errno
import json
import os
import zlib
from typing import cast

from burrowmq.records import dataclass
from burrowmq.storage.errors import LimitChanged, StoreRefused, UnknownFormat, WriteFailed
from burrowmq.storage.files.cache import NO_ROOM, parent_of, write_error
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.types import JsonValue, StoreOptions

STORE_FILE = "STORE.json"
TERMS_FILE = "terms"
CLEAN_FILE = "CLEAN"
SEGMENT_MARGIN = 64
_RESERVED = 4096
_IDENTITY_BYTES = 16
_MOST = (1 << 32) - 1  # of any number there: files hold them in four bytes
_MAGIC = b"BQT1"
# How the sync of a directory fails that this process cannot have made a name in.
_NOT_OURS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL})
NAMED_LEVELS = 2
"""The first format in which levels have names of their own; `takeover` brings an older store there."""
WITH_LOG = 3
"""The format of a store with a commit log, in which messages may be that are nowhere else."""
FORMAT = 3
"""The newest of the whole store. 1, from before version 0.1.0, had no names for the levels of priority queues:
`takeover`. 2 has no commit log."""
_CHECK_KEY = "check"
FILE_SIZE_KEY = "msg_store_file_size_limit"
ENTRY_COUNT_KEY = "queue_index_segment_entry_count"
_KEYS_WITHOUT_CHECK = {
    "format",
    "identity",
    "checksum",
    "segment_ceiling",
    "taking_over",
    FILE_SIZE_KEY,
    ENTRY_COUNT_KEY,
}


def _new_identity() -> bytes:
    return os.urandom(_IDENTITY_BYTES)


def replace_file(filesystem: FileSystem, path: str, data: bytes) -> None:
    """Put a whole file in place durably: written aside, synced, renamed. Raises OSError.

    One call that fails is no reason to give up, but for that which syncs the name: a second one says nothing of it.
    """
    try:
        _put_in_place(filesystem, path, data)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        _put_in_place(filesystem, path, data)
    filesystem.fsync_dir(parent_of(path))


def _put_in_place(filesystem: FileSystem, path: str, data: bytes) -> None:
    aside = f"{path}.tmp"
    if filesystem.exists(aside):
        filesystem.unlink(aside)
    file = filesystem.create(aside)
    file.pwrite(data, 0)
    file.fdatasync()
    file.close()
    filesystem.rename(aside, path)


@dataclass(slots=True)
class RecordedStore:
    """What STORE.json holds.

    Shared store segments below `ceiling` may be in use; `first_segment` is where new stores begin: at the ceiling that
    was found, so that no number is used twice. `taking_over`:
    directories may have the names of format 1.
    """

    path: str
    identity: bytes
    limits: dict[str, int]
    ceiling: int = 0
    first_segment: int = 0
    taking_over: bool = False
    has_log: bool = False

    def begin_above(self, segment_no: int) -> None:
        """New stores begin at this segment number at least."""
        self.first_segment = max(self.first_segment, segment_no)

    def begin_takeover(self, filesystem: FileSystem) -> None:
        """From here on directories may have their names of format 1, or new ones. Raises WriteFailed."""
        self.taking_over = True
        write_recorded(filesystem, self)

    def set_log(self, filesystem: FileSystem, has_log: bool) -> None:
        """The store has a commit log from here on, or has none any more. Raises WriteFailed."""
        self.has_log = has_log
        write_recorded(filesystem, self)

    def end_takeover(self, filesystem: FileSystem) -> None:
        """All directories have their new names. Raises WriteFailed."""
        self.taking_over = False
        write_recorded(filesystem, self)


def recorded_store(filesystem: FileSystem, data_dir: str, options: StoreOptions) -> RecordedStore:
    """Give what is recorded about a data directory; a new one gets its record. Raises StoreRefused before it writes."""
    path = f"{data_dir}/{STORE_FILE}"
    limits = {
        FILE_SIZE_KEY: options.segment_size_limit,
        ENTRY_COUNT_KEY: options.segment_entry_count,
    }
    if not filesystem.exists(path):
        if filesystem.exists(f"{data_dir}/vhosts"):
            raise StoreRefused(f"{data_dir} has a store but no {STORE_FILE}: restore that file")
        filesystem.mkdir(data_dir)
        _hold_on_to(filesystem, data_dir)
        recorded = RecordedStore(path, _new_identity(), limits)
        reserve_segments(filesystem, recorded)
        return recorded
    recorded = read_recorded(filesystem, data_dir)
    if recorded.limits != limits:
        raise LimitChanged(_limits_text(data_dir, recorded.limits, limits))
    return recorded


def _hold_on_to(filesystem: FileSystem, data_dir: str) -> None:
    """Make the names that lead to a new data directory durable, whoever made them. Raises OSError.

    One that may not be read, or is of a file system that cannot be written, is none that was made just now.
    """
    parent = data_dir
    while parent not in ("", ".", "/"):
        parent = os.path.dirname(parent.rstrip("/"))
        try:
            filesystem.fsync_dir(parent or ".")
        except OSError as error:
            if error.errno not in _NOT_OURS:
                raise
            return


def read_recorded(filesystem: FileSystem, data_dir: str) -> RecordedStore:
    """Give what STORE.json of an existing store says. Raises StoreRefused."""
    path = f"{data_dir}/{STORE_FILE}"
    try:
        return _recorded(path, json.loads(filesystem.read_file(path)))
    except (ValueError, RecursionError) as error:
        raise StoreRefused(f"{path} cannot be read: {error}; restore that file") from error


def _recorded(path: str, found: JsonValue) -> RecordedStore:
    """Make the record of what was read. Raises UnknownFormat or ValueError."""
    text = found if isinstance(found, dict) else {}
    _look_for_damage(text)
    version = _number(text, "format", -_MOST)
    if not 1 <= version <= FORMAT:  # what else another version says there is for that to read
        raise UnknownFormat(
            f"{path}: format {version} is not known, this version knows {FORMAT}: start the version that wrote it"
        )
    limits = {name: _number(text, name, 1) for name in (FILE_SIZE_KEY, ENTRY_COUNT_KEY)}
    ceiling = _number(text, "segment_ceiling", 0)
    taking_over = text.get("taking_over", False)
    if taking_over is not True and taking_over is not False:
        raise ValueError(f"taking_over is {json.dumps(taking_over)}")
    taking_over = taking_over or version < NAMED_LEVELS
    return RecordedStore(
        path, _identity(text), limits, ceiling, ceiling, taking_over, version >= WITH_LOG
    )


def _number(text: dict[str, JsonValue], name: str, least: int) -> int:
    """Give a whole number that the text holds. Raises ValueError."""
    value = text.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST:
        raise ValueError(f"{name} is {json.dumps(value)}" if name in text else f"no {name} in it")
    return value


def _identity(text: dict[str, JsonValue]) -> bytes:
    value = text.get("identity")
    identity = bytes.fromhex(value) if isinstance(value, str) else b""
    if len(identity) != _IDENTITY_BYTES:
        raise ValueError(f"its identity is not of {_IDENTITY_BYTES} bytes")
    return identity


def _look_for_damage(text: dict[str, JsonValue]) -> None:
    """Refuse a text whose check does not fit. Raises ValueError. One of before 0.1.1 has none.

    A flipped bit may make format 2 of 3, and a start would remove the log with all that is in it.
    """
    check = text.pop(_CHECK_KEY, None)
    if check is None and not text.keys() <= _KEYS_WITHOUT_CHECK:
        raise ValueError("a name in it is not known")
    if check is not None and check != _check_of(text):
        raise ValueError("it is damaged")


def _check_of(text: dict[str, JsonValue]) -> str:
    return f"{zlib.crc32(json.dumps(text).encode()):08x}"


def _limits_text(data_dir: str, found: dict[str, int], wanted: dict[str, int]) -> str:
    """Say which limits differ and both ways out of it."""
    changed = [name for name, value in wanted.items() if found[name] != value]
    differences = ", and ".join(
        f"{name} is {wanted[name]} but the store in {data_dir} was made with {found[name]}"
        for name in changed
    )
    return (
        f"{differences}: set it back, or write the store anew with `burrowmq-store --data-dir {data_dir} resegment"
        f" --file-size {wanted[FILE_SIZE_KEY]} --entries {wanted[ENTRY_COUNT_KEY]}`"
    )


def reserve_segments(filesystem: FileSystem, recorded: RecordedStore) -> None:
    """Reserve segment numbers from `first_segment` on, durably: the next start uses none of them. Raises WriteFailed.

    A number must not be used twice even when its file is gone: a power cut may take back the ack of an index entry that
    names it.
    """
    known, recorded.ceiling = recorded.ceiling, recorded.first_segment + _RESERVED
    try:
        write_recorded(filesystem, recorded)
    except WriteFailed:
        recorded.ceiling = known
        raise


def recorded_text(recorded: RecordedStore) -> bytes:
    """Give what STORE.json says."""
    text: dict[str, JsonValue] = {
        "format": WITH_LOG if recorded.has_log else NAMED_LEVELS,
        "identity": recorded.identity.hex(),
        "checksum": "crc32",
        "segment_ceiling": recorded.ceiling,
        **recorded.limits,
    }
    if recorded.taking_over:
        text["taking_over"] = True
    text[_CHECK_KEY] = _check_of(text)
    return json.dumps(text).encode()


def write_recorded(filesystem: FileSystem, recorded: RecordedStore) -> None:
    """Write STORE.json anew, durably. Raises WriteFailed."""
    try:
        replace_file(filesystem, recorded.path, recorded_text(recorded))
    except OSError as error:
        raise write_error(recorded.path, error) from error


def write_terms(filesystem: FileSystem, data_dir: str, parts: list[bytes]) -> None:
    """Keep the terms, then mark the stop as clean. Raises OSError."""
    data = _MAGIC + len(parts).to_bytes(4, "little")
    data += b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    check = zlib.crc32(data).to_bytes(4, "little")
    replace_file(filesystem, f"{data_dir}/{TERMS_FILE}", data + check)
    replace_file(filesystem, f"{data_dir}/{CLEAN_FILE}", check)


def take_terms(filesystem: FileSystem, data_dir: str) -> list[bytes] | None:
    """Give the terms of a clean stop, None after another one. The mark is durably gone when this returns."""
    clean = f"{data_dir}/{CLEAN_FILE}"
    if not filesystem.exists(clean):
        return None
    parts = read_terms(filesystem, data_dir)
    filesystem.unlink(clean)
    filesystem.fsync_dir(data_dir)
    return parts


def read_terms(filesystem: FileSystem, data_dir: str) -> list[bytes] | None:
    """Give the terms of the clean stop that CLEAN stands for, None where they are not whole. Raises OSError."""
    mark = filesystem.read_file(f"{data_dir}/{CLEAN_FILE}")
    try:
        data = filesystem.read_file(f"{data_dir}/{TERMS_FILE}")
    except FileNotFoundError:
        return None
    if (
        data[:4] != _MAGIC
        or data[-4:] != mark
        or zlib.crc32(data[:-4]).to_bytes(4, "little") != mark
    ):
        return None
    parts: list[bytes] = []
    at = 8
    for _ in range(int.from_bytes(data[4:8], "little")):
        size = int.from_bytes(data[at : at + 4], "little")
        parts.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return parts


def dump_json(value: JsonValue) -> bytes:
    """Give a value as a part of the terms."""
    return json.dumps(value, separators=(",", ":")).encode()


def load_json(data: bytes) -> JsonValue:
    """Give the value of a part."""
    return cast(JsonValue, json.loads(data))
