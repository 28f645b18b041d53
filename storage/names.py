"""What the files of a queue are called: the directory they lie in, and the file there that says whose they are.

A queue with priorities has a directory for each of its levels, in the vhost's `queues`:

    <hash>           level 0, and queues without priorities: SHA-256 of vhost, NUL, queue
    <hash>-<level>   level 1 and up: SHA-256 of vhost, NUL, queue, NUL, level in decimal digits

The hash is the first 24 hexadecimal digits. A queue may have any name, also one that ends in a NUL and digits: only
the `-` keeps its directory from being that of another queue's level. Checksums start from the hash alone (`record`).

The file in it, `.queue_name`, is UTF-8 text:

    VHOST: "/"        JSON string
    QUEUE: "orders"   JSON string
    LEVEL: 1          decimal; a file without this line is of level 0
    INDEX: v2         the version of new index segments

Written by `storage.queue.disk` when it makes the directory, by conversion at its end and by takeover; read by recovery
and burrowmq-store. The directory's own name is the check of what the file says. State: none. Invariant: any name fits a
line.
"""

from __future__ import annotations

import hashlib
import json

from burrowmq.records import NamedTuple

NAME_FILE = ".queue_name"


class QueueNames(NamedTuple):
    """Whose files they are: one level of a queue, the only one unless it has priorities."""

    vhost: str
    name: str
    level: int = 0

    @property
    def directory(self) -> str:
        """The name of the directory."""
        if not self.level:
            return _hash(self.vhost, self.name)
        return f"{_hash(self.vhost, self.name, str(self.level))}-{self.level}"


def level_in(directory: str) -> int:
    """Give the level that a queue's directory is of, as its name says; 0 where it says none."""
    level = directory.rpartition("/")[2].partition("-")[2]
    return int(level) if level.isdecimal() else 0


def vhost_directory(vhost: str) -> str:
    """Give the name of a vhost's directory."""
    return _hash(vhost)


def _hash(*names: str) -> str:
    return hashlib.sha256("\0".join(names).encode()).hexdigest()[:24]


def pack_names(names: QueueNames, version: int) -> bytes:
    """Give the text that names a queue in its directory: JSON strings, so that any name fits a line."""
    text = (
        f"VHOST: {json.dumps(names.vhost)}\nQUEUE: {json.dumps(names.name)}\n"
        f"LEVEL: {names.level}\nINDEX: v{version}\n"
    )
    return text.encode()


def parse_names(data: bytes) -> QueueNames | None:
    """Give what the text names, None when it is not whole. The directory's name is the check of it."""
    fields = _fields(data)
    try:
        vhost, name = (str(json.loads(fields[key])) for key in ("VHOST", "QUEUE"))
        (vhost + name).encode()  # half of a surrogate pair is no name
        return QueueNames(vhost, name, int(fields.get("LEVEL", "0")))
    except (KeyError, ValueError, RecursionError):
        return None


def parse_version(data: bytes) -> int:
    """Give the version that the text says new index segments have; 2 when it does not."""
    return 1 if _fields(data).get("INDEX") == "v1" else 2


def _fields(data: bytes) -> dict[str, str]:
    lines = data.decode("utf-8", "replace").splitlines()
    return {key: value for key, _, value in (line.partition(": ") for line in lines)}
