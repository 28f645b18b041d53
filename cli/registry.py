"""Every command: where its function is, how many arguments it takes, which options of its own, and its usage line.

Owns no state. Data only, so that help and suggestions import nothing else. A command is one row here and one function
`(invocation) -> int` in the module that the row names.
"""

from __future__ import annotations

from typing import NamedTuple

MANY = 1000


class Command(NamedTuple):
    """One row."""

    module: str
    function: str
    usage: str
    summary: str
    least: int = 0
    most: int = 0
    options: tuple[str, ...] = ()


def _list(function: str, usage: str, summary: str, options: tuple[str, ...] = ()) -> Command:
    return Command("cli.lists", function, usage, summary, 0, MANY, options)


COLUMNS = "[--no-table-headers] [<column>, ...]"
VHOST = "[--vhost <vhost>] "
POLICY = ("priority", "apply-to")
POLICY_USAGE = (
    VHOST + "[--priority <priority>] [--apply-to <apply-to>] <name> <pattern> <definition>"
)

COMMANDS: dict[str, Command] = {
    # listing
    "list_queues": _list("queues", f"{VHOST}[--online] [--offline] [--local] {COLUMNS}",
                         "Lists queues and their properties", ("online", "local")),
    "list_exchanges": _list("exchanges", VHOST + COLUMNS, "Lists exchanges"),
    "list_bindings": _list("bindings", VHOST + COLUMNS, "Lists all bindings on a vhost"),
    "list_connections": _list("connections", COLUMNS, "Lists AMQP 0.9.1 connections for the node"),
    "list_channels": _list("channels", COLUMNS, "Lists all channels in the node"),
    "list_consumers": _list("consumers", VHOST + COLUMNS, "Lists all consumers for a vhost"),
    "list_vhosts": _list("vhosts", COLUMNS, "Lists virtual hosts"),
    "list_users": Command("cli.lists", "users", "[--no-table-headers]", "List user names and tags"),
    "list_permissions": Command("cli.lists", "permissions", VHOST.strip(), "Lists user permissions in a virtual host"),
    "list_user_permissions": Command("cli.lists", "user_permissions", "<username>",
                                     "Lists permissions of a user across all virtual hosts", 1, 1),
    # the node
    "status": Command("cli.node", "status", "[--unit <unit>]", "Displays status of a node", options=("unit",)),
    "environment": Command("cli.node", "environment", "", "Displays the configuration of the node"),
    "ping": Command("cli.checks", "ping", "", "Checks that the node responds"),
    "await_startup": Command("cli.node", "await_startup", "", "Waits for the node to start"),
    "wait": Command("cli.node", "await_startup", "[<pidfile>] [--pid <pid>]", "Waits for the node to start", 0, 1,
                    ("pid",)),
    "shutdown": Command("cli.node", "shutdown", "[--wait] [--no-wait]", "Stops the node and waits for it to be gone",
                        options=("wait", "no-wait")),
    "stop": Command("cli.node", "stop", "[--idempotent] [<pidfile>]", "Stops the node", 0, 1, ("idempotent",)),
    "memory_breakdown": Command("cli.node", "memory_breakdown", "[--unit <unit>]", "Says where the memory is",
                                options=("unit",)),
    "listeners": Command("cli.node", "listeners", "", "Lists the open ports"),
    "server_version": Command("cli.node", "server_version", "", "Displays the version of the node"),
    "log_location": Command("cli.node", "log_location", "", "Shows where the log goes"),
    "export_definitions": Command("cli.definitions", "export_definitions", '<file_path | "-"> [--format <json>]',
                                  "Exports definitions as JSON", 1, 1, ("format",)),
    "import_definitions": Command("cli.definitions", "import_definitions",
                                  '<file_path | "-"> [--format <json>] [--skip-if-unchanged]',
                                  "Imports definitions from JSON", 0, 1, ("format", "skip-if-unchanged")),
    "backup": Command("cli.backup", "backup", "[--no-wait] <directory>",
                      "Backs the node up into a directory of its machine, while it runs", 1, 1, ("no-wait",)),
    # health checks
    "check_running": Command("cli.checks", "check_running", "", "Checks that the node is fully started"),
    "is_running": Command("cli.checks", "check_running", "", "Checks that the node is fully started"),
    "check_local_alarms": Command("cli.checks", "check_local_alarms", "", "Checks that the node has no alarms"),
    "check_alarms": Command("cli.checks", "check_alarms", "", "Checks that there are no alarms in the cluster"),
    "alarms": Command("cli.checks", "alarms", "", "Lists alarms in effect"),
    "check_port_connectivity": Command("cli.checks", "check_port_connectivity", "[--address <address>]",
                                       "Connects to every port of the node", options=("address",)),
    "check_port_listener": Command("cli.checks", "check_port_listener", "<port>", "Checks that a port is open", 1, 1),
    "check_protocol_listener": Command("cli.checks", "check_protocol_listener", "<protocol>",
                                       "Checks that a protocol is served", 1, 1),
    "check_virtual_hosts": Command("cli.checks", "check_virtual_hosts", "", "Checks that all virtual hosts run"),
    "check_if_node_is_quorum_critical": Command("cli.checks", "check_critical", "", "Does not apply to a single node"),
    "check_if_node_is_mirror_sync_critical": Command("cli.checks", "check_critical", "",
                                                     "Does not apply to a single node"),
    # users, permissions, virtual hosts
    "add_user": Command("cli.users", "add_user", "<username> [<password>]", "Creates a user", 1, 2),
    "delete_user": Command("cli.users", "delete_user", "<username>", "Removes a user", 1, 1),
    "change_password": Command("cli.users", "change_password", "<username> [<password>]", "Changes a password", 1, 2),
    "clear_password": Command("cli.users", "clear_password", "<username>", "Disables login with a password", 1, 1),
    "authenticate_user": Command("cli.users", "authenticate_user", "<username> [<password>]",
                                 "Tries a user name and password", 1, 2),
    "set_user_tags": Command("cli.users", "set_user_tags", "<username> <tag> [...]", "Sets user tags", 1, MANY),
    "set_permissions": Command("cli.users", "set_permissions", f"{VHOST}<username> <conf> <write> <read>",
                               "Sets user permissions for a virtual host", 4, 4),
    "clear_permissions": Command("cli.users", "clear_permissions", f"{VHOST}<username>",
                                 "Revokes user permissions for a virtual host", 1, 1),
    "add_vhost": Command("cli.users", "add_vhost", "<vhost> [--description <text>] [--tags <tags>]"
                         " [--default-queue-type <type>]", "Creates a virtual host", 1, 1,
                         ("description", "tags", "default-queue-type")),
    "update_vhost_metadata": Command("cli.users", "update_vhost_metadata", "<vhost> [--description <text>]"
                                     " [--tags <tags>] [--default-queue-type <type>]",
                                     "Changes what is said about a virtual host", 1, 1,
                                     ("description", "tags", "default-queue-type")),
    "trace_on": Command("cli.users", "trace_on", VHOST.strip(), "Starts tracing"),
    "trace_off": Command("cli.users", "trace_off", VHOST.strip(), "Stops tracing"),
    "delete_vhost": Command("cli.users", "delete_vhost", "<vhost>", "Deletes a virtual host", 1, 1),
    "set_topic_permissions": Command("cli.users", "set_topic_permissions",
                                     f"{VHOST}<username> <exchange> <write> <read>",
                                     "Sets user topic permissions for an exchange", 4, 4),
    "clear_topic_permissions": Command("cli.users", "clear_topic_permissions", f"{VHOST}<username> [<exchange>]",
                                       "Clears user topic permissions for an exchange or all", 1, 2),
    "list_topic_permissions": Command("cli.users", "list_topic_permissions", f"{VHOST}[--no-table-headers]",
                                      "Lists topic permissions in a virtual host"),
    "list_user_topic_permissions": Command("cli.users", "list_user_topic_permissions",
                                           "[--no-table-headers] <username>", "Lists topic permissions of a user",
                                           1, 1),
    # policies, parameters, limits
    "set_policy": Command("cli.policies", "set_policy", POLICY_USAGE, "Sets or updates a policy", 3, 3, POLICY),
    "clear_policy": Command("cli.policies", "clear_policy", f"{VHOST}<name>", "Clears (removes) a policy", 1, 1),
    "list_policies": Command("cli.policies", "list_policies", f"{VHOST}[--no-table-headers]",
                             "Lists all policies in a virtual host"),
    "set_operator_policy": Command("cli.policies", "set_operator_policy", POLICY_USAGE,
                                   "Sets an operator policy that overrides a subset of arguments", 3, 3, POLICY),
    "clear_operator_policy": Command("cli.policies", "clear_operator_policy", f"{VHOST}<name>",
                                     "Clears an operator policy", 1, 1),
    "list_operator_policies": Command("cli.policies", "list_operator_policies", f"{VHOST}[--no-table-headers]",
                                      "Lists operator policy overrides in a virtual host"),
    "set_parameter": Command("cli.policies", "set_parameter", f"{VHOST}<component_name> <name> <value>",
                             "Sets a runtime parameter", 3, 3),
    "clear_parameter": Command("cli.policies", "clear_parameter", f"{VHOST}<component_name> <name>",
                               "Clears a runtime parameter", 2, 2),
    "list_parameters": Command("cli.policies", "list_parameters", f"{VHOST}[--no-table-headers]",
                               "Lists runtime parameters of a virtual host"),
    "set_global_parameter": Command("cli.policies", "set_global_parameter", "<name> <value>",
                                    "Sets a global runtime parameter", 2, 2),
    "clear_global_parameter": Command("cli.policies", "clear_global_parameter", "<name>",
                                      "Clears a global runtime parameter", 1, 1),
    "list_global_parameters": Command("cli.policies", "list_global_parameters", "[--no-table-headers]",
                                      "Lists global runtime parameters"),
    "set_vhost_limits": Command("cli.policies", "set_vhost_limits", f"{VHOST}<definition>",
                                "Sets virtual host limits", 1, 1),
    "clear_vhost_limits": Command("cli.policies", "clear_vhost_limits", VHOST.strip(), "Clears virtual host limits"),
    "list_vhost_limits": Command("cli.policies", "list_vhost_limits", f"{VHOST}[--global] [--no-table-headers]",
                                 "Displays configured virtual host limits", options=("global",)),
    "set_user_limits": Command("cli.policies", "set_user_limits", "<username> <definition>", "Sets user limits", 2, 2),
    "clear_user_limits": Command("cli.policies", "clear_user_limits", "<username> <limit_type> | all",
                                 "Clears user connection or channel limits", 2, 2),
    "list_user_limits": Command("cli.policies", "list_user_limits", "[--user <username>] [--global]",
                                "Displays configured user limits", options=("user", "global")),
    # queues and connections
    "purge_queue": Command("cli.actions", "purge_queue", f"{VHOST}<queue>", "Removes all ready messages of a queue",
                           1, 1),
    "delete_queue": Command("cli.actions", "delete_queue", f"{VHOST}<queue> [--if-empty] [--if-unused]",
                            "Deletes a queue", 1, 1, ("if-empty", "if-unused")),
    "close_connection": Command("cli.actions", "close_connection", "<connection pid> <explanation>",
                                "Closes a connection", 2, 2),
    "close_all_connections": Command(
        "cli.actions", "close_all_connections", f"{VHOST}[--limit <limit>] [--per-connection-delay <delay>]"
        " [--global] <explanation>", "Closes connections of the node or of one virtual host", 1, 1,
        ("limit", "per-connection-delay", "global")),
    "close_all_user_connections": Command("cli.actions", "close_all_user_connections", "<username> <explanation>",
                                          "Closes all connections of a user", 2, 2),
    # an operator's changes at run time
    "set_vm_memory_high_watermark": Command("cli.operator", "set_vm_memory_high_watermark",
                                            "<fraction> | absolute <value>", "Sets the memory high watermark", 1, 2),
    "set_disk_free_limit": Command("cli.operator", "set_disk_free_limit", "<disk_limit> | mem_relative <fraction>",
                                   "Sets the limit of free disk space", 1, 2),
    "set_log_level": Command("cli.operator", "set_log_level", "<log_level>", "Sets the log's level", 1, 1),
    "set_cluster_name": Command("cli.operator", "set_cluster_name", "<name>", "Sets the cluster's name", 1, 1),
    "hash_password": Command("cli.operator", "hash_password", "[<password>]", "Hashes a password", 0, 1),
    "force_gc": Command("cli.operator", "force_gc", "", "Makes the node collect garbage"),
    "rotate_logs": Command("cli.operator", "rotate_logs", "", "Does not rotate logs anymore"),
    "suspend_listeners": Command("cli.operator", "suspend_listeners", "", "Closes the AMQP listeners"),
    "resume_listeners": Command("cli.operator", "resume_listeners", "", "Opens the AMQP listeners again"),
    "set_vhost_tags": Command("cli.operator", "set_vhost_tags", "<vhost> <tag> [...]", "Sets virtual host tags",
                              1, MANY),
    # questions
    "cluster_status": Command("cli.diagnostics", "cluster_status", "", "Displays the cluster's state"),
    "report": Command("cli.diagnostics", "report", "", "Prints what somebody who helps would ask for"),
    "list_feature_flags": Command("cli.diagnostics", "list_feature_flags", "[<column> ...]", "Lists feature flags",
                                  0, MANY),
    "enable_feature_flag": Command("cli.diagnostics", "enable_feature_flag", "all | <feature_flag>",
                                   "Enables a feature flag", 1, 1),
    "list_unresponsive_queues": Command("cli.diagnostics", "list_unresponsive_queues", VHOST + COLUMNS,
                                        "Lists queues that do not answer", 0, MANY, ("local",)),
    "list_policies_that_match": Command("cli.diagnostics", "list_policies_that_match",
                                        f"{VHOST}[--object-type <type>] <name>",
                                        "Lists policies that match a queue or exchange", 1, 1, ("object-type",)),
    "certificates": Command("cli.diagnostics", "certificates", "", "Displays the listeners' certificates"),
    "check_certificate_expiration": Command("cli.diagnostics", "check_certificate_expiration",
                                            "[--within <period>] [--unit <unit>]",
                                            "Checks that no certificate ends soon", options=("within", "unit")),
    "tls_versions": Command("cli.diagnostics", "tls_versions", "", "Lists the versions of TLS that can be offered"),
    "cipher_suites": Command("cli.diagnostics", "cipher_suites", "[--format <format>]", "Lists cipher suites",
                             options=("format",)),
    "list_ciphers": Command("cli.diagnostics", "cipher_suites", "", "Lists cipher suites"),
    "list_hashes": Command("cli.diagnostics", "list_hashes", "", "Lists what passwords may be hashed with"),
    "is_booting": Command("cli.diagnostics", "is_booting", "", "Says whether the node is still starting"),
    "erlang_version": Command("cli.diagnostics", "erlang_version", "[--details]", "Displays Python's version",
                              options=("details",)),
    "os_env": Command("cli.diagnostics", "os_env", "", "Lists the node's environment variables"),
    "log_tail": Command("cli.diagnostics", "log_tail", "[--number <number> | -N <number>]",
                        "Prints the end of the log file", options=("number",)),
    "resolve_hostname": Command("cli.diagnostics", "resolve_hostname", "<hostname> [--address-family <ipv4|ipv6>]",
                                "Resolves a name", 1, 1, ("address-family",)),
    "node_health_check": Command("cli.diagnostics", "node_health_check", "", "Deprecated: use the checks"),
    "list_node_auth_attempt_stats": Command("cli.diagnostics", "auth_attempts", "", "Counts logins"),
    "command_line_arguments": Command("cli.diagnostics", "command_line_arguments", "",
                                      "Displays the arguments that the node was started with"),
    # what one node without Erlang has not
    "sync_queue": Command("cli.single", "sync_queue", f"{VHOST}<queue>", "Does not apply: no mirrors", 1, 1),
    "cancel_sync_queue": Command("cli.single", "sync_queue", f"{VHOST}<queue>", "Does not apply: no mirrors", 1, 1),
    "forget_cluster_node": Command("cli.single", "forget_cluster_node", "<node>", "Does not apply: one node", 1, 1),
    "hipe_compile": Command("cli.single", "hipe_compile", "<directory>", "No-op", 1, 1),
    "await_online_nodes": Command("cli.single", "await_online_nodes", "<count>", "Waits for nodes", 1, 1),
    "restart_vhost": Command("cli.single", "restart_vhost", VHOST.strip(), "Restarts a failed virtual host"),
    "discover_peers": Command("cli.single", "discover_peers", "", "Lists peers: none"),
    **{
        name: Command("cli.single", function, "[<argument> ...]", "Does not apply to this node", 0, MANY,
                      ("sample-interval", "duration"))
        for function, names in {
            "needs_stopped_app": "join_cluster reset force_reset rename_cluster_node update_cluster_nodes force_boot"
                                 " change_cluster_node_type",
            "quorum": "quorum_status stream_status reclaim_quorum_memory",
            "not_here": "stop_app start_app encode decode consume_event_stream log_tail_stream"
                        " enable_auth_attempt_source_tracking disable_auth_attempt_source_tracking"
                        " reset_node_auth_attempt_metrics list_network_interfaces",
            "no_erlang": "eval_file exec erlang_cookie_hash erlang_cookie_sources maybe_stuck observer"
                         " remote_shell resolver_info runtime_thread_stats schema_info",
        }.items()
        for name in names.split()
    },
    "eval": Command("cli.single", "evaluate", "<expression>", "Knows node() and rabbit_misc:version() only", 1, MANY),
    # about the tool
    "help": Command("cli.help", "help_command", "[<command>]", "Displays usage information", 0, 1, ("list-commands",)),
    "version": Command("cli.help", "version", "", "Displays the version of this tool"),
    "autocomplete": Command("cli.help", "autocomplete", "[<prefix>]", "Lists commands that begin with a prefix", 0, 1),
}  # fmt: skip
