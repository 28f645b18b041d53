"""rabbitmq-diagnostics' questions: cluster, certificates, TLS, the log's end, the environment, the report.

Owns no state. Banners are those of 3.10.8. What only an Erlang machine has is in `cli.commands.single`.
"""

from __future__ import annotations

import os
import socket
from typing import Any

from burrowmq.cli import terms
from burrowmq.cli.client import Refused, segment
from burrowmq.cli.commands.cluster import cluster_sections
from burrowmq.cli.commands.node import alarm_lines, listener_line
from burrowmq.cli.errors import OK, UNAVAILABLE, USAGE, CliError, bad_argument, bad_option, failure
from burrowmq.cli.invocation import Invocation
from burrowmq.cli.render import BOLD, NORMAL

PERIODS = {"days": 1, "weeks": 7, "months": 30, "years": 365}
BOOTED = "fully booted (check with is_running), stopped or has not started booting yet"
LINES_DEFAULT = 50
LINES_MAX = 1_000_000


def _status(invocation: Invocation) -> dict[str, Any]:
    found: dict[str, Any] = invocation.node.get("/api/burrowmq/status")
    return found


def cluster_status(invocation: Invocation) -> int:
    """cluster_status."""
    node = invocation.node
    name, status = node.node_name, _status(invocation)
    cluster = node.get("/api/cluster-name")["name"]
    flags = node.get("/api/feature-flags")
    kept = node.get("/api/burrowmq/cluster")
    version = {
        "erlang_version": status["erlang_version"],
        "rabbitmq_name": "RabbitMQ",
        "rabbitmq_version": status["rabbitmq_version"],
    }
    if invocation.is_machine_readable:
        document = {
            "alarms": status["alarms"],
            "cluster_name": cluster,
            "disk_nodes": [name],
            "feature_flags": flags,
            "listeners": {name: status["listeners"]},
            "maintenance_status": {name: _maintenance(status)},
            "partitions": {},
            "ram_nodes": [],
            "running_nodes": [name],
            "versions": {name: version},
        }
        if kept is not None:
            document["quorum_queues_cluster"] = kept
        invocation.say(terms.compact(document))
        return OK
    invocation.banner(f"Cluster status of node {name} ...")
    sections = [
        ("Basics", [f"Cluster name: {terms.escaped(cluster)}"]),
        ("Disk Nodes", [name]),
        ("Running Nodes", [name]),
        ("Versions", [f"{name}: RabbitMQ {status['rabbitmq_version']} on {status['erlang_version']}"]),
        ("Maintenance status", [f"Node: {name}, status: {_maintenance(status)}"]),
        ("Alarms", alarm_lines(status["alarms"]) or ["(none)"]),
        ("Network Partitions", ["(none)"]),
        ("Listeners", [f"Node: {name}, {_lowered(listener_line(row))}" for row in status["listeners"]]),
        ("Feature flags", [f"Flag: {flag['name']}, state: {flag['state']}" for flag in flags]),
    ]  # fmt: skip
    if kept is not None:
        sections[3:3] = cluster_sections(kept)
    invocation.say(
        "\n\n".join(f"{BOLD}{title}{NORMAL}\n\n" + "\n".join(lines) for title, lines in sections)
    )
    return OK


def _maintenance(status: dict[str, Any]) -> str:
    return "marked for maintenance" if status["is_under_maintenance"] else "not under maintenance"


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def list_feature_flags(invocation: Invocation) -> int:
    """list_feature_flags [COLUMN...]."""
    known = ("name", "stability", "state", "desc", "provided_by", "doc_url")
    columns = [name for word in invocation.args for name in word.split(",") if name]
    unknown = [name for name in columns if name not in known]
    if unknown:
        from burrowmq.cli.commands.help import argument_error

        raise argument_error(invocation, f"Info key(s) {','.join(unknown)} are not supported")
    columns = columns or ["name", "state"]
    invocation.banner("Listing feature flags ...")
    rows = invocation.node.get("/api/feature-flags")
    invocation.rows(columns, [[row[name] for name in columns] for row in rows])
    return OK


def enable_feature_flag(invocation: Invocation) -> int:
    """enable_feature_flag NAME | all: all flags are enabled already."""
    name = invocation.args[0]
    if name == "all":
        invocation.banner("Enabling all feature flags ...")
        return OK
    invocation.banner(f'Enabling feature flag "{name}" ...')
    try:
        invocation.node.request("PUT", f"/api/feature-flags/{segment(name)}/enable")
    except Refused as refused:
        if refused.status != 400:
            raise
        text = f"Error:\nThis feature flag is not supported by node {invocation.node.node_name}"
        raise CliError(USAGE, text) from refused
    return OK


def list_deprecated_features(invocation: Invocation) -> int:
    """list_deprecated_features [--used] [COLUMN...]."""
    known = ("name", "deprecation_phase", "provided_by", "desc", "doc_url")
    columns = [name for word in invocation.args for name in word.split(",") if name]
    unknown = [name for name in columns if name not in known]
    if unknown:
        from burrowmq.cli.commands.help import argument_error

        raise argument_error(invocation, f"Info key(s) {','.join(unknown)} are not supported")
    columns = columns or ["name", "deprecation_phase"]
    is_used = "used" in invocation.flags
    invocation.banner(f"Listing deprecated features {'in use ' if is_used else ''}...")
    rows = invocation.node.get(f"/api/deprecated-features{'/used' if is_used else ''}")
    invocation.rows(columns, [[row[name] for name in columns] for row in rows])
    return OK


def metadata_store_status(invocation: Invocation) -> int:
    """metadata_store_status: the one store of definitions, which this node leads."""
    name = invocation.node.node_name
    status = _status(invocation)
    invocation.banner(f"Status of metadata store on node {name} ...")
    if "formatter" not in invocation.values:
        invocation.values["formatter"] = "pretty_table"
    row = [name, "leader", "voter", "SQLite", status["data_directory"]]
    invocation.rows(["Node Name", "Raft State", "Membership", "Store", "Directory"], [row])
    return OK


# -- TLS ---------------------------------------------------------------------------------------------------------


def certificates(invocation: Invocation) -> int:
    """Certificates of the listeners, as PEM."""
    name = invocation.node.node_name
    rows = invocation.node.get("/api/burrowmq/certificates")
    invocation.banner(f"Certificates of node {name} ...")
    columns = ["interface", "port", "protocol", "purpose", "certfile", "cacertfile"]
    invocation.rows(columns, [[row.get(column) for column in columns] for row in rows])
    return OK


def check_certificate_expiration(invocation: Invocation) -> int:
    """check_certificate_expiration [--within N] [--unit UNIT]: 69 when one ends within that time."""
    within, unit = invocation.values.get("within", "4"), invocation.values.get("unit", "weeks")
    if unit.lower() not in PERIODS:
        known = ", ".join(PERIODS)
        raise bad_argument(f"\"unit '{unit}' is not supported. Please use one of: {known}\"", USAGE)
    if not (within.isascii() and within.isdigit()):
        raise bad_argument(f"\"within '{within}' is no number\"", USAGE)
    name = invocation.node.node_name
    invocation.banner(f"Checking certificate expiration on node {name} ...")
    try:
        invocation.node.get(f"/api/health/checks/certificate-expiration/{within}/{unit.lower()}")
    except Refused as refused:
        return _expiring(invocation, refused)
    noun = unit.lower().removesuffix("s") if within == "1" else unit.lower()
    if invocation.is_machine_readable:
        invocation.say(terms.compact({"result": "ok", "node": name}))
    else:
        invocation.say(f"No certificates are expiring within {within} {noun}.")
    return OK


def _expiring(invocation: Invocation, refused: Refused) -> int:
    rows = refused.body.get("expired", [])
    if invocation.is_machine_readable:
        invocation.say(terms.compact({"expired": rows, "result": "error"}))
        return UNAVAILABLE
    lines = [
        f"{row['protocol']} listener on {row['interface']}:{row['port']}: "
        + ", ".join(
            f"{row[key]} " + (f"ends on {', '.join(ends)}" if ends else "holds no certificate that can be read")
            for key in ("certfile", "cacertfile")
            if (ends := row.get(f"{key}_expires_on")) is not None
        )
        for row in rows
    ]  # fmt: skip
    raise CliError(UNAVAILABLE, "Error:\n" + "\n".join(lines or [refused.reason]))


def tls_versions(invocation: Invocation) -> int:
    """tls_versions: what a listener may offer."""
    versions = ["tlsv1.3", "tlsv1.2"]
    if invocation.is_machine_readable:
        invocation.say(terms.compact({"versions": versions}))
        return OK
    invocation.banner("Listing all TLS versions supported by the runtime...")
    invocation.say("\n".join(versions))
    return OK


def cipher_suites(invocation: Invocation) -> int:
    """cipher_suites: OpenSSL's names."""
    import ssl

    names = [str(each["name"]) for each in ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).get_ciphers()]
    if invocation.is_machine_readable:
        invocation.say(terms.compact({"cipher_suites": names, "format": "openssl"}))
        return OK
    invocation.banner("Listing available cipher suites in OpenSSL format")
    invocation.say("\n".join(names))
    return OK


def list_hashes(invocation: Invocation) -> int:
    """list_hashes: what passwords may be hashed with."""
    invocation.banner("Listing supported hash algorithms ...")
    invocation.say("[sha512,sha256,md5]")
    return OK


# -- the node ----------------------------------------------------------------------------------------------------


def list_unresponsive_queues(invocation: Invocation) -> int:
    """list_unresponsive_queues: none; a queue has no process of its own that could hang."""
    invocation.banner(f"Listing unresponsive queues for vhost {invocation.vhost} ...")
    invocation.rows([], [])
    return OK


def list_policies_that_match(invocation: Invocation) -> int:
    """list_policies_that_match [--object-type queues|exchanges] NAME, those in force first."""
    from urllib.parse import urlencode

    name, kind = invocation.args[0], invocation.values.get("object-type", "queue").removesuffix("s")
    invocation.banner(
        f"Listing policies that match {kind} '{name}' in vhost '{invocation.vhost}' ..."
    )
    columns = ["name", "pattern", "apply-to", "definition", "priority"]
    query = {"columns": ",".join(columns), "vhost": invocation.vhost, "name": name, "kind": kind}
    try:
        answer = invocation.node.get(f"/api/burrowmq/list/matching_policies?{urlencode(query)}")
    except Refused as refused:
        raise failure(refused.reason) from refused
    if "formatter" not in invocation.values:
        invocation.values["formatter"] = "pretty_table"
    invocation.rows(columns, answer["rows"])
    return OK


def is_booting(invocation: Invocation) -> int:
    """is_booting: whether a start is under way."""
    name = invocation.node.node_name
    invocation.banner(f"Asking node {name} for its boot status ...")
    is_starting = invocation.node.process["state"] == "starting"
    text = "is booting" if is_starting else f"is {BOOTED}"
    text = f"RabbitMQ on node {name} {text}"
    if invocation.is_machine_readable:
        text = terms.compact({"message": text, "result": is_starting})
    invocation.say(text)
    return OK


def erlang_version(invocation: Invocation) -> int:
    """erlang_version: Python's."""
    invocation.banner(f"Asking node {invocation.node.node_name} for its Erlang/OTP version...")
    invocation.say(str(invocation.node.process["erlang_version"]))
    return OK


def os_env(invocation: Invocation) -> int:
    """os_env: the variables of RabbitMQ's and our names, without passwords."""
    name = invocation.node.node_name
    invocation.banner(f"Listing RabbitMQ-specific environment variables defined on node {name}...")
    found = invocation.node.get("/api/burrowmq/os-environment")
    for key in sorted(found):
        invocation.say(f"{key}={found[key]}")
    return OK


def log_tail(invocation: Invocation) -> int:
    """log_tail [-N LINES]: the end of the log file. Raises: CliError 69 when there is none."""
    count = int(invocation.number("number", LINES_DEFAULT))
    if not 0 <= count <= LINES_MAX:
        raise bad_option("number", invocation.values["number"], f"0 to {LINES_MAX}")
    name = invocation.node.node_name
    invocation.banner(f"Last {count} log lines on node {name} ...")
    try:
        answer = invocation.node.get(f"/api/burrowmq/log?lines={count}")
    except Refused as refused:
        raise failure(refused.reason) from refused
    for line in answer["lines"]:
        invocation.say(terms.escaped(line))
    return OK


def resolve_hostname(invocation: Invocation) -> int:
    """resolve_hostname NAME [--address-family IPv4|IPv6], where this command runs."""
    host = invocation.args[0]
    family = invocation.values.get("address-family", "IPv4")
    if family.lower() not in ("ipv4", "ipv6"):
        raise bad_argument(f'"unsupported address family {family}"', USAGE)
    name = invocation.node.node_name
    invocation.banner(f"Asking node {name} to resolve hostname {host} to {family} addresses...")
    kind = socket.AF_INET if family.lower() == "ipv4" else socket.AF_INET6
    try:
        found = socket.getaddrinfo(host, None, kind, socket.SOCK_STREAM)
    except OSError as error:
        raise failure(f"{host} cannot be resolved: {error.strerror}") from error
    for address in dict.fromkeys(str(row[4][0]) for row in found):
        invocation.say(address)
    return OK


def node_health_check(invocation: Invocation) -> int:
    """node_health_check: deprecated in RabbitMQ; here it fails while an alarm is on."""
    name = invocation.node.node_name
    invocation.banner(f"Timeout: 70 seconds ...\nChecking health of node {name} ...")
    try:
        invocation.node.get("/api/healthchecks/node")
    except Refused as refused:
        raise failure(f"Error: health check failed. Message: {refused.reason}") from refused
    invocation.say("Health check passed")
    return OK


def reset_auth_attempts(invocation: Invocation) -> int:
    """reset_node_auth_attempt_metrics: logins are counted from zero again."""
    name = invocation.node.node_name
    invocation.banner(f"Reset auth attempt metrics on node {name} ...")
    invocation.node.request("DELETE", f"/api/auth/attempts/{segment(name)}")
    return OK


def auth_attempts(invocation: Invocation) -> int:
    """list_node_auth_attempt_stats."""
    from burrowmq.cli.client import segment

    name = invocation.node.node_name
    invocation.banner(f'Listing authentication\n attempts for node "{name}" ...')
    rows = invocation.node.get(f"/api/auth/attempts/{segment(name)}")
    columns = ["protocol", "auth_attempts", "auth_attempts_failed", "auth_attempts_succeeded"]
    if not any(row["auth_attempts"] for row in rows):
        invocation.say(f"Node {name} reported no authentication attempt stats")
        return OK
    invocation.rows(columns, [[row[column] for column in columns] for row in rows])
    return OK


REPORTED = (
    "status", "cluster_status", "environment", "list_connections", "list_channels", "list_vhosts", "list_users",
)  # fmt: skip
REPORTED_PER_VHOST = (
    "list_queues", "list_exchanges", "list_bindings", "list_consumers", "list_permissions", "list_policies",
    "list_parameters", "list_topic_permissions",
)  # fmt: skip


def report(invocation: Invocation) -> int:
    """Report: everything that somebody who is asked for help wants to see."""
    from dataclasses import replace
    from importlib import import_module

    from burrowmq.cli.registry import COMMANDS

    def run(name: str, **values: str) -> None:
        command = COMMANDS[name]
        one = replace(invocation, name=name, args=[], values={**invocation.values, **values})
        getattr(import_module(command.module_name), command.function)(one)
        invocation.say("")

    invocation.banner(f"Reporting server status of node {invocation.node.node_name} ...\n")
    for name in REPORTED:
        run(name)
    for row in invocation.node.get("/api/vhosts?columns=name"):
        for name in REPORTED_PER_VHOST:
            run(name, vhost=row["name"])
    return OK


def command_line_arguments(invocation: Invocation) -> int:
    """command_line_arguments of the node's process."""
    name, pid = invocation.node.node_name, invocation.node.process["pid"]
    invocation.banner(f"Command line arguments of node {name} ...")
    try:
        with open(f"/proc/{int(pid)}/cmdline", "rb") as file:
            words = file.read().rstrip(b"\0").split(b"\0")
    except OSError as error:
        raise failure(f"process {pid} cannot be looked at from here: {error.strerror}") from error
    for word in words:
        invocation.say(terms.escaped(os.fsdecode(word)))
    return OK
