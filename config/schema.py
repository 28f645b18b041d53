"""What a node is configured with: `NodeConfig` and its parts, and the key that fills each plain field.

Each plain field carries its `Option` as metadata; keys of which several make one value (listeners, user lists)
are declared in `compose`. `load` reads by these declarations; `example` prints rabbitmq.conf.example and
docs/configuration.md from them.

Invariant: units stand at the end of a field's name. Source: RabbitMQ 3.13's rabbit.schema, with our own keys marked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from burrowmq.config import units
from burrowmq.config.cluster import ALONE, ClusterConfig
from burrowmq.config.option import Option, option
from burrowmq.config.seeding import NOTHING, SeedingConfig
from burrowmq.config.store import AS_INSTALLED, StoreConfig
from burrowmq.config.tls import NO_TLS, TlsConfig
from burrowmq.config.units import Endpoint
from burrowmq.records import dataclass

MILLISECONDS_MAX = 2**31 - 1
MAX_MESSAGE_SIZE = 512 * 1024 * 1024
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency", "none")
FILE_LEVELS = {name: name for name in LEVELS} | {
    "=debug": "debug",
    "!=info": "info",
    "<=notice": "notice",
    "<warning": "warning",
}
"""Those that RabbitMQ takes for the log file, its older forms too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpConfig:
    """Socket options of the AMQP listeners; None leaves the operating system's value."""

    backlog: int = option(
        "tcp_listen_options.backlog",
        units.integer(1, units.C_INT_MAX),
        "128",
        "Connections waiting to be accepted.",
    )
    nodelay: bool = option(
        "tcp_listen_options.nodelay", units.flag, "true", "Send small segments at once."
    )
    linger_on: bool = option(
        "tcp_listen_options.linger.on",
        units.flag,
        "true",
        "Drop a connection with a reset, as RabbitMQ does.",
    )
    linger_timeout_s: int = option(
        "tcp_listen_options.linger.timeout", units.integer(0), "0", "Seconds that a close may wait."
    )
    sndbuf_bytes: int | None = option(
        "tcp_listen_options.sndbuf",
        units.optional(units.binary_size(1024, units.C_INT_MAX)),
        None,
        "Kernel's send buffer.",
    )
    recbuf_bytes: int | None = option(
        "tcp_listen_options.recbuf",
        units.optional(units.binary_size(1024, units.C_INT_MAX)),
        None,
        "Kernel's receive buffer.",
    )
    keepalive: bool = option(
        "tcp_listen_options.keepalive", units.flag, "false", "TCP keep-alive probes."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstUserConfig:
    """The user and virtual host that an empty data directory starts with."""

    name: str = option(
        "default_user", units.short_text, "guest", "User made in an empty data directory."
    )
    password: str = dataclasses.field(default="guest", repr=False)
    vhost: str = option(
        "default_vhost", units.short_text, "/", "Virtual host made in an empty data directory."
    )
    configure: str = option(
        "default_permissions.configure", units.pattern, ".*", "What that user may configure."
    )
    write: str = option(
        "default_permissions.write", units.pattern, ".*", "What that user may write to."
    )
    read: str = option(
        "default_permissions.read", units.pattern, ".*", "What that user may read from."
    )
    tags: tuple[str, ...] = ("administrator",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceConfig:
    """Memory and disk alarms; an absolute limit wins over a relative one."""

    memory_relative: float = option(
        "vm_memory_high_watermark.relative",
        units.ratio(0, 1),
        "0.4",
        "Share of the available RAM (the container's) above which publishers are blocked.",
    )
    memory_absolute_bytes: int | None = option(
        "vm_memory_high_watermark.absolute",
        units.optional(units.size(0)),
        None,
        "The same limit in bytes.",
    )
    memory_total_bytes: int | None = option(
        "total_memory_available_override_value",
        units.optional(units.size(1)),
        None,
        "The RAM to reckon with, instead of what the system says.",
    )
    paging_ratio: float = option(
        "vm_memory_high_watermark_paging_ratio",
        units.ratio(0, 1),
        "0.5",
        "Share of the memory limit above which queues in `cached` mode page messages out.",
    )
    memory_interval_ms: int = option(
        "memory_monitor_interval",
        units.integer(10),
        "1000",
        "Time between two looks at memory, in milliseconds.",
    )
    disk_absolute_bytes: int = option(
        "disk_free_limit.absolute",
        units.size(0),
        "50MB",
        "Free space below which publishers are blocked.",
    )
    disk_relative: float | None = option(
        "disk_free_limit.relative",
        units.optional(units.ratio(0, 100)),
        None,
        "The same as a multiple of the RAM.",
    )
    disk_interval_ms: int = option(
        "disk_monitor_interval",
        units.integer(10),
        "10000",
        "Longest time between two looks at free space, in milliseconds.",
        ours=True,
    )
    start_check: str = option(
        "start_check",
        units.choice("enforce", "warn"),
        "enforce",
        "A start with too little memory, disk or file descriptors: `enforce` refuses it and says what is missing,"
        " `warn` goes on (to drain queues, say).",
        ours=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagementConfig:
    """Where the HTTP API and UI listen."""

    listeners: tuple[Endpoint, ...] = (Endpoint("127.0.0.1", 15672), Endpoint("::1", 15672))
    tls_listeners: tuple[Endpoint, ...] = ()
    tls: TlsConfig = NO_TLS
    allowed_origins: tuple[str, ...] = ()
    # (how long, how often), in seconds; () for RabbitMQ's defaults.
    global_retention: tuple[tuple[int, int], ...] = ()
    basic_retention: tuple[tuple[int, int], ...] = ()
    login_session_timeout_min: int = option(
        "management.login_session_timeout",
        units.integer(1, 525_600),
        "480",
        "Minutes after which a login to the UI ends; one that is not used ends after an hour.",
    )
    body_max_bytes: int = option(
        "management.http.max_body_size",
        units.integer(0),
        "20971520",
        "Largest body of a request to the HTTP API, in bytes: a larger one is a 400.",
    )
    are_operator_policies_fixed: bool = option(
        "management.restrictions.operator_policy_changes.disabled",
        units.flag,
        "false",
        "No operator policy is set or cleared by the HTTP API: 405. burrowctl still does it.",
    )
    preflight_max_age_s: int = option(
        "management.cors.max_age",
        units.integer(0),
        "1800",
        "Seconds for which a browser may remember what a page of those origins may do.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginConfig:
    """How clients may log in, and which part of a certificate is the user's name."""

    mechanisms: tuple[str, ...] = ("PLAIN", "AMQPLAIN")
    certificate_name: str = option(
        "ssl_cert_login_from",
        units.choice(
            "distinguished_name", "common_name", "subject_alternative_name", "subject_alt_name"
        ),
        "distinguished_name",
        "What EXTERNAL takes as the user's name from a client's certificate.",
    )
    san_type: str = option(
        "ssl_cert_login_san_type",
        units.choice("dns", "ip", "email", "uri", "other_name"),
        "dns",
        "Kind of subject alternative name to take.",
    )
    san_index: int = option(
        "ssl_cert_login_san_index",
        units.integer(0, 1000),
        "0",
        "Which one of that kind, counted from 0.",
    )
    password_rule: str = option(
        "credential_validator.validation_backend",
        units.text,
        "rabbit_credential_validator_accept_everything",
        "Which passwords users may be given: any, `rabbit_credential_validator_min_password_length` or"
        " `rabbit_credential_validator_password_regexp`. Those that this file names, and hashes, are taken as they"
        " are.",
    )
    password_min_length: int = option(
        "credential_validator.min_length",
        units.integer(0),
        "5",
        "Octets that a password has at least, with rabbit_credential_validator_min_password_length.",
    )
    password_regexp: str | None = option(
        "credential_validator.regexp",
        units.optional(units.pattern),
        None,
        "What a password has to match, with rabbit_credential_validator_password_regexp.",
    )
    failed_limit: int = option(
        "failed_logins.limit",
        units.integer(0, 100_000),
        "10",
        "Wrong passwords for a user from one address before further logins of that user from there are refused"
        " unheard; ten times as many for all users together; 0: no limit.",
        ours=True,
    )
    failed_forgotten_per_minute: int = option(
        "failed_logins.forgotten_per_minute",
        units.integer(1, 100_000),
        "60",
        "How many of them are forgotten each minute.",
        ours=True,
    )
    failed_delay_ms: int = option(
        "failed_logins.delay",
        units.integer(0, 60_000),
        "1000",
        "Milliseconds that the answer to a wrong password takes.",
        ours=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusConfig:
    """Where metrics are scraped."""

    listeners: tuple[Endpoint, ...] = (Endpoint("127.0.0.1", 15692), Endpoint("::1", 15692))
    tls_listeners: tuple[Endpoint, ...] = ()
    tls: TlsConfig = NO_TLS
    path: str = option("prometheus.path", units.http_path, "/metrics", "URL path of the metrics.")
    per_object: bool = option(
        "prometheus.return_per_object_metrics",
        units.flag,
        "false",
        "Serve one series per queue on that path.",
    )
    wants_login: bool = option(
        "prometheus.authentication.enabled",
        units.flag,
        "false",
        "Metrics want the name and password of a user with the tag monitoring or administrator.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """What is logged, how, and where besides standard error."""

    level: str = option(
        "log.default.level", units.choice(*LEVELS), "info", "Least severe level that is logged."
    )
    console: bool = option("log.console", units.flag, "true", "Log to standard error.")
    console_level: str | None = option(
        "log.console.level",
        units.optional(units.choice(*LEVELS)),
        None,
        "Another level for standard error.",
    )
    console_stream: str = option(
        "log.console.stdio",
        units.choice("stderr", "stdout"),
        "stderr",
        "Where the console's lines go: standard error, or standard output.",
    )
    console_format: str = option(
        "log.console.formatter",
        units.choice("plaintext", "json"),
        "plaintext",
        "How a line on standard error looks.",
    )
    file_format: str = option(
        "log.file.formatter",
        units.choice("plaintext", "json"),
        "plaintext",
        "How a line in the log file looks.",
    )
    file_level: str | None = option(
        "log.file.level",
        units.optional(units.choice_of(FILE_LEVELS)),
        None,
        "Another level for the log file.",
    )
    rotation_size_bytes: int | None = option(
        "log.file.rotation.size",
        units.optional(units.integer(0)),
        None,
        "Bytes above which the log file becomes `name.0` and a new one begins; 0 for never.",
    )
    rotation_count: int = option(
        "log.file.rotation.count", units.integer(0, 1000), "10", "Files of that kind that are kept."
    )
    file_path: str | None = None  # from log.file and log.dir; None when there is no log file


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """All that a node is configured with; None means "no limit" or "not set"."""

    node_name: str
    data_dir: str
    listeners: tuple[Endpoint, ...] = (Endpoint("127.0.0.1", 5672), Endpoint("::1", 5672))
    tcp: TcpConfig = TcpConfig()
    tls_listeners: tuple[Endpoint, ...] = ()
    tls: TlsConfig = NO_TLS
    login: LoginConfig = LoginConfig()
    tls_handshake_timeout_ms: int = option(
        "ssl_handshake_timeout",
        units.integer(1),
        "5000",
        "Time for a client's TLS handshake, in milliseconds.",
    )
    handshake_timeout_ms: int = option(
        "handshake_timeout",
        units.or_most(1, MILLISECONDS_MAX),
        "10000",
        "Time for a client to log in, in milliseconds; `infinity`: 24 days.",
    )
    proxy_protocol: bool = option(
        "proxy_protocol",
        units.flag,
        "false",
        "Every AMQP connection begins with a proxy's header (PROXY protocol 1 or 2).",
    )
    heartbeat_s: int = option(
        "heartbeat", units.integer(0, 65535), "60", "Heartbeat proposed to clients, in seconds."
    )
    frame_max: int = option(
        "frame_max",
        units.frame_size,
        "131072",
        "Largest frame proposed to clients, 0 for no limit.",
    )
    initial_frame_max: int = option(
        "initial_frame_max",
        units.binary_size(4096, 2**31 - 1),
        "4096",
        "Largest frame before a client has logged in.",
    )
    channel_max: int = option(
        "channel_max",
        units.integer(0, 65535),
        "2047",
        "Channels that a connection may have, 0 for no limit.",
    )
    connection_max: int | None = option(
        "connection_max", units.limit(0), "infinity", "Connections that the node accepts."
    )
    channel_max_per_node: int | None = option(
        "channel_max_per_node",
        units.limit(0),
        "infinity",
        "Channels that all connections together may have.",
    )
    vhost_max: int | None = option(
        "vhost_max", units.limit(0), "infinity", "Virtual hosts that there may be."
    )
    consumer_max_per_channel: int | None = option(
        "consumer_max_per_channel", units.limit(1), "infinity", "Consumers that a channel may have."
    )
    max_message_size_bytes: int = option(
        "max_message_size",
        units.integer(0, MAX_MESSAGE_SIZE),
        "134217728",
        "Largest message body in bytes, at most 512 MiB.",
    )
    consumer_timeout_ms: int | None = option(
        "consumer_timeout",
        units.limit(1),
        "1800000",
        "Time for a consumer to acknowledge a delivery, in milliseconds; then its channel is closed.",
    )
    default_queue_type: str | None = option(
        "default_queue_type",
        units.optional(units.queue_type),
        None,
        "Default queue type of new virtual hosts; `quorum` and `stream` need cluster.urls.",
    )
    connection_write_budget_bytes: int = option(
        "connection_write_budget",
        units.binary_size(64 * 1024),
        "16MiB",
        "Bytes waiting for a client that does not read above which it gets no more deliveries.",
        ours=True,
    )
    busy_wait: str = option(
        "busy_wait",
        units.choice("auto", "off"),
        "auto",
        "Whether the node polls for 0.1 ms after a turn instead of sleeping, while messages come steadily and processor"
        " time is idle anyway: less latency for more CPU.",
        ours=True,
    )
    collect_statistics_interval_ms: int = option(
        "collect_statistics_interval",
        units.integer(100),
        "5000",
        "Time between two statistics, in milliseconds.",
    )
    cluster_name: str | None = option(
        "cluster_name",
        units.optional(units.text),
        None,
        "Name shown to operators; the node's name when not set.",
    )
    load_definitions: str | None = option(
        "load_definitions",
        units.optional(units.readable),
        None,
        "File of definitions to import at start, or a directory of such files, which are imported in name order.",
    )
    static_shovels: str | None = option(
        "static_shovels",
        units.optional(units.readable_file),
        None,
        "File of shovels that are there as long as the node runs: a JSON object of names and their definitions.",
        ours=True,
    )
    loopback_users: frozenset[str] = frozenset({"guest"})
    first_user: FirstUserConfig = FirstUserConfig()
    store: StoreConfig = AS_INSTALLED
    seeding: SeedingConfig = NOTHING
    resources: ResourceConfig = ResourceConfig()
    management: ManagementConfig = ManagementConfig()
    prometheus: PrometheusConfig = PrometheusConfig()
    log: LogConfig = LogConfig()
    cluster: ClusterConfig = ALONE


PARTS = (
    "tcp",
    "login",
    "first_user",
    "store",
    "resources",
    "management",
    "prometheus",
    "log",
    "cluster",
)


def plain_options() -> Iterator[tuple[str, str, Option]]:
    """Yield (part name or "", field name, option) for every key that fills one field by itself."""
    defaults = NodeConfig(node_name="", data_dir="")
    for part in ("", *PARTS):
        for field in dataclasses.fields(getattr(defaults, part) if part else NodeConfig):
            declared = field.metadata.get("option")
            if isinstance(declared, Option):
                yield part, field.name, declared
