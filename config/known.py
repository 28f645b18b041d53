"""Whether RabbitMQ has a key that no declaration of ours honours, and why it does nothing here.

A file that works with RabbitMQ 3.13 starts this broker unchanged, and nobody is left believing that a setting is in
force when it is not: each key of `idle` becomes a warning, never an error. Called by `load`.

Invariant: the declarations are asked first, so a declared key is never taken for one of these.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache

from burrowmq.config.idle import AGREES, IDLE
from burrowmq.config.tls import OLD_VERSIONS

_LINGER = "a close that waited would hold up everybody: there is one loop"
_NOT_OFFERED = "OpenSSL no longer offers it"
_MECHANISM = "it is not offered; PLAIN, AMQPLAIN and EXTERNAL are"

# Values of declared keys that are checked and do nothing (`[1-9]*` means all that begin so), with the reason.
NOT_HERE: dict[str, tuple[tuple[str, ...], str]] = {
    "tcp_listen_options.linger.timeout": (("[1-9]*",), _LINGER),
    "auth_mechanisms.$n": (("ANONYMOUS", "RABBIT-CR-DEMO"), _MECHANISM),
    "credential_validator.validation_backend": (
        ("[!r]*", "r[!a]*", "rabbit_[!c]*"),
        "there is no such rule here, and no password passes it",
    ),
    "definitions.import_backend": (
        ("https", "rabbit_definitions_import_https"),
        "definitions are read from a file: name it with load_definitions",
    ),
    **{
        f"{prefix}.versions.$n": (OLD_VERSIONS, _NOT_OFFERED)
        for prefix in (
            "ssl_options",
            "management.ssl",
            "management.listener.ssl_opts",
            "prometheus.ssl",
        )
    },
}


def _expression(name: str) -> str:
    escaped = re.escape(name).replace(r"\$", r"[^.]+")
    return escaped[:-2] + ".+" if escaped.endswith(r"\*") else escaped


@cache  # few configurations have such a key, and to compile them all takes 8 ms
def _reasons() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile("|".join(f"(?:{_expression(name)})" for name in names.split())), reason)
        for reason, names in IDLE
    )


@cache
def _agreeing() -> tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]:
    return tuple((re.compile(_expression(name)), values) for name, values in AGREES.items())


def why_idle(key: str) -> str | None:
    """Return why a key of RabbitMQ's that we do not declare does nothing here; None for one that it does not have."""
    return next((reason for form, reason in _reasons() if form.fullmatch(key)), None)


def agrees(key: str, value: str) -> bool:
    """Return whether this value of an idle key says what happens anyway."""
    return any(value in values for form, values in _agreeing() if form.fullmatch(key))


def why_not_here(key: str, value: str) -> str | None:
    """Return why this value of a declared key (`$n` and all) does nothing; None when it has its effect."""
    values, reason = NOT_HERE.get(key, ((), ""))
    return reason if any(fnmatchcase(value, each) for each in values) else None


def example_names() -> tuple[str, ...]:
    """Return the keys without effect that stand in no pattern, for suggestions to a mistyped one."""
    every = (name for _, names in IDLE for name in names.split())
    return tuple(name for name in every if not name.endswith("*") and "$" not in name)
