"""RabbitMQ's keys that do nothing here, with the reason for each: tables that `known` looks keys up in.

`IDLE` has the reason that a warning gives, and the keys that it is true of: `$` stands for one part of a name, a final
`*` for any rest. Below a prefix of which something is honoured every key is written out, so that a mistyped
`ssl_options.verfy` is an error with a suggestion and no warning; `*` stands where nothing below is honoured. The first
row that fits gives the reason. `AGREES` has the values that say what happens anyway: no warning for those.

No state. Source: the key names of RabbitMQ 3.13's schemas, and of 3.8 to 4.1 where files still have them.
"""

from __future__ import annotations

_LISTENER_TLS = (
    "cacerts.$ cert client_renegotiation crl_check dh dhfile honor_ecc_order key.RSAPrivateKey key.DSAPrivateKey"
    " key.PrivateKeyInfo log_alert log_level psk_identity reuse_sessions secure_renegotiate bypass_pem_cache"
)
_HTTP = "compress idle_timeout inactivity_timeout request_timeout shutdown_timeout max_keepalive backlog"


def _below(prefixes: str, names: str) -> str:
    return " ".join(f"{prefix}.{name}" for prefix in prefixes.split() for name in names.split())


IDLE: tuple[tuple[str, str], ...] = (
    (
        "there is one node, and nothing to cluster it with",
        (
            "cluster_nodes.* cluster_partition_handling cluster_partition_handling.* cluster_formation.* cluster_tags.*"
            " cluster_keepalive_interval cluster_queue_limit net_ticktime distribution.* peer_discovery.* aws.*"
            " peer_discovery_backend"
        ),
    ),
    (
        "queues lie on this one node, and are not mirrored",
        (
            "queue_master_locator queue_leader_locator mirroring_sync_batch_size mirroring_sync_max_throughput"
            " mirroring_flow_control slave_wait_timeout default_policies.operator.$.classic_queues.*"
        ),
    ),
    (
        "queues are kept in another way here: classic ones below data_dir, others by the servers of cluster.urls",
        (
            "quorum_queue.* quorum_cluster_size quorum_commands_soft_limit quorum_membership_reconciliation.* raft.*"
            " metadata_store.* stream.* osiris.* classic_queue.store.* transient_nonexcl_queues"
            " management.quorum_queue_replicas_cluster_size"
            " management.restrictions.quorum_queue_replica_operations.disabled"
        ),
    ),
    ("MQTT is not spoken here", "mqtt.* web_mqtt.*"),
    ("STOMP is not spoken here", "stomp.* web_stomp.*"),
    (
        "AMQP 1.0 is not spoken here",
        "amqp1_0.* session_max_per_connection link_max_per_session anonymous_login_user anonymous_login_pass",
    ),
    (
        "that plugin is not built in",
        (
            "federation.* queue_federation.* exchange_federation.* sharding.* consistent_hash_exchange.*"
            " event_exchange.* tracing.* management.extension.*"
        ),
    ),
    ("shovels are parameters, or in the file that static_shovels names", "shovel.*"),
    ("clients' certificates are checked against ssl_options.cacertfile", "trust_store.*"),
    (
        "logins are checked against this broker's own users; make them with add_user or definitions",
        "auth_backends.* auth_ldap.* auth_http.* auth_oauth2.* auth_cache.*",
    ),
    (
        "the HTTP API takes user name and password",
        "management.oauth_* management.oauth_resource_servers.* management.disable_basic_auth",
    ),
    ("passwords are hashed with SHA-256", "password_hashing_module"),
    ("credential_validator.regexp says which passwords are taken", "reject_unsafe_passwords"),
    (
        "there is no such limit; connection_max limits connections, set_vhost_limits what a virtual host may have",
        "ranch_connection_max runtime_parameters.*",
    ),
    (
        "it tunes Erlang's runtime, which is not here",
        (
            "erlang.* hipe_compile background_gc_enabled background_gc_target_interval sysmon_handler.* delegate_count"
            " default_worker_pool_size socket_writer.gc_threshold lazy_queue_explicit_gc_run_operation_threshold"
            " management.delegate_count management.process_stats_gc_timeout vhost_restart_strategy"
        ),
    ),
    ("what counts is the process's resident memory", "vm_memory_calculation_strategy"),
    (
        "definitions are kept in SQLite",
        "mnesia_table_loading_retry_timeout mnesia_table_loading_retry_limit",
    ),
    (
        "definitions are read from a file: name it with load_definitions",
        f"definitions.https.url {_below('definitions', 'tls.*')}",
    ),
    (
        "definitions are imported at each start; what is there already does not change by it",
        "definitions.skip_if_unchanged definitions.hashing.algorithm load_definitions_skip_if_unchanged",
    ),
    (
        "the store paces itself (store_backlog_limit)",
        (
            "msg_store_credit_disc_bound.* msg_store_io_batch_size credit_flow_default_credit.*"
            " message_store_shutdown_timeout"
        ),
    ),
    ("clients set their prefetch with basic.qos", "default_consumer_prefetch"),
    ("messages are passed on as they come", "message_interceptors.*"),
    (
        "all features are on, and none is deprecated",
        "feature_flags.* deprecated_features.* permit_deprecated_features.*",
    ),
    (
        "one loop accepts all connections",
        "num_acceptors.tcp num_acceptors.ssl",
    ),
    ("peers are logged by their address", "reverse_dns_lookups track_auth_attempt_source"),
    (
        "TLS is OpenSSL's, and this is left as it is there; certificate and key come from certfile and keyfile",
        " ".join(
            (
                _below("ssl_options management.ssl prometheus.ssl", _LISTENER_TLS),
                "ssl_allow_poodle_attack ssl_options",
                _below("management.listener.ssl_opts", _LISTENER_TLS),
                "management.listener.ssl_opts",
            )
        ),
    ),
    (
        "the operating system's value is kept",
        _below(
            "tcp_listen_options",
            "buffer delay_send dontroute exit_on_close fd high_msgq_watermark high_watermark ip_v6only"
            " low_msgq_watermark low_watermark packet_size port priority send_timeout send_timeout_close"
            " show_econnreset tos",
        )
        + " tcp_listen_options",
    ),
    (
        "all lines of the log have one level: log.default.level, log.console.level or log.file.level",
        _below(
            "log.connection log.channel log.queue log.mirroring log.federation log.shovel log.upgrade log.ra log.ldap"
            " log.osiris log.prelaunch log.feature_flags",
            "*",
        ),
    ),
    (
        "rotate with log.file.rotation.size and log.file.rotation.count, or with logrotate",
        "log.file.rotation.date log.file.rotation.compress log.default.rotation.*",
    ),
    (
        "log to a file (log.file) or to standard error, which systemd and containers take up",
        "log.exchange log.exchange.* log.syslog log.syslog.* log.journald log.journald.*",
    ),
    (
        "a line's form is fixed; log.console.formatter and log.file.formatter choose plaintext or json",
        (
            "log.console.use_colors log.console.color_esc_seqs.* log.console.formatter.* log.file.formatter.*"
            " log.console.time_format log.console.level_format log.console.single_line log.error_logger_format_depth"
            " log.summarize_process_state"
        ),
    ),
    (
        "the HTTP server's own value is kept",
        _below(
            "management.tcp management.ssl management.listener.server prometheus.tcp prometheus.ssl",
            _HTTP,
        ),
    ),
    ("requests are in the log of the node, changes by name", "management.http_log_dir"),
    ("pages lie at /; have the proxy take the prefix off", "management.path_prefix"),
    (
        "the UI sends strict headers of its own",
        "management.csp.policy management.hsts.policy management.headers.*",
    ),
    (
        "rates and totals are always there, and cost the same",
        (
            "management.rates_mode management.disable_stats management.enable_queue_totals management_agent.*"
            " management.sample_retention_policies.$.$ statistics_retention_policies.* collect_statistics"
            " management.db_cache_multiplier management.stats_event_max_backlog"
            " prometheus.filter_aggregated_queue_metrics_pattern"
        ),
    ),
    ("turn the firehose on with trace_on", "trace_vhosts.*"),
    ("the product keeps its name", "product.name product.version motd_file license_key"),
)

AGREES: dict[str, tuple[str, ...]] = {
    "auth_backends.$": ("internal", "rabbit_auth_backend_internal"),
    "background_gc_enabled": ("false",),
    "collect_statistics": ("fine",),
    "log.exchange": ("false",),
    "log.file.rotation.compress": ("false",),
    "log.journald": ("false",),
    "log.syslog": ("false",),
    "management.disable_basic_auth": ("false",),
    "management.disable_stats": ("false",),
    "management.listener.ssl_opts.client_renegotiation": ("false",),
    "management.listener.ssl_opts.secure_renegotiate": ("true",),
    "management.oauth_enabled": ("false",),
    "management.path_prefix": ("/",),
    "management.ssl.client_renegotiation": ("false",),
    "management.ssl.secure_renegotiate": ("true",),
    "management_agent.disable_metrics_collector": ("false",),
    "password_hashing_module": ("rabbit_password_hashing_sha256",),
    "prometheus.ssl.client_renegotiation": ("false",),
    "prometheus.ssl.secure_renegotiate": ("true",),
    "ranch_connection_max": ("infinity",),
    "reverse_dns_lookups": ("false",),
    "ssl_allow_poodle_attack": ("false",),
    "ssl_options.client_renegotiation": ("false",),
    "ssl_options.secure_renegotiate": ("true",),
    "vm_memory_calculation_strategy": ("rss",),
}
