"""The file that names a queue in its directory: who it is, and which version it is of.

Written by queue_disk when it makes the directory and by conversion at its end, read by recovery and burrowmq-store. The
directory's own name is the check of what the file says. State: none. Invariant: any name fits a line.
"""

from __future__ import annotations

import json

NAME_FILE = ".queue_name"


def pack_names(vhost: str, name: str, version: int) -> bytes:
    """Give the text that names a queue in its directory: JSON strings, so that any name fits a line."""
    text = f"VHOST: {json.dumps(vhost)}\nQUEUE: {json.dumps(name)}\nINDEX: v{version}\n"
    return text.encode()


def parse_names(data: bytes) -> tuple[str, str] | None:
    """Give (vhost, queue) from the text, None when it is not whole. The directory's name is the check of both."""
    lines = data.decode("utf-8", "replace").splitlines()
    if len(lines) < 2:
        return None
    try:
        vhost, name = (json.loads(line.partition(": ")[2]) for line in lines[:2])
    except ValueError:
        return None
    return str(vhost), str(name)
