"""Every key that the broker honours, declared once: name, reader, default, meaning, and the field it fills.

`NodeConfig` and its parts are the typed, frozen result that the node is built from; each plain field carries
its `Option` as metadata, keys that only together make a value (listeners, user lists) stand in `COMPOSED`.
`load` reads by these declarations; `example` prints rabbitmq.conf.example and docs/configuration.md from them.

Invariants: units stand at the end of a field's name; a default is written in the file's own syntax and goes
through the same reader as a value from a file. Source: RabbitMQ 3.13's rabbit.schema, with our own keys marked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from config import tls, units
from config.tls import NO_TLS, TlsConfig
from config.units import Endpoint, Reader

T = TypeVar("T")

MAX_MESSAGE_SIZE = 512 * 1024 * 1024
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One key: `default` in the file's syntax (None: unset); `ours` when RabbitMQ has no such key in this file."""

    name: str
    read: Reader[Any]
    default: str | None
    doc: str
    ours: bool = False


def option(name: str, read: Reader[T], default: str | None, doc: str, *, ours: bool = False) -> T:
    """Declare the field that the key `name` fills; the declared type is the reader's."""
    value = None if default is None else read(default)
    declared = Option(name=name, read=read, default=default, doc=doc, ours=ours)
    return cast("T", dataclasses.field(default=value, metadata={"option": declared}))


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpConfig:
    """Socket options of the AMQP listeners; None leaves the operating system's value."""

    backlog: int = option(
        "tcp_listen_options.backlog", units.integer(1), "128", "Connections waiting to be accepted."
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
        units.optional(units.binary_size(1024)),
        None,
        "Kernel's send buffer.",
    )
    recbuf_bytes: int | None = option(
        "tcp_listen_options.recbuf",
        units.optional(units.binary_size(1024)),
        None,
        "Kernel's receive buffer.",
    )
    keepalive: bool = option(
        "tcp_listen_options.keepalive", units.flag, "false", "TCP keep-alive probes."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstUserConfig:
    """The user and virtual host that an empty data directory starts with."""

    name: str = option("default_user", units.text, "guest", "User made in an empty data directory.")
    password: str = dataclasses.field(default="guest", repr=False)
    vhost: str = option(
        "default_vhost", units.text, "/", "Virtual host made in an empty data directory."
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
class StoreConfig:
    """Where messages live and what a publisher confirm means."""

    confirm: str = option(
        "confirm",
        units.choice("fsync", "written"),
        "fsync",
        "What a publisher confirm promises: `fsync` on disk, `written` handed to the operating system (RabbitMQ's).",
        ours=True,
    )
    default_mode: str = option(
        "classic_queue.default_mode",
        units.choice("bounded", "cached"),
        "bounded",
        "Queues in default mode: `bounded` keeps at most 2,048 messages in RAM, `cached` keeps them until paging.",
        ours=True,
    )
    default_version: int = option(
        "classic_queue.default_version",
        units.integer(1, 2),
        "2",
        "Storage version of queues that do not ask for one (RabbitMQ 3.13: 1, RabbitMQ 4: 2).",
    )
    embed_below_bytes: int = option(
        "queue_index_embed_msgs_below",
        units.binary_size(0),
        "4096",
        "Smaller messages are kept per queue; larger ones once in the shared message store.",
    )
    segment_size_limit_bytes: int = option(
        "msg_store_file_size_limit",
        units.binary_size(64 * 1024, 2**31),
        "16777216",
        "Segment file size of the message store; never change it for existing data.",
    )
    index_module: str = option(
        "msg_store_index_module",
        units.choice_of(
            {
                "array": "array",
                "paged": "paged",
                "sqlite": "sqlite",
                "rabbit_msg_store_ets_index": "array",
            }
        ),
        "array",
        "Index of the message store: `array` (5 bytes of RAM a message; RabbitMQ's `rabbit_msg_store_ets_index` is"
        " taken for it), `paged` or `sqlite` (bounded RAM). May be changed at any start.",
    )
    segment_entry_count: int = option(
        "queue_index_segment_entry_count",
        units.integer(256, 65536),
        "16384",
        "Messages in one segment of a queue's index, for data directories made from now on.",
    )
    journal_entry_max: int = option(
        "queue_index_max_journal_entries",
        units.integer(1, 2**31),
        "32768",
        "Entries in the journal of a version 1 queue above which it is moved to the segment files.",
    )
    cache_size_bytes: int = option(
        "classic_queue_store_v2_max_cache_size",
        units.binary_size(0),
        "524288",
        "Write buffer of one queue's store; reads take twice as much at once.",
    )
    check_crc32: bool = option(
        "classic_queue_store_v2_check_crc32",
        units.flag,
        "true",
        "Verify the checksum of messages read from a queue's store on their way to a consumer.",
    )
    backlog_limit_bytes: int = option(
        "store_backlog_limit",
        units.binary_size(64 * 1024),
        "8MiB",
        "Bytes waiting for the disk above which publishing connections are paused.",
        ours=True,
    )


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
    console_format: str = option(
        "log.console.formatter",
        units.choice("plaintext", "json"),
        "plaintext",
        "How a line on standard error looks.",
    )
    file_level: str | None = option(
        "log.file.level",
        units.optional(units.choice(*LEVELS)),
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
        units.integer(1),
        "10000",
        "Time for a client to log in, in milliseconds.",
    )
    heartbeat_s: int = option(
        "heartbeat", units.integer(0, 65535), "60", "Heartbeat proposed to clients, in seconds."
    )
    frame_max: int = option(
        "frame_max",
        units.binary_size(0, 2**31 - 1),
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
    consumer_max_per_channel: int | None = option(
        "consumer_max_per_channel", units.limit(1), "infinity", "Consumers that a channel may have."
    )
    max_message_size_bytes: int = option(
        "max_message_size",
        units.integer(0, MAX_MESSAGE_SIZE),
        "134217728",
        "Largest message body, at most 512 MiB.",
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
        "Default queue type of new virtual hosts; `classic` is the only one there is.",
    )
    connection_write_budget_bytes: int = option(
        "connection_write_budget",
        units.binary_size(64 * 1024),
        "16MiB",
        "Bytes waiting for a client that does not read above which it gets no more deliveries.",
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
        units.optional(units.text),
        None,
        "File of definitions to import at start.",
    )
    loopback_users: frozenset[str] = frozenset({"guest"})
    first_user: FirstUserConfig = FirstUserConfig()
    store: StoreConfig = StoreConfig()
    resources: ResourceConfig = ResourceConfig()
    management: ManagementConfig = ManagementConfig()
    prometheus: PrometheusConfig = PrometheusConfig()
    log: LogConfig = LogConfig()


_ANY = "a bare port binds every interface, `address:port` one"


def _tls_options(prefix: str) -> Iterator[Option]:
    for key in tls.KEYS:
        yield Option(name=f"{prefix}.{key.name}", read=key.read, default=key.default, doc=key.doc)


# Keys of which several make one value; `load` puts them together.
COMPOSED = (
    Option(
        name="listeners.tcp.$name",
        read=units.endpoint,
        default="5672",
        doc=f"AMQP listener: {_ANY}.",
    ),
    Option(
        name="listeners.tcp",
        read=units.choice("none"),
        default=None,
        doc="`none`: no plain TCP listener.",
    ),
    Option(
        name="listeners.ssl.$name",
        read=units.endpoint,
        default=None,
        doc=f"AMQP listener with TLS, 5671 by custom: {_ANY}.",
    ),
    Option(
        name="listeners.ssl",
        read=units.choice("none"),
        default=None,
        doc="`none`: no TLS listener.",
    ),
    *_tls_options("ssl_options"),
    Option(
        name="auth_mechanisms.$n",
        read=units.choice("PLAIN", "AMQPLAIN", "EXTERNAL"),
        default=None,
        doc="How clients may log in (PLAIN and AMQPLAIN, if none is named); EXTERNAL: by a client's certificate.",
    ),
    Option(
        name="management.ssl.port",
        read=units.port,
        default=None,
        doc="Port of the HTTP API and UI with TLS, 15671 by custom; alone, it replaces the plain one.",
    ),
    Option(name="management.ssl.ip", read=units.host, default=None, doc="Address that it binds."),
    *_tls_options("management.ssl"),
    Option(
        name="prometheus.ssl.port",
        read=units.port,
        default=None,
        doc="Port of the metrics with TLS, 15691 by custom; alone, it replaces the plain one.",
    ),
    Option(name="prometheus.ssl.ip", read=units.host, default=None, doc="Address that it binds."),
    *_tls_options("prometheus.ssl"),
    Option(
        name="management.tcp.port",
        read=units.port,
        default="15672",
        doc="Port of the HTTP API and UI.",
    ),
    Option(name="management.tcp.ip", read=units.host, default=None, doc="Address that it binds."),
    Option(
        name="prometheus.tcp.port", read=units.port, default="15692", doc="Port of the metrics."
    ),
    Option(name="prometheus.tcp.ip", read=units.host, default=None, doc="Address that it binds."),
    Option(
        name="default_pass",
        read=units.text,
        default="guest",
        doc="Password of the user made at first start.",
    ),
    Option(
        name="default_user_tags.$tag",
        read=units.flag,
        default=None,
        doc="Tags of that user (`administrator` if none).",
    ),
    Option(
        name="loopback_users.$user",
        read=units.flag,
        default=None,
        doc="`true`: this user may only connect from this machine; `loopback_users.guest = false` frees guest.",
    ),
    Option(
        name="loopback_users",
        read=units.choice("none"),
        default=None,
        doc="`none`: every user may connect.",
    ),
    Option(
        name="definitions.import_backend",
        read=units.choice("local_filesystem"),
        default=None,
        doc="Where definitions come from: `local_filesystem`.",
    ),
    Option(
        name="definitions.local.path",
        read=units.text,
        default=None,
        doc="The same as `load_definitions`.",
    ),
    Option(
        name="management.load_definitions",
        read=units.text,
        default=None,
        doc="The same as `load_definitions`, its old name.",
    ),
    Option(
        name="log.dir",
        read=units.text,
        default=None,
        doc="Directory of the log file; setting it, or turning the console off, makes one.",
    ),
    Option(
        name="log.file",
        read=units.text,
        default=None,
        doc="Name of the log file, or `false` for none.",
    ),
    Option(
        name="nodename",
        read=units.text,
        default=None,
        doc="`name@host`; `rabbit@` this host if unset.",
        ours=True,
    ),
    Option(
        name="data_dir",
        read=units.text,
        default="data",
        doc="Directory that holds all data.",
        ours=True,
    ),
)

PARTS = ("tcp", "login", "first_user", "store", "resources", "management", "prometheus", "log")


def plain_options() -> Iterator[tuple[str, str, Option]]:
    """Yield (part name or "", field name, option) for every key that fills one field by itself."""
    defaults = NodeConfig(node_name="", data_dir="")
    for part in ("", *PARTS):
        for field in dataclasses.fields(getattr(defaults, part) if part else NodeConfig):
            declared = field.metadata.get("option")
            if isinstance(declared, Option):
                yield part, field.name, declared
