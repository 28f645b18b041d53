"""Every command: where its function is, how many arguments it takes, which options of its own, and its usage line.

Owns no state. Data only, so that help and suggestions import nothing else. A command is one row here and one function
`(invocation) -> int` in the module of `cli.commands` that the row names.
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

    @property
    def module_name(self) -> str:
        """The module's whole name, for who imports it."""
        return f"burrowmq.cli.commands.{self.module}"


class Kind(NamedTuple):
    """One kind of thing that can be listed."""

    path: str
    default: str
    columns: str
    has_vhost: bool = True


def _list(function: str, usage: str, summary: str, options: tuple[str, ...] = ()) -> Command:
    return Command("lists", function, usage, summary, 0, MANY, options)


WITHOUT_APP = frozenset(
    [
        "stop_app",
        "start_app",
        "stop",
        "shutdown",
        "ping",
        "is_running",
        "check_running",
        "is_booting",
        "await_startup",
        "wait",
        "server_version",
        "log_location",
        "log_tail",
        "erlang_version",
        "environment",
        "command_line_arguments",
        "force_gc",
        "resolve_hostname",
        "eval",
        "hash_password",
        "tls_versions",
        "list_hashes",
        "cipher_suites",
        "list_ciphers",
        "hipe_compile",
        "help",
        "version",
        "autocomplete",
        "completion",
        "install_names",
        "cluster_config",
        "list",
        "enable",
        "disable",
        "set",
        "is_enabled",
        "directories",
    ]
)
"""The commands that work while the application is stopped; all others say that they need it."""

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
    "list_users": Command("lists", "users", "[--no-table-headers]", "List user names and tags"),
    "list_permissions": Command("lists", "permissions", VHOST.strip(), "Lists user permissions in a virtual host"),
    "list_user_permissions": Command("lists", "user_permissions", "<username>",
                                     "Lists permissions of a user across all virtual hosts", 1, 1),
    # the node
    "status": Command("node", "status", "[--unit <unit>]", "Displays status of a node", options=("unit",)),
    "environment": Command("node", "environment", "", "Displays the configuration of the node"),
    "ping": Command("checks", "ping", "", "Checks that the node responds"),
    "await_startup": Command("node", "await_startup", "", "Waits for the node to start"),
    "wait": Command("wait", "wait", "[<pidfile>] [--pid|-P <pid>]", "Waits for the node to start", 0, 1,
                    ("pid",)),
    "stop_app": Command("node", "stop_app", "", "Stops the broker, leaving its process running"),
    "start_app": Command("node", "start_app", "", "Starts the broker in its process again"),
    "shutdown": Command("node", "shutdown", "[--wait] [--no-wait]", "Stops the node and waits for it to be gone",
                        options=("wait", "no-wait")),
    "stop": Command("node", "stop", "[--idempotent] [<pidfile>]", "Stops the node", 0, 1, ("idempotent",)),
    "memory_breakdown": Command("node", "memory_breakdown", "[--unit <unit>]", "Says where the memory is",
                                options=("unit",)),
    "listeners": Command("node", "listeners", "", "Lists the open ports"),
    "server_version": Command("node", "server_version", "", "Displays the version of the node"),
    "log_location": Command("node", "log_location", "", "Shows where the log goes"),
    "export_definitions": Command("definitions", "export_definitions", '<file_path | "-"> [--format <json>]',
                                  "Exports definitions as JSON", 1, 1, ("format",)),
    "import_definitions": Command("definitions", "import_definitions",
                                  '<file_path | "-"> [--format <json>] [--skip-if-unchanged]'
                                  " [--mirrored-as <classic | quorum>]",
                                  "Imports definitions from JSON", 0, 1,
                                  ("format", "skip-if-unchanged", "mirrored-as")),
    "import_from": Command("import_from", "import_from",
                           "[<amqp-uri>] [--management <url>] [--vhost <vhost>] [--queues <pattern>] [--rate <number>]"
                           " [--keep] [--no-publishers] [--ttl-from-timestamp] [--dry-run] [--check <file>] [--stop]",
                           "Takes a running RabbitMQ's definitions and messages over", 0, 1,
                           ("management", "queues", "rate", "keep", "no-publishers", "ttl-from-timestamp", "check",
                            "stop")),
    "backup": Command("backup", "backup", "[--no-wait] <directory>",
                      "Backs the node up into a directory of its machine, while it runs", 1, 1, ("no-wait",)),
    "migrate_queues": Command("migrate", "migrate_queues", f"{VHOST}[--dry-run] <pattern>",
                              "Makes quorum queues of classic ones, while clients use them", 1, 1),
    "scrub": Command("scrub", "scrub", "[--start]",
                     "Says how far the check of everything stored is, or begins one", options=("start",)),
    # health checks
    "check_running": Command("checks", "check_running", "", "Checks that the node is fully started"),
    "is_running": Command("checks", "check_running", "", "Checks that the node is fully started"),
    "check_local_alarms": Command("checks", "check_local_alarms", "", "Checks that the node has no alarms"),
    "check_alarms": Command("checks", "check_alarms", "", "Checks that there are no alarms in the cluster"),
    "alarms": Command("checks", "alarms", "", "Lists alarms in effect"),
    "check_port_connectivity": Command("checks", "check_port_connectivity", "[--address <address>]",
                                       "Connects to every port of the node", options=("address",)),
    "check_port_listener": Command("checks", "check_port_listener", "<port>", "Checks that a port is open", 1, 1),
    "check_protocol_listener": Command("checks", "check_protocol_listener", "<protocol>",
                                       "Checks that a protocol is served", 1, 1),
    "check_virtual_hosts": Command("checks", "check_virtual_hosts", "", "Checks that all virtual hosts run"),
    "check_if_node_is_quorum_critical": Command(
        "checks", "check_quorum_critical", "", "Checks that no quorum queue would be lost with one more server"),
    "check_if_node_is_mirror_sync_critical": Command("checks", "check_mirror_critical", "",
                                                     "Does not apply to a single node"),
    # users, permissions, virtual hosts
    "add_user": Command("users", "add_user", "<username> [<password>]", "Creates a user", 1, 2),
    "delete_user": Command("users", "delete_user", "<username>", "Removes a user", 1, 1),
    "change_password": Command("users", "change_password", "<username> [<password>]", "Changes a password", 1, 2),
    "clear_password": Command("users", "clear_password", "<username>", "Disables login with a password", 1, 1),
    "authenticate_user": Command("users", "authenticate_user", "<username> [<password>]",
                                 "Tries a user name and password", 1, 2),
    "set_user_tags": Command("users", "set_user_tags", "<username> <tag> [...]", "Sets user tags", 1, MANY),
    "set_permissions": Command("users", "set_permissions", f"{VHOST}<username> <conf> <write> <read>",
                               "Sets user permissions for a virtual host", 4, 4),
    "set_permissions_globally": Command("users", "set_permissions_globally", "<username> <conf> <write> <read>",
                                        "Sets user permissions for all virtual hosts", 4, 4),
    "clear_permissions": Command("users", "clear_permissions", f"{VHOST}<username>",
                                 "Revokes user permissions for a virtual host", 1, 1),
    "add_vhost": Command("users", "add_vhost", "<vhost> [--description <text>] [--tags <tags>]"
                         " [--default-queue-type <type>]", "Creates a virtual host", 1, 1,
                         ("description", "tags", "default-queue-type")),
    "update_vhost_metadata": Command("users", "update_vhost_metadata", "<vhost> [--description <text>]"
                                     " [--tags <tags>] [--default-queue-type <type>]",
                                     "Changes what is said about a virtual host", 1, 1,
                                     ("description", "tags", "default-queue-type")),
    "trace_on": Command("users", "trace_on", VHOST.strip(), "Starts tracing"),
    "trace_off": Command("users", "trace_off", VHOST.strip(), "Stops tracing"),
    "delete_vhost": Command("users", "delete_vhost", "<vhost>", "Deletes a virtual host", 1, 1),
    "set_topic_permissions": Command("users", "set_topic_permissions",
                                     f"{VHOST}<username> <exchange> <write> <read>",
                                     "Sets user topic permissions for an exchange", 4, 4),
    "clear_topic_permissions": Command("users", "clear_topic_permissions", f"{VHOST}<username> [<exchange>]",
                                       "Clears user topic permissions for an exchange or all", 1, 2),
    "list_topic_permissions": Command("users", "list_topic_permissions", f"{VHOST}[--no-table-headers]",
                                      "Lists topic permissions in a virtual host"),
    "list_user_topic_permissions": Command("users", "list_user_topic_permissions",
                                           "[--no-table-headers] <username>", "Lists topic permissions of a user",
                                           1, 1),
    # policies, parameters, limits
    "set_policy": Command("policies", "set_policy", POLICY_USAGE, "Sets or updates a policy", 3, 3, POLICY),
    "clear_policy": Command("policies", "clear_policy", f"{VHOST}<name>", "Clears (removes) a policy", 1, 1),
    "list_policies": Command("policies", "list_policies", f"{VHOST}[--no-table-headers]",
                             "Lists all policies in a virtual host"),
    "set_operator_policy": Command("policies", "set_operator_policy", POLICY_USAGE,
                                   "Sets an operator policy that overrides a subset of arguments", 3, 3, POLICY),
    "clear_operator_policy": Command("policies", "clear_operator_policy", f"{VHOST}<name>",
                                     "Clears an operator policy", 1, 1),
    "list_operator_policies": Command("policies", "list_operator_policies", f"{VHOST}[--no-table-headers]",
                                      "Lists operator policy overrides in a virtual host"),
    "set_parameter": Command("policies", "set_parameter", f"{VHOST}<component_name> <name> <value>",
                             "Sets a runtime parameter", 3, 3),
    "clear_parameter": Command("policies", "clear_parameter", f"{VHOST}<component_name> <name>",
                               "Clears a runtime parameter", 2, 2),
    "list_parameters": Command("policies", "list_parameters", f"{VHOST}[--no-table-headers]",
                               "Lists runtime parameters of a virtual host"),
    "set_global_parameter": Command("policies", "set_global_parameter", "<name> <value>",
                                    "Sets a global runtime parameter", 2, 2),
    "clear_global_parameter": Command("policies", "clear_global_parameter", "<name>",
                                      "Clears a global runtime parameter", 1, 1),
    "list_global_parameters": Command("policies", "list_global_parameters", "[--no-table-headers]",
                                      "Lists global runtime parameters"),
    "set_vhost_limits": Command("policies", "set_vhost_limits", f"{VHOST}<definition>",
                                "Sets virtual host limits", 1, 1),
    "clear_vhost_limits": Command("policies", "clear_vhost_limits", VHOST.strip(), "Clears virtual host limits"),
    "list_vhost_limits": Command("policies", "list_vhost_limits", f"{VHOST}[--global] [--no-table-headers]",
                                 "Displays configured virtual host limits", options=("global",)),
    "set_user_limits": Command("policies", "set_user_limits", "<username> <definition>", "Sets user limits", 2, 2),
    "clear_user_limits": Command("policies", "clear_user_limits", "<username> <limit_type> | all",
                                 "Clears user connection or channel limits", 2, 2),
    "list_user_limits": Command("policies", "list_user_limits", "[--user <username>] [--global]",
                                "Displays configured user limits", options=("user", "global")),
    # shovels
    "shovel_status": Command("shovels", "shovel_status", "[--no-table-headers]", "Displays status of Shovels"),
    "restart_shovel": Command("shovels", "restart_shovel", f"{VHOST}<name>", "Restarts a dynamic Shovel", 1, 1),
    "delete_shovel": Command("shovels", "delete_shovel", f"{VHOST}<name>", "Deletes a Shovel", 1, 1),
    # queues and connections
    "purge_queue": Command("actions", "purge_queue", f"{VHOST}<queue>", "Removes all ready messages of a queue",
                           1, 1),
    "delete_queue": Command("actions", "delete_queue", f"{VHOST}<queue> [--if-empty|-e] [--if-unused|-u]",
                            "Deletes a queue", 1, 1, ("if-empty", "if-unused")),
    "close_connection": Command("actions", "close_connection", "<connection pid> <explanation>",
                                "Closes a connection", 2, 2),
    "close_all_connections": Command(
        "actions", "close_all_connections", f"{VHOST}[--limit <limit>] [--per-connection-delay <delay>]"
        " [--global] <explanation>", "Closes connections of one virtual host or of the node", 1, 1,
        ("limit", "per-connection-delay", "global")),
    "close_all_user_connections": Command("actions", "close_all_user_connections", "<username> <explanation>",
                                          "Closes all connections of a user", 2, 2),
    # an operator's changes at run time
    "set_vm_memory_high_watermark": Command("operator", "set_vm_memory_high_watermark",
                                            "<fraction> | absolute <value>", "Sets the memory high watermark", 1, 2),
    "set_disk_free_limit": Command("operator", "set_disk_free_limit", "<disk_limit> | mem_relative <fraction>",
                                   "Sets the limit of free disk space", 1, 2),
    "set_log_level": Command("operator", "set_log_level", "<log_level>", "Sets the log's level", 1, 1),
    "set_cluster_name": Command("operator", "set_cluster_name", "<name>", "Sets the cluster's name", 1, 1),
    "hash_password": Command("operator", "hash_password", "[<password>]", "Hashes a password", 0, 1),
    "force_gc": Command("operator", "force_gc", "", "Makes the node collect garbage"),
    "activate_free_disk_space_monitoring": Command(
        "operator", "watch_disk", "", "Activates the watch over free disk space, and its alarm"),
    "deactivate_free_disk_space_monitoring": Command(
        "operator", "watch_disk", "", "Deactivates the watch over free disk space; a disk alarm ends"),
    "rotate_logs": Command("operator", "rotate_logs", "", "Does not rotate logs anymore"),
    "suspend_listeners": Command("operator", "suspend_listeners", "", "Closes the AMQP listeners"),
    "resume_listeners": Command("operator", "resume_listeners", "", "Opens the AMQP listeners again"),
    "set_vhost_tags": Command("operator", "set_vhost_tags", "<vhost> <tag> [...]", "Sets virtual host tags",
                              1, MANY),
    # questions
    "cluster_status": Command("diagnostics", "cluster_status", "", "Displays the cluster's state"),
    "report": Command("diagnostics", "report", "", "Prints what somebody who helps would ask for"),
    "list_feature_flags": Command("diagnostics", "list_feature_flags", "[<column> ...]", "Lists feature flags",
                                  0, MANY),
    "enable_feature_flag": Command("diagnostics", "enable_feature_flag", "all | <feature_flag>",
                                   "Enables a feature flag", 1, 1),
    "list_deprecated_features": Command("diagnostics", "list_deprecated_features", "[--used] [<column> ...]",
                                        "Lists deprecated features", 0, MANY, ("used",)),
    "check_if_any_deprecated_features_are_used": Command(
        "checks", "check_deprecated", "", "Checks that no deprecated feature is in use"),
    "check_if_cluster_has_classic_queue_mirroring_policy": Command(
        "checks", "check_mirroring", "", "Checks that no policy wants mirrored queues"),
    "metadata_store_status": Command("diagnostics", "metadata_store_status", "", "Says what holds the definitions"),
    "list_unresponsive_queues": Command("diagnostics", "list_unresponsive_queues", VHOST + COLUMNS,
                                        "Lists queues that do not answer", 0, MANY, ("local",)),
    "list_policies_that_match": Command("diagnostics", "list_policies_that_match",
                                        f"{VHOST}[--object-type <type>] <name>",
                                        "Lists policies that match a queue or exchange", 1, 1, ("object-type",)),
    "certificates": Command("diagnostics", "certificates", "", "Displays the listeners' certificates"),
    "check_certificate_expiration": Command("diagnostics", "check_certificate_expiration",
                                            "[--within <period>] [--unit <unit>]",
                                            "Checks that no certificate ends soon", options=("within", "unit")),
    "tls_versions": Command("diagnostics", "tls_versions", "", "Lists the versions of TLS that can be offered"),
    "cipher_suites": Command("diagnostics", "cipher_suites", "[--format <format>]", "Lists cipher suites",
                             options=("format",)),
    "list_ciphers": Command("diagnostics", "cipher_suites", "", "Lists cipher suites"),
    "list_hashes": Command("diagnostics", "list_hashes", "", "Lists what passwords may be hashed with"),
    "is_booting": Command("diagnostics", "is_booting", "", "Says whether the node is still starting"),
    "erlang_version": Command("diagnostics", "erlang_version", "[--details]", "Displays Python's version",
                              options=("details",)),
    "os_env": Command("diagnostics", "os_env", "", "Lists the node's environment variables"),
    "log_tail": Command("diagnostics", "log_tail", "[--number <number> | -N <number>]",
                        "Prints the end of the log file", options=("number",)),
    "resolve_hostname": Command("diagnostics", "resolve_hostname", "<hostname> [--address-family <ipv4|ipv6>]",
                                "Resolves a name", 1, 1, ("address-family",)),
    "node_health_check": Command("diagnostics", "node_health_check", "", "Deprecated: use the checks"),
    "list_node_auth_attempt_stats": Command("diagnostics", "auth_attempts", "", "Counts logins"),
    "reset_node_auth_attempt_metrics": Command("diagnostics", "reset_auth_attempts", "", "Counts logins anew"),
    "command_line_arguments": Command("diagnostics", "command_line_arguments", "",
                                      "Displays the arguments that the node was started with"),
    # what makes no sense on a single node without Erlang
    "sync_queue": Command("single", "sync_queue", f"{VHOST}<queue>", "Does not apply: no mirrors", 1, 1),
    "cancel_sync_queue": Command("single", "sync_queue", f"{VHOST}<queue>", "Does not apply: no mirrors", 1, 1),
    "forget_cluster_node": Command("single", "forget_cluster_node", "<node>", "Does not apply: one node", 1, 1),
    "hipe_compile": Command("single", "hipe_compile", "<directory>", "No-op", 1, 1),
    "await_online_nodes": Command("single", "await_online_nodes", "<count>", "Waits for nodes", 1, 1),
    "restart_vhost": Command("single", "restart_vhost", VHOST.strip(), "Restarts a failed virtual host"),
    "discover_peers": Command("single", "discover_peers", "", "Lists peers: none"),
    **{
        name: Command("single", function, "[<argument> ...]", "Does not apply to this node", 0, MANY,
                      ("sample-interval", "duration"))
        for function, names in {
            "needs_stopped_app": "join_cluster reset force_reset rename_cluster_node update_cluster_nodes force_boot"
                                 " change_cluster_node_type",
            "quorum": "reclaim_quorum_memory peek",
            "not_here": "encode decode consume_event_stream log_tail_stream"
                        " enable_auth_attempt_source_tracking disable_auth_attempt_source_tracking"
                        " list_network_interfaces",
            "no_erlang": "eval_file exec erlang_cookie_hash erlang_cookie_sources maybe_stuck observer"
                         " remote_shell resolver_info runtime_thread_stats schema_info",
        }.items()
        for name in names.split()
    },
    "eval": Command("single", "evaluate", "<expression>", "Knows node() and rabbit_misc:version() only", 1, MANY),
    # rabbitmq-plugins
    "list": Command("plugins", "list_plugins", "[pattern] [--verbose] [--minimal] [--enabled] [--implicitly-enabled]",
                    "Lists plugins and their state", 0, 1, ("verbose", "minimal", "enabled", "implicitly-enabled")),
    "enable": Command("plugins", "enable", "<plugin1> [ <plugin2>] | --all [--offline] [--online]",
                      "Enables one or more plugins", 0, MANY, ("all", "online")),
    "disable": Command("plugins", "disable", "<plugin1> [ <plugin2>] | --all [--offline] [--online]",
                       "Disables one or more plugins", 0, MANY, ("all", "online")),
    "set": Command("plugins", "set_plugins", "<plugin1> [ <plugin2>] [--offline] [--online]",
                   "Enables one or more plugins, disables the rest", 0, MANY, ("online",)),
    "is_enabled": Command("plugins", "is_enabled", "<plugin1> [ <plugin2>] [--offline] [--online]",
                          "Checks that plugins are enabled", 1, MANY, ("online",)),
    "directories": Command("plugins", "directories", "[--offline] [--online]", "Says where plugins would be",
                           options=("online",)),
    # rabbitmq-upgrade and rabbitmq-queues
    "drain": Command("maintenance", "drain", "", "Puts the node in maintenance mode: no clients"),
    "revive": Command("maintenance", "revive", "", "Puts the node out of maintenance mode"),
    "await_online_quorum_plus_one": Command("maintenance", "await_replicas", "", "Waits for replicas: there are none"),
    "await_online_synchronized_mirror": Command("maintenance", "await_replicas", "",
                                                "Waits for mirrors: there are none"),
    "post_upgrade": Command("maintenance", "post_upgrade", "", "Runs post-upgrade tasks: there are none"),
    "grow": Command("members", "resize", "<node> < all | even > [--vhost-pattern <pattern>]"
                    " [--queue-pattern <pattern>] [--membership <promotable|voter>] [--errors-only]", "Adds a member at"
                    " a server to all quorum queues that fit", 2, 2,
                    ("vhost-pattern", "queue-pattern", "membership", "errors-only")),
    "shrink": Command("members", "resize", "<node> [--errors-only]",
                      "Removes the members of quorum queues at a server", 1, 1, ("errors-only",)),
    "add_member": Command("members", "change", VHOST + "<queue> <node> [--membership <promotable|voter>]",
                          "Adds a member of a quorum queue at a server", 2, 2, ("membership",)),
    "delete_member": Command("members", "change", VHOST + "<queue> <node>",
                             "Removes the member of a quorum queue at a server", 2, 2),
    "add_replica": Command("members", "change", VHOST + "<queue> <node>",
                           "Adds a replica of a stream at a server", 2, 2),
    "delete_replica": Command("members", "change", VHOST + "<queue> <node>",
                              "Removes the replica of a stream at a server", 2, 2),
    "restart_stream": Command("members", "restart", VHOST + "<stream> [--preferred-leader-node <node>]",
                              "Has another server write a stream", 1, 1, ("preferred-leader-node",)),
    "quorum_status": Command("members", "status", VHOST + "<queue>",
                             "Displays who keeps a quorum queue, and who leads it", 1, 1),
    "stream_status": Command("members", "status", VHOST + "<queue>",
                             "Displays who keeps a stream, and who leads it", 1, 1),
    "rebalance": Command("maintenance", "rebalance", "< all | classic | quorum | stream > [--vhost-pattern <pattern>]"
                         " [--queue-pattern <pattern>]", "Shares out who leads quorum queues and streams", 1, 1,
                         ("vhost-pattern", "queue-pattern")),
    # about the tool
    "completion": Command("completion", "completion", "bash | fish | zsh",
                          "Prints a script that completes commands and options in a shell", 1, 1),
    "install_names": Command("names", "install_names", "[--force] <directory>",
                             "Makes the commands available by RabbitMQ's names, in a directory", 1, 1, ("force",)),
    "cluster_config": Command("cluster_config", "cluster_config", "[--force] [--client-port <port>]"
                              " [--route-port <port>] [--store <directory>] [--user <name>]"
                              " <directory> [<name>=]<host> [...]",
                              "Writes configuration files for nats-servers that keep quorum queues", 2, MANY,
                              ("force", "client-port", "route-port", "store", "user")),
    "help": Command("help", "help_command", "[<command>]", "Displays usage information", 0, 1, ("list-commands",)),
    "version": Command("help", "version", "", "Displays the version of this tool"),
    "autocomplete": Command("help", "autocomplete", "[<prefix>]", "Lists commands that begin with a prefix", 0, 1),
}  # fmt: skip
