"""Commands that make no sense on a node that is its whole cluster, or that only an Erlang machine has.

Owns no state. Each answers with one clear sentence and rabbitmqctl's exit code, so that a script fails, or goes on, as
it would on a single RabbitMQ node. No command pretends to have done something.
"""

from __future__ import annotations

from burrowmq.cli.errors import OK, SOFTWARE, UNAVAILABLE, USAGE, CliError, failure
from burrowmq.cli.invocation import Invocation

CLUSTER = "a BurrowMQ node is its whole cluster: {name} does not apply"
ERLANG = "this node runs on Python, not on an Erlang machine: {name} does not apply"
# What to use instead, if there is something.
INSTEAD = {
    "reset": "to empty a node, stop it and remove its data directory",
    "force_reset": "to empty a node, stop it and remove its data directory",
    "eval": "eval is not supported; 'environment' shows the configuration, 'help' lists the commands that change it",
    "eval_file": "eval_file is not supported; 'help' lists the commands that change a node",
    "exec": "exec is not supported; burrowctl is no Elixir program",
    "encode": "encrypted values in configuration files are not supported; use files that only the node may read",
    "decode": "encrypted values in configuration files are not supported; use files that only the node may read",
    "consume_event_stream": "events are in the log: 'log_location' says where",
    "log_tail_stream": "the log can be followed where it is: 'log_location' says where",
    "enable_auth_attempt_source_tracking": "sources of logins are in the log, one line each",
    "disable_auth_attempt_source_tracking": "sources of logins are in the log, one line each",
    "list_network_interfaces": "ask the operating system: ip address",
    "rename_cluster_node": "a node's name is the key `nodename`; its data does not depend on it",
}


def not_here(invocation: Invocation) -> int:
    """Commands for clusters and mirrors. Raises: CliError 69."""
    text = INSTEAD.get(invocation.name, CLUSTER.format(name=invocation.name))
    raise failure(text, UNAVAILABLE)


def no_erlang(invocation: Invocation) -> int:
    """Commands about the Erlang machine. Raises: CliError 69."""
    raise failure(INSTEAD.get(invocation.name, ERLANG.format(name=invocation.name)), UNAVAILABLE)


def evaluate(invocation: Invocation) -> int:
    """Eval: the few expressions that runbooks use to ask who is there. Raises: CliError 69."""
    expression = "".join("".join(invocation.args).split()).rstrip(".")
    if expression == "node()":
        invocation.say(invocation.node.node_name)
        return OK
    if expression == "rabbit_misc:version()":
        invocation.say('"' + str(invocation.node.process["version"]) + '"')
        return OK
    raise failure(INSTEAD["eval"], UNAVAILABLE)


def needs_stopped_app(invocation: Invocation) -> int:
    """Commands that rabbitmqctl refuses while the application runs, and we always. Raises: CliError 64, 69."""
    text = INSTEAD.get(invocation.name, CLUSTER.format(name=invocation.name))
    if invocation.node.process["state"] == "stopped":
        raise failure(text, UNAVAILABLE)
    raise CliError(USAGE, f"Error: {text}")


def quorum(invocation: Invocation) -> int:
    """Commands about what RabbitMQ keeps for quorum queues. Raises: CliError 69."""
    raise failure(
        f"Operation not supported: {invocation.name} is for RabbitMQ's own logs", UNAVAILABLE
    )


def sync_queue(invocation: Invocation) -> int:
    """sync_queue, cancel_sync_queue: there are no mirrors. Raises: CliError 69."""
    verb = "Synchronising" if invocation.name == "sync_queue" else "Stopping synchronising"
    name, vhost = invocation.args[0], invocation.vhost
    invocation.banner(f"{verb} queue '{name}' in vhost '{vhost}' ...")
    raise failure("not_mirrored", UNAVAILABLE)


def forget_cluster_node(invocation: Invocation) -> int:
    """forget_cluster_node NODE: there is no other. Raises: CliError 69."""
    invocation.banner(f"Removing node {invocation.args[0]} from the cluster")
    raise failure("{:not_a_cluster_node, 'The node selected is not in the cluster.'}", UNAVAILABLE)


def hipe_compile(invocation: Invocation) -> int:
    """hipe_compile: a no-op, as in RabbitMQ."""
    invocation.say("This command is a no-op. HiPE is no longer supported by modern Erlang versions")
    return OK


def await_online_nodes(invocation: Invocation) -> int:
    """await_online_nodes COUNT: one is there. Raises: CliError 64, 70."""
    text = invocation.args[0]
    if not (text.isascii() and text.isdigit()):
        raise CliError(USAGE, f"Error (argument validation): Bad argument: {text} is no number")
    seconds = invocation.patience_s(300)
    name = invocation.node.node_name
    invocation.banner(
        f"Will wait for at least {text} nodes to join the cluster of {name}."
        f" Timeout: {seconds:.0f} seconds."
    )
    if text.lstrip("0") not in ("", "1"):
        # RabbitMQ waits; here no other node can join, so waiting would not help.
        raise failure(
            f"Error: timed out while waiting. Not enough nodes joined {name}'s cluster.", SOFTWARE
        )
    return OK


def restart_vhost(invocation: Invocation) -> int:
    """restart_vhost: every virtual host of a running node runs."""
    name, vhost = invocation.node.node_name, invocation.vhost
    invocation.banner(f"Trying to restart vhost '{vhost}' on node '{name}' ...")
    known = invocation.node.get("/api/burrowmq/list/vhosts?columns=name")["rows"]
    if [vhost] not in known:
        # RabbitMQ's words, without a space as well.
        text = f"Failed to start vhost '{vhost}' on node '{name}'Reason: {{:no_such_vhost, \"{vhost}\"}}"
        raise failure(text, SOFTWARE)
    invocation.say(f"Vhost '{vhost}' is already running on node '{name}'")
    return OK


def discover_peers(invocation: Invocation) -> int:
    """discover_peers: none."""
    invocation.banner("Discovering peers nodes ...")
    invocation.say("No peers discovered")
    return OK
