"""Health checks: rabbitmq-diagnostics' ping, check_* and alarms.

Owns no state. Exit status 0 when the check passes, 69 when it fails, as all do when the store has failed; container
health checks look at nothing else. JSON replies carry `result` and the node's name.
"""

from __future__ import annotations

from typing import Any

from burrowmq.cli import terms
from burrowmq.cli.client import Refused, segment
from burrowmq.cli.commands.node import alarm_lines
from burrowmq.cli.errors import OK, UNAVAILABLE, CliError, bad_argument
from burrowmq.cli.invocation import Invocation

CONNECT_TIMEOUT_S = 5.0
PROTOCOLS = {
    **dict.fromkeys(("amqp091", "amqp0.9.1", "amqp0-9-1", "amqp0_9_1"), "amqp"),
    "amqps": "amqp/ssl",
    **dict.fromkeys(("http_api", "management", "ui"), "http"),
    "prometheus": "http/prometheus",
}
"""Other names of protocols, RabbitMQ's and the exporter's own."""
ALONE = "Node {} seems to be the only one in a single node cluster, the check does not apply"


def _passed(invocation: Invocation, text: str, **details: Any) -> int:
    """A check that passed; --silent leaves its status alone."""
    if "silent" in invocation.flags and not invocation.is_machine_readable:
        return _failed(invocation, invocation.node.failure) if invocation.node.failure else OK
    return _answered(invocation, text, **details)


def _answered(invocation: Invocation, text: str, **details: Any) -> int:
    """What was asked for, with --silent too."""
    if invocation.node.failure:
        return _failed(invocation, invocation.node.failure)
    if invocation.is_machine_readable:
        invocation.say(
            terms.compact({"result": "ok", "node": invocation.node.node_name, **details})
        )
    else:
        invocation.say(text)
    return OK


def _failed(invocation: Invocation, text: str, **details: Any) -> int:
    if invocation.is_machine_readable:
        row = {"result": "error", "node": invocation.node.node_name, "message": text, **details}
        invocation.say(terms.compact(row))
        return UNAVAILABLE
    raise CliError(UNAVAILABLE, f"Error:\n{text}")


def ping(invocation: Invocation) -> int:
    """Ping."""
    milliseconds = int((invocation.node.timeout_s or 60) * 1000)
    name = invocation.node.node_name
    invocation.banner(
        f"Will ping {name}. This only checks if the OS process is running and answers on its control socket."
        f" Timeout: {milliseconds} ms."
    )
    return _answered(invocation, "Ping succeeded")


def check_running(invocation: Invocation) -> int:
    """check_running, is_running."""
    name = invocation.node.node_name
    is_question = invocation.name == "is_running"
    if is_question:
        invocation.banner(f"Asking node {name} for its status ...")
    else:
        invocation.banner(f"Checking if RabbitMQ is running on node {name} ...")
    if invocation.node.process["state"] == "running":
        text = f"RabbitMQ on node {name} is fully booted and running"
        details = {"result": True, "message": text} if is_question else {}
        return _answered(invocation, text, **details)
    text = (
        invocation.node.failure
        or f"RabbitMQ on node {name} is not running or has not fully booted yet (check with is_booting)"
    )
    if is_question:
        return _answered(invocation, text, result=False, message=text)
    return _failed(invocation, text)


def _alarms(invocation: Invocation) -> list[str]:
    try:
        invocation.node.get("/api/health/checks/local-alarms")
    except Refused:
        # The refusal does not list the alarms; the status does.
        return alarm_lines(invocation.node.get("/api/burrowmq/status")["alarms"])
    return []


def check_local_alarms(invocation: Invocation) -> int:
    """check_local_alarms."""
    name = invocation.node.node_name
    invocation.banner(f"Asking node {name} to report any local resource alarms ...")
    found = _alarms(invocation)
    if found:
        return _failed(invocation, "\n".join(found))
    return _passed(invocation, f"Node {name} reported no local alarms")


def check_alarms(invocation: Invocation) -> int:
    """check_alarms."""
    name = invocation.node.node_name
    invocation.banner(f"Asking node {name} to report any known resource alarms ...")
    found = _alarms(invocation)
    if found:
        return _failed(invocation, "\n".join(found))
    return _passed(invocation, f"Node {name} reported no alarms, local or clusterwide")


def alarms(invocation: Invocation) -> int:
    """alarms: prints, never fails."""
    name = invocation.node.node_name
    invocation.banner(f"Asking node {name} to report any known resource alarms ...")
    found = _alarms(invocation)
    if found:
        told = f"Node {name} reported alarms"
        return _answered(
            invocation, "\n".join(found), **{"local": found, "global": [], "message": told}
        )
    text = f"Node {name} reported no alarms, local or clusterwide"
    return _answered(invocation, text, alarms=[])


def check_port_connectivity(invocation: Invocation) -> int:
    """check_port_connectivity: a TCP connection to every listener."""
    import socket

    document = invocation.node.get("/api/burrowmq/status")
    name, open_ports, closed = document["node"], [], []
    invocation.banner(f"Testing TCP connections to all active listeners on node {name} ...")
    for row in document["listeners"]:
        host = invocation.values.get("address") or _reachable(row["interface"])
        try:
            socket.create_connection((host, row["port"]), timeout=CONNECT_TIMEOUT_S).close()
        except OSError:
            closed.append(str(row["port"]))
        else:
            open_ports.append(str(row["port"]))
    if closed:
        return _failed(
            invocation,
            f"Connection to ports of the following listeners on node {name} failed: {', '.join(closed)}",
        )
    ports = ", ".join(dict.fromkeys(open_ports))
    return _passed(invocation, f"Successfully connected to ports {ports} on node {name}.")


def _reachable(interface: str) -> str:
    """The address to try for an interface; a listener on all of them is tried on this machine."""
    address = interface.strip("[]")
    # An address to connect to: nothing is bound.
    return {"::": "localhost", "0.0.0.0": "127.0.0.1", "": "localhost"}.get(address, address)  # noqa: S104


def check_port_listener(invocation: Invocation) -> int:
    """check_port_listener PORT."""
    port = invocation.args[0]
    if not port.isdigit():
        raise bad_argument("Bad argument: port must be a positive integer")
    document = invocation.node.get("/api/burrowmq/status")
    name, ports = document["node"], [str(row["port"]) for row in document["listeners"]]
    invocation.banner(f"Asking node {name} if there's an active listener on port {port} ...")
    if port in ports:
        return _passed(invocation, f"A listener for port {port} is running on node {name}.")
    found = ", ".join(dict.fromkeys(ports))
    return _failed(
        invocation,
        f"No listener for port {port} is active on node {name}. Found listeners that use the following ports: {found}",
    )


def check_protocol_listener(invocation: Invocation) -> int:
    """check_protocol_listener PROTOCOL."""
    protocol = invocation.args[0]
    document = invocation.node.get("/api/burrowmq/status")
    name, protocols = document["node"], [row["protocol"] for row in document["listeners"]]
    invocation.banner(
        f"Asking node {name} if there's an active listener for protocol {protocol} ..."
    )
    wanted = PROTOCOLS.get(protocol.lower(), protocol.lower())
    if wanted in protocols:
        return _passed(invocation, f"A listener for protocol {wanted} is running on node {name}.")
    found = ", ".join(dict.fromkeys(protocols))
    return _failed(
        invocation,
        f"No listener for protocol {wanted} is active on node {name}."
        f" Found listeners for the following protocols: {found}",
    )


def check_virtual_hosts(invocation: Invocation) -> int:
    """check_virtual_hosts."""
    name = invocation.node.node_name
    invocation.banner(f"Checking if all vhosts are running on node {name} ...")
    try:
        invocation.node.get(f"/api/health/checks/{segment('virtual-hosts')}")
    except Refused as refused:
        return _failed(invocation, refused.reason)
    return _passed(invocation, f"Node {name} reported all vhosts as running")


def check_quorum_critical(invocation: Invocation) -> int:
    """check_if_node_is_quorum_critical: of the servers that keep a queue here, not of the node."""
    name = invocation.node.node_name
    invocation.banner(f"Checking if node {name} is critical for quorum of any quorum queues ...")
    try:
        found = invocation.node.get("/api/health/checks/node-is-quorum-critical")
    except Refused as refused:
        queues = refused.body.get("queues")
        if queues is None:
            return _failed(invocation, refused.reason)
        if invocation.is_machine_readable:
            text = f"Node {name} reported local queues with minimum online quorum"
            return _failed(invocation, text, queues=queues)
        return _failed(invocation, "\n".join(map(_critical_line, queues)))
    if "reason" in found:
        return _passed(invocation, ALONE.format(name))
    return _passed(invocation, f"Node {name} reported no quorum queues with minimum quorum")


def _critical_line(row: dict[str, Any]) -> str:
    name = terms.escaped(row["readable_name"])
    if row["reason"]:
        return f"{name} has no quorum: {row['reason']}"
    online, members = row["online"], row["members"]
    if len(online) <= len(members) // 2:
        return f"{name} has no quorum: {len(online)} of {len(members)} servers are online"
    servers = " or ".join(online)
    return f"{name} would lose quorum if server {servers} is stopped"


def check_mirror_critical(invocation: Invocation) -> int:
    """check_if_node_is_mirror_sync_critical: there are no mirrors."""
    name = invocation.node.node_name
    invocation.banner(f"Checking if node {name} is critical for mirrors of any queues ...")
    return _passed(invocation, ALONE.format(name))


def check_deprecated(invocation: Invocation) -> int:
    """check_if_any_deprecated_features_are_used: mirrored queues are the one that 3.13 looks for."""
    invocation.banner("Checking if any deprecated features are used ...")
    if any(_mirroring_policies(invocation)):
        text = "Cluster reported deprecated features in use"
        if not invocation.is_machine_readable:
            text = "[:classic_queue_mirroring]"
        return _failed(invocation, text, deprecated_features=["classic_queue_mirroring"])
    return _passed(invocation, "Cluster reported no deprecated features in use")


def check_mirroring(invocation: Invocation) -> int:
    """check_if_cluster_has_classic_queue_mirroring_policy: such policies do nothing here, and stop an upgrade there."""
    invocation.banner("Checking if cluster has any classic queue mirroring policy ...")
    users, operators = _mirroring_policies(invocation)
    if not users and not operators:
        text = "Cluster reported no policies enabling classic queue mirroring"
        return _passed(invocation, text)
    if invocation.is_machine_readable:
        text = "Cluster reported policies enabling classic queue mirroring"
        return _failed(invocation, text, policies=users, operator_policies=operators)
    told = [f"Policy {name} enables classic queue mirroring" for name in users]
    told += [f"Operator policy {name} enables classic queue mirroring" for name in operators]
    return _failed(invocation, "\n".join(map(terms.escaped, told)))


def _mirroring_policies(invocation: Invocation) -> tuple[list[str], list[str]]:
    """Names of the policies and operator policies with a key `ha-mode`."""

    def names(path: str) -> list[str]:
        rows = invocation.node.get(path)
        return [row["name"] for row in rows if "ha-mode" in row["definition"]]

    return names("/api/policies"), names("/api/operator-policies")
