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
                                "Closes a connection", 2, MANY),
    "close_all_connections": Command(
        "cli.actions", "close_all_connections", f"{VHOST}[--limit <limit>] [--per-connection-delay <delay>]"
        " [--global] <explanation>", "Closes connections of the node or of one virtual host", 1, MANY,
        ("limit", "per-connection-delay", "global")),
    "close_all_user_connections": Command("cli.actions", "close_all_user_connections", "<username> <explanation>",
                                          "Closes all connections of a user", 2, MANY),
    # about the tool
    "help": Command("cli.help", "help_command", "[<command>]", "Displays usage information", 0, 1, ("list-commands",)),
    "version": Command("cli.help", "version", "", "Displays the version of this tool"),
    "autocomplete": Command("cli.help", "autocomplete", "[<prefix>]", "Lists commands that begin with a prefix", 0, 1),
}  # fmt: skip
