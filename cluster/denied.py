"""What a server says when it does not pass something on: an `-ERR` that names a subject, and no answer to anybody.

    Permissions Violation for Publish to "$JS.API.STREAM.CREATE.Q_0a1b..."
    Permissions Violation for Subscription to "_INBOX.0a1b....>"
    maximum subscriptions exceeded

Owns no state. Called by `broker.replicated.front_end`.

Source: nats-server 2.15, server/client.go: pubPermissionViolation, subPermissionViolation, maxSubsExceeded.
"""

from __future__ import annotations

import re
from typing import Final

_LASTING: Final = ("permissions violation", "maximum subscriptions")
"""How those begin after which the connection goes on; all others end it."""
_PUBLISHED: Final = re.compile(r'Permissions Violation for Publish to "([^"\\]*)"')
_OWN: Final = re.compile(r"[0-9a-f]{24,}|[0-9]+")
"""What tells one queue, row or front-end from another."""


def is_lasting(text: str) -> bool:
    """Whether the connection goes on, and the same will be refused again."""
    return text.lower().startswith(_LASTING)


def published_subject(text: str) -> str:
    """To which subject something was sent that went nowhere; "" where it is not about that."""
    found = _PUBLISHED.match(text)
    return "" if found is None else found[1]


def kind_of(text: str) -> str:
    """What is the same for all queues: one permission that is missing is told of once, and not for each of them."""
    return _OWN.sub("*", text)
