"""Which commands each program has: RabbitMQ's programs know only theirs, burrowctl knows nearly all.

Owns no state. The sets are those of RabbitMQ 3.10.8's `help`, with what 3.13 added; `burrowctl` is everything but the
bare verbs of rabbitmq-plugins (`enable`, `list`), which say nothing without that name. The words stand here and not in
the table of commands because most commands belong to two programs.
"""

from __future__ import annotations

from burrowmq.cli.registry import COMMANDS

OWN = frozenset(
    {
        "backup",
        "cluster_config",
        "completion",
        "import_from",
        "install_names",
        "migrate_queues",
        "scrub",
    }
)
"""Not RabbitMQ's; rabbitmqctl has them too."""

_CTL_AND_DIAGNOSTICS = """
    activate_free_disk_space_monitoring autocomplete check_if_any_deprecated_features_are_used cluster_status
    deactivate_free_disk_space_monitoring environment help list_bindings list_channels list_ciphers
    list_connections list_consumers list_deprecated_features list_exchanges list_feature_flags
    list_global_parameters list_hashes list_node_auth_attempt_stats list_operator_policies list_parameters
    list_permissions list_policies list_policies_that_match list_queues list_topic_permissions
    list_unresponsive_queues list_user_limits list_user_permissions list_user_topic_permissions list_users
    list_vhost_limits list_vhosts node_health_check ping report schema_info shovel_status status version wait
"""
_CTL = """
    add_user add_vhost authenticate_user await_online_nodes await_startup cancel_sync_queue
    change_cluster_node_type change_password clear_global_parameter clear_operator_policy clear_parameter
    clear_password clear_permissions clear_policy clear_topic_permissions clear_user_limits clear_vhost_limits
    close_all_connections close_all_user_connections close_connection decode delete_queue delete_shovel delete_user
    delete_vhost enable_feature_flag encode eval eval_file exec export_definitions force_boot force_gc
    force_reset forget_cluster_node hash_password hipe_compile import_definitions join_cluster purge_queue
    rename_cluster_node reset restart_shovel restart_vhost resume_listeners rotate_logs set_cluster_name
    set_disk_free_limit set_global_parameter set_log_level set_operator_policy set_parameter set_permissions
    set_permissions_globally set_policy set_topic_permissions set_user_limits set_user_tags set_vhost_limits
    set_vhost_tags set_vm_memory_high_watermark shutdown start_app stop stop_app suspend_listeners sync_queue
    trace_off trace_on update_cluster_nodes update_vhost_metadata
"""
_DIAGNOSTICS = """
    alarms certificates check_alarms check_certificate_expiration
    check_if_cluster_has_classic_queue_mirroring_policy check_if_node_is_mirror_sync_critical
    check_if_node_is_quorum_critical check_local_alarms check_port_connectivity check_port_listener
    check_protocol_listener check_running check_virtual_hosts cipher_suites command_line_arguments
    consume_event_stream disable_auth_attempt_source_tracking discover_peers
    enable_auth_attempt_source_tracking erlang_cookie_hash erlang_cookie_sources erlang_version is_booting
    is_running list_network_interfaces listeners log_location log_tail log_tail_stream maybe_stuck
    memory_breakdown metadata_store_status observer os_env quorum_status reclaim_quorum_memory remote_shell
    reset_node_auth_attempt_metrics resolve_hostname resolver_info runtime_thread_stats server_version
    stream_status tls_versions
"""
_QUEUES = """
    add_member autocomplete check_if_cluster_has_classic_queue_mirroring_policy
    check_if_node_is_mirror_sync_critical check_if_node_is_quorum_critical delete_member grow help peek
    quorum_status rebalance reclaim_quorum_memory shrink stream_status
"""
_STREAMS = """
    add_replica autocomplete delete_replica help restart_stream stream_status
"""
_UPGRADE = """
    await_online_quorum_plus_one await_online_synchronized_mirror drain help post_upgrade revive
"""
_PLUGINS = """
    autocomplete directories disable enable help is_enabled list set version
"""
BARE_VERBS = frozenset({"directories", "disable", "enable", "is_enabled", "list", "set"})

PROGRAMS: dict[str, frozenset[str]] = {
    "burrowctl": frozenset(COMMANDS) - BARE_VERBS,
    "rabbitmqctl": frozenset((_CTL_AND_DIAGNOSTICS + _CTL).split()) | OWN,
    "rabbitmq-diagnostics": frozenset((_CTL_AND_DIAGNOSTICS + _DIAGNOSTICS).split()),
    "rabbitmq-plugins": frozenset(_PLUGINS.split()),
    "rabbitmq-queues": frozenset(_QUEUES.split()),
    "rabbitmq-streams": frozenset(_STREAMS.split()),
    "rabbitmq-upgrade": frozenset(_UPGRADE.split()),
}


def commands_of(program: str) -> frozenset[str]:
    """The commands of a program; any other name is burrowctl."""
    return PROGRAMS.get(program, PROGRAMS["burrowctl"])


def programs_with(command: str) -> list[str]:
    """RabbitMQ's programs that have a command."""
    return [
        name for name, commands in PROGRAMS.items() if name != "burrowctl" and command in commands
    ]
