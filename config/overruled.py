"""Keys that other keys put out of force: they were given, are well written, and do nothing.

`overruled` is called once by `reading`, when all sources are read; each key that it names becomes a warning. No state.

Source: RabbitMQ 3.13's `rabbit.schema` for which of two keys counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from burrowmq.records import NamedTuple

Values = Mapping[str, Any]


class Rule(NamedTuple):
    """`keys` (names, or beginnings that end with a dot) do nothing where `holds`."""

    keys: tuple[str, ...]
    holds: Callable[[Values], bool]
    reason: str


def _is(key: str, value: object) -> Callable[[Values], bool]:
    return lambda values: values.get(key) == value


def _has(key: str) -> Callable[[Values], bool]:
    return lambda values: key in values


def _has_not(key: str) -> Callable[[Values], bool]:
    return lambda values: key not in values


def _has_no_log_file(values: Values) -> bool:
    if values.get("log.file") == "false":
        return True
    return "log.file" not in values and "log.dir" not in values and values.get("log.console", True)


def _has_renamed(name: str) -> Callable[[Values], bool]:
    def holds(values: Values) -> bool:
        part = "ssl" if values.get("management.listener.ssl") else "tcp"
        return f"management.{part}.{name}" in values

    return holds


def _has_no_tls_listener(values: Values) -> bool:
    return values.get("listeners.ssl") == "none" or not any(
        key.startswith("listeners.ssl.") for key in values
    )


def _has_no_mechanism(name: str) -> Callable[[Values], bool]:
    return lambda values: (
        not any(
            value == name for key, value in values.items() if key.startswith("auth_mechanisms.")
        )
    )


def _has_none_of(prefix: str) -> Callable[[Values], bool]:
    return lambda values: not any(key.startswith(prefix) for key in values)


def _is_not(key: str, value: object) -> Callable[[Values], bool]:
    return lambda values: values.get(key) != value


def _has_no_path_of_definitions(values: Values) -> bool:
    return not {"load_definitions", "definitions.local.path"} & values.keys()


def _has_type_of_no_queue(values: Values) -> bool:
    return "cluster.urls" not in values and values.get("default_queue_type", "classic") != "classic"


RULES = (
    *(
        Rule((f"{key}.",), _is(key, "none"), f"{key} = none")
        for key in (
            "listeners.tcp",
            "listeners.ssl",
            "loopback_users",
            "management.cors.allow_origins",
        )
    ),
    *(
        Rule((f"{key}.relative",), _has(f"{key}.absolute"), f"{key}.absolute counts")
        for key in ("vm_memory_high_watermark", "disk_free_limit")
    ),
    Rule(
        ("prometheus.tcp.ip", "prometheus.tcp.port"),
        _has("prometheus.tcp.listener"),
        "prometheus.tcp.listener counts",
    ),
    Rule(
        ("definitions.local.path", "management.load_definitions"),
        _has("load_definitions"),
        "load_definitions counts",
    ),
    Rule(
        ("management.load_definitions",),
        _has("definitions.local.path"),
        "definitions.local.path counts",
    ),
    *(
        Rule(
            (f"management.listener.{name}",),
            _has_renamed(name),
            f"it is the old name of management.tcp.{name} or management.ssl.{name}, which counts",
        )
        for name in ("port", "ip")
    ),
    Rule(
        ("management.listener.ssl_opts.",),
        _is_not("management.listener.ssl", True),
        "management.listener.ssl = true is missing",
    ),
    Rule(
        ("definitions.import_backend",),
        _has_no_path_of_definitions,
        "no file is named; definitions.local.path does",
    ),
    Rule(
        ("ssl_cert_login_from", "ssl_cert_login_san_type", "ssl_cert_login_san_index"),
        _has_no_mechanism("EXTERNAL"),
        "nobody logs in by certificate; auth_mechanisms.1 = EXTERNAL lets them",
    ),
    Rule(
        ("ssl_cert_login_san_type", "ssl_cert_login_san_index"),
        lambda values: not str(values.get("ssl_cert_login_from")).startswith("subject_alt"),
        "ssl_cert_login_from = subject_alternative_name is missing",
    ),
    *(
        Rule(
            (f"credential_validator.{key}",),
            _is_not("credential_validator.validation_backend", name),
            f"credential_validator.validation_backend = {name} is missing",
        )
        for key, name in (
            ("min_length", "rabbit_credential_validator_min_password_length"),
            ("regexp", "rabbit_credential_validator_password_regexp"),
        )
    ),
    Rule(
        ("failed_logins.forgotten_per_minute",),
        _is("failed_logins.limit", 0),
        "failed_logins.limit = 0",
    ),
    Rule(
        ("management.cors.max_age",),
        _has_none_of("management.cors.allow_origins."),
        "no page is let in; management.cors.allow_origins.1 names one",
    ),
    Rule(
        ("management.sample_retention_policies.detailed.",),
        lambda _: True,
        "nothing is kept of pairs of queues, exchanges, connections and channels",
    ),
    Rule(("log.dir",), _is("log.file", "false"), "log.file = false"),
    Rule(
        ("log.dir",),
        lambda values: str(values.get("log.file")).startswith("/"),
        "log.file says where the file lies",
    ),
    Rule(("log.file.",), _has_no_log_file, "no log file is written; log.file names one"),
    Rule(
        ("log.file.rotation.count",),
        lambda values: not values.get("log.file.rotation.size"),
        "no size is set at which the file is rotated; log.file.rotation.size does",
    ),
    Rule(("log.console.",), _is("log.console", False), "log.console = false"),
    Rule(
        ("ssl_options.", "ssl_handshake_timeout"),
        _has_no_tls_listener,
        "no TLS listener is named; listeners.ssl.default does",
    ),
    *(
        Rule(
            (f"{part}.ssl.",),
            _has_not(f"{part}.ssl.port"),
            f"no TLS listener is named; {part}.ssl.port does",
        )
        for part in ("management", "prometheus")
    ),
    Rule(
        ("default_queue_type",),
        _has_type_of_no_queue,
        "quorum queues and streams are where cluster.urls names servers",
    ),
    Rule(
        ("cluster.",),
        _has_not("cluster.urls"),
        "no server of a cluster is named; cluster.urls does",
    ),
    Rule(("cluster.password",), _has_not("cluster.user"), "cluster.user is not set"),
    Rule(
        ("vm_memory_high_watermark_paging_ratio",),
        lambda values: values.get("classic_queue.default_mode", "bounded") != "cached",
        "queues keep few messages in RAM at any time, unless classic_queue.default_mode = cached",
    ),
)


POLICY = "default_policies.operator."
EMPTY_POLICY = "the policy sets nothing"


def _patterns_of_empty_policies(values: Values) -> list[str]:
    """Patterns of operator policies of which nothing else is left, as that of RabbitMQ's example for mirrors is."""
    keys = [key for key in values if key.startswith(POLICY)]
    patterns = [key for key in keys if key.endswith("_pattern")]
    full = {key.rpartition(".")[0] for key in keys if key not in patterns}
    return [key for key in patterns if key.rpartition(".")[0] not in full]


def overruled(values: Values) -> dict[str, str]:
    """Return each key of `values` that does nothing beside the others, with the reason."""
    found = dict.fromkeys(_patterns_of_empty_policies(values), EMPTY_POLICY)
    for rule in RULES:
        if rule.holds(values):
            beginnings = tuple(key for key in rule.keys if key.endswith("."))
            for key in values:
                if key in rule.keys or key.startswith(beginnings):
                    found.setdefault(key, rule.reason)
    return found
