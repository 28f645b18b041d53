"""RabbitMQ's Erlang-term files (advanced.config, the old rabbitmq.config): told from others, and what to write instead.

They are not read: no setting in them has an effect, which is said with the lines of rabbitmq.conf that have the same.
Called by `load`. No state.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from burrowmq.config.effective import is_secret

_SPACE = r"(?:\s|%[^\n]*(?:\n|\Z))*"
_TERMS = re.compile(rf"{_SPACE}\[{_SPACE}[\]{{]")
_EMPTY = re.compile(rf"{_SPACE}\[{_SPACE}\]{_SPACE}\.?{_SPACE}\Z")
_PAIR = re.compile(r'\{\s*([a-z]\w*)\s*,\s*(?:<<)?("[^"]*"|[\w.]+)(?:>>)?\s*\}')
_SHOWN = 5
SIZE_MAX = 1 << 20


def is_erlang(content: str) -> bool:
    """Return whether a file is a list of Erlang terms."""
    return _TERMS.match(content) is not None


def is_empty(content: str) -> bool:
    """Return whether it sets nothing."""
    return _EMPTY.match(content) is not None or not re.sub(r"%[^\n]*", "", content).strip()


def instead(content: str, is_key: Callable[[str], bool]) -> str:
    """Return the lines of rabbitmq.conf to write for what is set, as far as a key has the same name."""
    pairs = _PAIR.findall(re.sub(r"%[^\n]*", "", content))
    lines = [
        f"{name} = {'...' if is_secret(name) else value.strip(chr(34))}"
        for name, value in pairs
        if is_key(name)
    ]
    more = ", ..." if len(lines) > _SHOWN else ""
    return f" (such as {', '.join(lines[:_SHOWN])}{more})" if lines else ""
