"""The certificates in PEM files: the ones that a listener presents and those that it believes.

No state; called by management for the listeners' own files, which operators want to see and to know the end of.
"""

from __future__ import annotations

import contextlib
import re
import ssl

from burrowmq.broker.peer.certificate import Certificate

_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def read(path: str) -> list[Certificate]:
    """The certificates in a file; those that cannot be read are left out, and so is a file that cannot."""
    from burrowmq.broker.peer import fields  # noqa: PLC0415 - 17 MB, for nodes that look at certificates

    try:
        with open(path, encoding="ascii", errors="replace") as file:
            content = file.read()
    except OSError:
        return []
    found = []
    for block in _BLOCK.findall(content):
        with contextlib.suppress(ValueError):
            found.append(fields.read(ssl.PEM_cert_to_DER_cert(block)))
    return found


def blocks(path: str) -> str:
    """The certificates in a file as they stand there, without anything else (a key, say)."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return "\n".join(_BLOCK.findall(file.read()))
    except OSError:
        return ""
