"""What a node runs with, key by key, and where each value comes from: for operators, never for the node itself.

`rows` is made once, by `load`; the node keeps them for management to show. No state.

Invariant: the value of a key whose name says that it is a secret is never in a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from burrowmq.config.option import Option
from burrowmq.config.setting import Setting
from burrowmq.records import NamedTuple

HIDDEN = "(hidden)"
DEFAULT = "default"
_SECRET = re.compile(
    r"(?:^|[._])(?:pass|password|passphrase|secret|secret_key|token|cookie|psk_identity|encryption_key|acl_token"
    r"|RSAPrivateKey|DSAPrivateKey|PrivateKeyInfo|client_secret)\Z"
)


class Effective(NamedTuple):
    """One key; `source` is `file:line`, a variable, `--set` or `default`; `remark` says why it has no effect."""

    key: str
    value: str | None
    source: str
    remark: str = ""


def is_secret(key: str) -> bool:
    """Return whether the key's name says that nobody should read its value."""
    return _SECRET.search(key) is not None


def place(setting: Setting) -> str:
    """Return where a setting was written."""
    return f"{setting.source}:{setting.line}" if setting.line else setting.source


def rows(
    options: Iterable[Option],
    settings: Mapping[str, Setting],
    idle: Mapping[str, tuple[Setting, str]],
) -> tuple[Effective, ...]:
    """Return every key that has a value, by name: those that were given, idle ones too, and all defaults."""
    found = {
        option.name: Effective(option.name, _shown(option.name, option.default), DEFAULT)
        for option in options
        if option.default is not None and "$" not in option.name
    }
    for key, setting in settings.items():
        found[key] = Effective(key, _shown(key, setting.value), place(setting))
    for key, (setting, reason) in idle.items():
        if settings.get(key, setting) is setting:
            found[key] = Effective(key, _shown(key, setting.value), place(setting), reason)
    return tuple(found[key] for key in sorted(found))


def _shown(key: str, value: str | None) -> str | None:
    return HIDDEN if is_secret(key) else value
