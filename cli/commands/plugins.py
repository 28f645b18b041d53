"""rabbitmq-plugins: what is built in is enabled and stays so, everything else is not part of BurrowMQ.

Owns no state. Dockerfiles and Testcontainers run `rabbitmq-plugins enable` before and after the node starts, so none of
these commands needs a node. Texts and exit codes are those of 3.10.8 where a plugin is built in; for others the first
two lines of the error are RabbitMQ's, and the third says what is missing.
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

from burrowmq.cli import terms
from burrowmq.cli.client import Unreachable
from burrowmq.cli.commands.help import RABBITMQ_VERSION, argument_error
from burrowmq.cli.errors import OK, SOFTWARE, UNAVAILABLE, CliError, failure
from burrowmq.cli.invocation import Invocation


class Plugin(NamedTuple):
    """A plugin of RabbitMQ's whose work this node does; E is named by people, e comes with another."""

    mark: str
    description: str
    needs: str = ""


BUILT_IN = {
    "rabbitmq_auth_mechanism_ssl": Plugin("E", "Login by certificate: EXTERNAL"),
    "rabbitmq_consistent_hash_exchange": Plugin("E", "Exchange type x-consistent-hash"),
    "rabbitmq_management": Plugin(
        "E", "HTTP API and UI", "rabbitmq_web_dispatch,rabbitmq_management_agent"
    ),
    "rabbitmq_management_agent": Plugin("e", "Statistics behind the HTTP API"),
    "rabbitmq_prometheus": Plugin(
        "E", "Metrics for Prometheus", "rabbitmq_web_dispatch,rabbitmq_management_agent"
    ),
    "rabbitmq_random_exchange": Plugin("E", "Exchange type x-random"),
    "rabbitmq_recent_history_exchange": Plugin("E", "Exchange type x-recent-history"),
    "rabbitmq_shovel": Plugin("E", "Data shovels"),
    "rabbitmq_shovel_management": Plugin(
        "E", "HTTP API and UI of shovels", "rabbitmq_management,rabbitmq_shovel"
    ),
    "rabbitmq_web_dispatch": Plugin("e", "Listeners for HTTP"),
}
KNOWN = frozenset(
    [
        "rabbitmq_amqp1_0",
        "rabbitmq_auth_backend_cache",
        "rabbitmq_auth_backend_http",
        "rabbitmq_auth_backend_ldap",
        "rabbitmq_auth_backend_oauth2",
        "rabbitmq_event_exchange",
        "rabbitmq_federation",
        "rabbitmq_federation_management",
        "rabbitmq_jms_topic_exchange",
        "rabbitmq_mqtt",
        "rabbitmq_peer_discovery_aws",
        "rabbitmq_peer_discovery_common",
        "rabbitmq_peer_discovery_consul",
        "rabbitmq_peer_discovery_etcd",
        "rabbitmq_peer_discovery_k8s",
        "rabbitmq_sharding",
        "rabbitmq_stomp",
        "rabbitmq_stream",
        "rabbitmq_stream_management",
        "rabbitmq_top",
        "rabbitmq_tracing",
        "rabbitmq_trust_store",
        "rabbitmq_web_mqtt",
        "rabbitmq_web_mqtt_examples",
        "rabbitmq_web_stomp",
        "rabbitmq_web_stomp_examples",
    ]
)
"""The others that RabbitMQ 3.13 comes with."""


def _node(invocation: Invocation) -> tuple[str, bool]:
    """The node's name, and whether it answers; with --offline it is not asked."""
    if "offline" in invocation.flags:
        return invocation.node.addressed, False
    try:
        return invocation.node.node_name, True
    except Unreachable:
        return invocation.node.addressed, False


def _banner(invocation: Invocation, text: str) -> None:
    """A banner of a command that asks no application."""
    if not invocation.is_machine_readable and not invocation.flags & {"quiet", "silent"}:
        invocation.say(text)


def list_plugins(invocation: Invocation) -> int:
    """List [PATTERN]: those that are built in, with -v, -m, -e and -E."""
    text = invocation.args[0] if invocation.args else ".*"
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise argument_error(invocation, f"Bad argument: {text} is no pattern: {error}") from error
    node, is_up = _node(invocation)
    marks = "E" if "enabled" in invocation.flags else "Ee"
    names = [name for name, each in BUILT_IN.items() if pattern.search(name) and each.mark in marks]
    if invocation.is_machine_readable:
        plugins = [_document(name, is_up) for name in names]
        status = "running" if is_up else "node_down"
        document = {"format": "normal", "plugins": plugins, "status": status}
        invocation.say(terms.compact(document))
        return OK
    _banner(invocation, f'Listing plugins with pattern "{text}" ...')
    if "minimal" in invocation.flags:
        lines = names
    else:
        state = f"* = running on {node}"
        if not is_up:
            state = f"[failed to contact {node} - status not shown]"
        legend = " Configured: E = explicitly enabled; e = implicitly enabled\n | Status: {}\n |/"
        _banner(invocation, legend.format(state))
        width = max(map(len, names), default=0)
        is_verbose = "verbose" in invocation.flags
        lines = [_row(name, is_up, 0 if is_verbose else width) for name in names]
    for line in lines:
        invocation.say(line)
    return OK


def _row(name: str, is_running: bool, width: int) -> str:
    """One plugin on a line, or with a width of 0 on four."""
    plugin = BUILT_IN[name]
    head = f"[{plugin.mark}{'*' if is_running else ' '}] "
    if width:
        return f"{head}{name:<{width}} {RABBITMQ_VERSION}"
    return (
        f"{head}{name}\n     Version:     \t{RABBITMQ_VERSION}\n"
        f"     Dependencies:\t[{plugin.needs}]\n     Description: \t{plugin.description}"
    )


def _document(name: str, is_running: bool) -> dict[str, object]:
    mark = BUILT_IN[name].mark
    return {
        "name": name,
        "enabled": "enabled" if mark == "E" else "implicit",
        "running": is_running,
        "version": RABBITMQ_VERSION,
        "running_version": RABBITMQ_VERSION if is_running else None,
    }


def enable(invocation: Invocation) -> int:
    """Enable PLUGIN...: succeeds for what is built in. Raises: CliError 70 for anything else."""
    return _apply(invocation, "Enabling", _named(invocation))


def disable(invocation: Invocation) -> int:
    """Disable PLUGIN...: what is built in stays, and a warning says so."""
    names = _named(invocation)
    code = _apply(invocation, "Disabling", names, also_known=KNOWN)
    _warn(sorted(set(names) & set(BUILT_IN)))
    return code


def set_plugins(invocation: Invocation) -> int:
    """Set PLUGIN...: enables them; those that are built in and not named stay as well."""
    names = invocation.args
    code = _apply(invocation, "Enabling", names)
    _warn([name for name, each in BUILT_IN.items() if each.mark == "E" and name not in names])
    return code


def _named(invocation: Invocation) -> list[str]:
    if "all" in invocation.flags:
        if invocation.args:
            raise argument_error(
                invocation, "Bad argument: \"Cannot set both '--all' and a list of plugins\""
            )
        return list(BUILT_IN)
    if not invocation.args:
        raise argument_error(invocation, "not enough arguments.")
    return invocation.args


def _apply(
    invocation: Invocation, doing: str, names: list[str], also_known: frozenset[str] = frozenset()
) -> int:
    node, is_up = _node(invocation)
    if "all" in invocation.flags:
        _banner(invocation, f"{doing} ALL plugins on node {node}")
    else:
        _banner(invocation, "\n".join([f"{doing} plugins on node {node}:", *names]))
    missing = [name for name in names if name not in BUILT_IN and name not in also_known]
    if missing:
        atoms = ", ".join(f":{name}" for name in missing)
        raise failure(
            f"{{:plugins_not_found, [{atoms}]}}\n"
            f"{', '.join(missing)}: not part of BurrowMQ. Built in: {', '.join(BUILT_IN)}",
            SOFTWARE,
        )
    configured = "".join(f"\n  {name}" for name in BUILT_IN)
    invocation.say(f"The following plugins have been configured:{configured}")
    if is_up:
        invocation.say(f"Applying plugin configuration to {node}...")
    invocation.say("Plugin configuration unchanged.")
    return OK


def _warn(stay: list[str]) -> None:
    if stay:
        sys.stdout.flush()
        sys.stderr.write(
            f"Warning: {', '.join(stay)}: built in, cannot be disabled."
            " Their listeners are closed by the configuration: management.tcp.port, prometheus.tcp.port\n"
        )


def is_enabled(invocation: Invocation) -> int:
    """is_enabled PLUGIN...: 0 when all are built in, 69 otherwise."""
    names, (node, _) = invocation.args, _node(invocation)
    told = f"plugin{'s' if len(names) > 1 else ''} {', '.join(names)}"
    are = "are" if len(names) > 1 else "is"
    _banner(invocation, f"Asking node {node} if {told} {are} enabled...")
    missing = [name for name in names if name not in BUILT_IN]
    if not missing:
        if "silent" not in invocation.flags:
            invocation.say(f"{told.capitalize()} {are} enabled on node {node}")
        return OK
    lacking = f"Plugin{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
    raise CliError(
        UNAVAILABLE,
        f"Error:\n{lacking} {'are' if len(missing) > 1 else 'is'} not enabled on node {node}."
        f" Enabled plugins and dependencies: {', '.join(BUILT_IN)}",
    )


def directories(invocation: Invocation) -> int:
    """Directories: there are none to put plugins into."""
    _banner(invocation, f"Listing plugin directories used by node {_node(invocation)[0]}")
    invocation.say("Plugin archives directory: (none: what is built in needs no archive)")
    invocation.say("Plugin expansion directory: (none)")
    invocation.say("Enabled plugins file: (none: what is built in is always enabled)")
    return OK
