"""RabbitMQ's keys that have no effect here: each becomes a warning at start, never an error.

A file that works with RabbitMQ 3.13 starts this broker unchanged, and nobody is left believing that a setting
is in force when it is not. `$` stands for one part of a name, a final `*` for any rest. Called by `load`.

Invariant: `schema` is asked first, so a declared key is never taken for one of these.
Source: the schemas of RabbitMQ 3.13 and its plugins.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from burrowmq.config.tls import OLD_VERSIONS

NOT_HONOURED = tuple(
    """
    ssl_options.* num_acceptors.tcp num_acceptors.ssl ssl_allow_poodle_attack
    tcp_listen_options tcp_listen_options.exit_on_close tcp_listen_options.tos tcp_listen_options.ip_v6only
    tcp_listen_options.delay_send tcp_listen_options.high_msgq_watermark tcp_listen_options.high_watermark
    tcp_listen_options.packet_size tcp_listen_options.show_econnreset tcp_listen_options.send_timeout
    tcp_listen_options.send_timeout_close tcp_listen_options.dontroute tcp_listen_options.buffer
    default_policies.operator.$.classic_queues.* anonymous_login_user anonymous_login_pass
    channel_max_per_node session_max_per_connection link_max_per_session vhost_max cluster_queue_limit
    vm_memory_calculation_strategy
    collect_statistics statistics_retention_policies.*
    queue_master_locator queue_leader_locator
    cluster_nodes.* cluster_partition_handling cluster_partition_handling.* cluster_formation.*
    cluster_keepalive_interval cluster_tags.* net_ticktime distribution.* raft.* quorum_queue.*
    quorum_cluster_size quorum_commands_soft_limit quorum_membership_reconciliation.* stream.*
    mirroring_sync_batch_size mirroring_sync_max_throughput mirroring_flow_control slave_wait_timeout
    definitions.* load_definitions_skip_if_unchanged
    auth_backends.* auth_ldap.* auth_http.* auth_oauth2.* auth_cache.* password_hashing_module
    credential_validator.* reject_unsafe_passwords
    reverse_dns_lookups delegate_count
    log.file.rotation.date log.file.formatter log.file.formatter.*
    log.exchange log.exchange.* log.syslog log.syslog.* log.journald log.journald.* log.upgrade.*
    log.connection.* log.channel.* log.queue.* log.mirroring.* log.federation.* log.shovel.* log.ldap.* log.ra.*
    log.osiris.* log.prelaunch.* log.feature_flags.* log.console.use_colors log.console.color_esc_seqs.*
    log.console.time_format log.console.level_format log.console.single_line log.console.formatter.*
    log.console.stdio log.summarize_process_state log.error_logger_format_depth
    management.tcp.* management.ssl.* management.path_prefix management.rates_mode
    management.sample_retention_policies.* management.disable_stats management.enable_queue_totals
    management.disable_basic_auth management.http_log_dir management.listener.*
    management.db_cache_multiplier management.process_stats_gc_timeout management.stats_event_max_backlog
    management.http.* management.csp.* management.hsts.* management.headers.*
    management.oauth_* management.oauth_resource_servers.* management.restrictions.* management.extension.*
    management.quorum_queue_replicas_cluster_size management.delegate_count
    management_agent.* management.listeners.*
    prometheus.ssl.* prometheus.tcp.* prometheus.authentication.enabled
    prometheus.filter_aggregated_queue_metrics_pattern
    runtime_parameters.* message_interceptors.* product.* motd_file vhost_restart_strategy
    message_store_shutdown_timeout background_gc_enabled background_gc_target_interval hipe_compile
    track_auth_attempt_source
    msg_store_credit_disc_bound.* msg_store_io_batch_size credit_flow_default_credit.* default_consumer_prefetch
    lazy_queue_explicit_gc_run_operation_threshold deprecated_features.* permit_deprecated_features.*
    feature_flags.* classic_queue.store.* transient_nonexcl_queues erlang.* mnesia_table_loading_retry_timeout
    mnesia_table_loading_retry_limit tracing.* trace_vhosts.* peer_discovery.* license_key
    mqtt.* stomp.* web_mqtt.* web_stomp.* amqp1_0.* federation.* shovel.* sharding.* event_exchange.*
    consistent_hash_exchange.* peer_discovery_backend osiris.*
    """.split()  # noqa: SIM905 - as a list it would be three screens long
)


# Keys that the schema checks and nothing acts on yet: a value for one is a warning too. Where only some values are
# without effect, they are named (`TLS_*` means all that begin so).
NOT_YET: dict[str, tuple[str, ...]] = {
    # There is one loop: a close that waits for unsent octets would hold up everybody.
    "tcp_listen_options.linger.timeout": ("[1-9]*",),
    **{
        f"{prefix}.versions.$n": OLD_VERSIONS
        for prefix in ("ssl_options", "management.ssl", "prometheus.ssl")
    },
}


def _expression(name: str) -> str:
    escaped = re.escape(name).replace(r"\$", r"[^.]+")
    return escaped[:-2] + ".+" if escaped.endswith(r"\*") else escaped


_ANY = re.compile("|".join(f"(?:{_expression(name)})" for name in NOT_HONOURED))


def is_known(key: str) -> bool:
    """Return whether RabbitMQ has this key, given that we declare no such key ourselves."""
    return _ANY.fullmatch(key) is not None


def has_effect(key: str, value: str) -> bool:
    """Return whether the server acts on this value of a key that the schema declares, `$n` and all."""
    if key not in NOT_YET:
        return True
    idle = NOT_YET[key]
    return bool(idle) and not any(fnmatchcase(value, each) for each in idle)
