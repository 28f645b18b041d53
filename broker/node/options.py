"""The configuration as each part of the node is given it: one function for each part's own frozen options.

So no part below the node knows the configuration's shape, and a key that moves is one edit here. Owns no state; called
by the node while it is built. Units change here where a part counts in others (milliseconds to seconds).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from burrowmq.broker.definitions.restore import Seed
from burrowmq.broker.definitions.vhost_defaults import DefaultUser, VhostDefaults
from burrowmq.broker.node.monitor import Intervals, ResourceLimits
from burrowmq.broker.rules.auth import Permission
from burrowmq.broker.rules.failed_logins import FailedLoginLimits
from burrowmq.broker.rules.password_rules import PasswordRules
from burrowmq.broker.session.admission import CertificateName
from burrowmq.broker.session.connection_limits import NodeLimits
from burrowmq.broker.sockets.acceptor import AcceptorOptions
from burrowmq.broker.sockets.listener import SocketOptions
from burrowmq.broker.vhost.vhost import VhostOptions
from burrowmq.config.schema import FirstUserConfig, LoginConfig, NodeConfig, ResourceConfig
from burrowmq.config.seeding import SeedingConfig
from burrowmq.config.store import StoreConfig
from burrowmq.config.tls import make_context
from burrowmq.protocol.connection.sasl import NODE_MECHANISM
from burrowmq.protocol.connection.server import ProtocolOptions
from burrowmq.records import NamedTuple
from burrowmq.storage.types import StoreOptions

if TYPE_CHECKING:
    from burrowmq.broker.sockets.proxy_socket import ProxyOptions

BALLAST_BYTES = 16 * 1024 * 1024


def store(config: StoreConfig, open_files: int, *, has_ballast: bool = True) -> StoreOptions:
    """The storage engine's; `open_files` is what the process may spare for it."""
    return StoreOptions(
        confirm=config.confirm,
        segment_size_limit=config.segment_size_limit_bytes,
        segment_entry_count=config.segment_entry_count,
        embed_below=config.embed_below_bytes,
        journal_entries=config.journal_entry_max,
        cache_size=config.cache_size_bytes,
        is_checked=config.check_crc32,
        store_index=config.index_module,
        backlog_limit=config.backlog_limit_bytes,
        has_log=config.commit_log == "on",
        scrub_period_s=config.scrub_period_ms / 1000,
        scrub_bytes_per_s=config.scrub_rate_limit_bytes,
        open_files=open_files,
        ballast_bytes=BALLAST_BYTES if has_ballast else 0,
    )


class Offered(NamedTuple):
    """What connections are offered when they begin: those with TLS, and those without."""

    secure: ProtocolOptions
    plain: ProtocolOptions
    of_node: ProtocolOptions
    """The node's own links."""


def offered(config: NodeConfig, server_properties: dict[str, Any]) -> Offered:
    """What connections are offered. Without TLS there is no certificate to log in with."""
    secure = ProtocolOptions(
        frame_max=config.frame_max,
        initial_frame_max=config.initial_frame_max,
        channel_max=config.channel_max,
        heartbeat_s=config.heartbeat_s,
        max_message_size=config.max_message_size_bytes,
        mechanisms=config.login.mechanisms,
        server_properties=server_properties,
    )
    mechanisms = tuple(name for name in secure.mechanisms if name != "EXTERNAL")
    plain = replace(secure, mechanisms=mechanisms)
    of_node = replace(secure, mechanisms=(*mechanisms, NODE_MECHANISM), heartbeat_s=0)
    return Offered(secure, plain, of_node)


def certificate_name(config: LoginConfig) -> CertificateName:
    """Which part of a certificate is the user's name."""
    return CertificateName(
        source=config.certificate_name, san_type=config.san_type, san_index=config.san_index
    )


def node_limits(node_name: str, config: NodeConfig) -> NodeLimits:
    """What all clients together may have."""
    return NodeLimits(
        node_name=node_name,
        connection_max=config.connection_max,
        channel_max=config.channel_max_per_node,
    )


def password_rules(config: LoginConfig) -> PasswordRules:
    """Which passwords users may be given."""
    return PasswordRules(
        rule=config.password_rule,
        min_length=config.password_min_length,
        regexp=config.password_regexp,
    )


def failed_logins(config: LoginConfig) -> FailedLoginLimits:
    """How many passwords may be wrong, and what each costs."""
    return FailedLoginLimits(
        limit=config.failed_limit,
        leak_per_s=config.failed_forgotten_per_minute / 60,
        delay_s=config.failed_delay_ms / 1000,
    )


def vhost(config: NodeConfig) -> VhostOptions:
    """What a virtual host's queues are when their declarations do not say."""
    return VhostOptions(
        default_queue_version=config.store.default_version,
        default_queue_type=config.default_queue_type or "",
        has_cluster=bool(config.cluster.urls),
        is_mirrored_quorum=bool(config.cluster.urls) and config.cluster.mirrored == "quorum",
    )


def seed(first: FirstUserConfig) -> Seed:
    """What an empty data directory begins with."""
    return Seed(
        vhost=first.vhost,
        user=first.name,
        password=first.password,
        tags=first.tags,
        permission=Permission(configure=first.configure, write=first.write, read=first.read),
    )


def vhost_defaults(config: SeedingConfig) -> VhostDefaults:
    """What every new virtual host begins with. Raises: BadPattern, ValidationFailed."""
    return VhostDefaults(
        limits=[(each.pattern, each.limits) for each in config.limits],
        policies=[
            (
                each.vhost_pattern,
                each.name,
                {"pattern": each.queue_pattern, "definition": dict(each.definition)},
            )
            for each in config.operator_policies
        ],
        users=[
            (
                each.vhost_pattern,
                DefaultUser(
                    name=each.name,
                    password=each.password,
                    tags=each.tags,
                    permission=Permission(
                        configure=each.configure, write=each.write, read=each.read
                    ),
                ),
            )
            for each in config.users
        ],
    )


def acceptor_options(config: NodeConfig, sockets_max: int) -> AcceptorOptions:
    """How the AMQP listeners accept. Raises: BadTls."""
    tcp = config.tcp
    return AcceptorOptions(
        tcp=config.listeners,
        tls=config.tls_listeners,
        sockets=SocketOptions(
            backlog=tcp.backlog,
            sndbuf_bytes=tcp.sndbuf_bytes,
            recbuf_bytes=tcp.recbuf_bytes,
            keepalive=tcp.keepalive,
        ),
        is_nodelay=tcp.nodelay,
        is_linger=tcp.linger_on,
        handshake_timeout_s=config.handshake_timeout_ms / 1000,
        tls_handshake_timeout_s=config.tls_handshake_timeout_ms / 1000,
        context=make_context(config.tls) if config.tls_listeners else None,
        certificate_depth=config.tls.depth,
        sockets_max=sockets_max,
        proxy=_behind_proxy() if config.proxy_protocol else None,
    )


def _behind_proxy() -> ProxyOptions:
    from burrowmq.broker.sockets.proxy_socket import ProxyOptions  # noqa: PLC0415 - for nodes behind one

    return ProxyOptions()


def limits(config: NodeConfig, memory_total_bytes: int) -> ResourceLimits:
    """Where the alarms begin, and paging for queues in `cached` mode."""
    wanted = config.resources
    memory_bytes, relative = wanted.memory_absolute_bytes, None
    if memory_bytes is None:
        relative = wanted.memory_relative
        memory_bytes = int(memory_total_bytes * relative)
    disk_free_bytes = wanted.disk_absolute_bytes
    if wanted.disk_relative is not None:
        disk_free_bytes = int(memory_total_bytes * wanted.disk_relative)
    return ResourceLimits(
        memory_bytes=memory_bytes,
        disk_free_bytes=disk_free_bytes,
        paging_ratio=wanted.paging_ratio if config.store.default_mode == "cached" else None,
        memory_relative=relative,
        memory_total_bytes=memory_total_bytes,
    )


def intervals(config: ResourceConfig) -> Intervals:
    """How often memory and disk are looked at."""
    return Intervals(
        memory_s=config.memory_interval_ms / 1000, disk_s=config.disk_interval_ms / 1000
    )
