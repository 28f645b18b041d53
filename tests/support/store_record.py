"""STORE.json, changed by a test: with a check that fits, or as nodes from before there was one wrote it."""

from __future__ import annotations

import json
import zlib


def changed(content: bytes, *, has_check: bool = True, **values: object) -> bytes:
    """The text with other values."""
    text = json.loads(content) | values
    text.pop("check", None)
    if has_check:
        text["check"] = f"{zlib.crc32(json.dumps(text).encode()):08x}"
    return json.dumps(text).encode()
