"""Commands about the node as a whole: status, await_startup, shutdown, memory, listeners.

Owns no state. `status` prints rabbitmqctl's sections; its Memory section ends with the one-line total that older
versions printed, because runbooks grep it (`status | grep rss,`). `shutdown` asks over the control socket and then
watches the process, so that it returns when the node is gone.
"""

from __future__ import annotations

import os
import time
from typing import Any

from burrowmq.cli import terms
from burrowmq.cli.client import Unreachable
from burrowmq.cli.errors import OK, TEMPFAIL, UNAVAILABLE, USAGE, CliError, bad_argument, failure
from burrowmq.cli.invocation import Invocation
from burrowmq.cli.render import BOLD, NORMAL

UNITS = {"bytes": 1, "gb": 10**9, "mb": 10**6, "gib": 2**30, "mib": 2**20}
STARTUP_TIMEOUT_S = 300.0
POLL_S = 0.05


def _unit(invocation: Invocation) -> str:
    unit = invocation.values.get("unit", "gb")
    if unit.lower() not in UNITS:
        raise bad_argument(
            f"unit '{unit}' is not supported. Please use one of: bytes, mb, mib, gb, gib", USAGE
        )
    return unit.lower()


def _in_unit(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{int(value)} bytes"
    return f"{round(value / UNITS[unit], 4)} {unit}"


# -- status ------------------------------------------------------------------------------------------------------


def status(invocation: Invocation) -> int:
    """Status."""
    unit = _unit(invocation)
    document = invocation.node.get("/api/burrowmq/status")
    if invocation.is_machine_readable:
        invocation.say(terms.compact(document))
    elif invocation.formatter == "erlang":
        invocation.say(_proplist(document))
    else:
        invocation.banner(f"Status of node {document['node']} ...")
        invocation.say("\n".join(_status_lines(document, unit)))
    return OK


def _heading(text: str) -> str:
    return f"{BOLD}{text}{NORMAL}"


def _status_lines(document: dict[str, Any], unit: str) -> list[str]:
    own = document["burrowmq"]
    lines = [
        _heading("Runtime"), "",
        f"OS PID: {document['pid']}",
        f"OS: {document['os']}",
        f"Uptime (seconds): {document['uptime']}",
        f"Is under maintenance?: {str(document['is_under_maintenance']).lower()}",
        f"RabbitMQ version: {document['rabbitmq_version']}",
        f"BurrowMQ version: {own['version']} ({own['codec']} codec, confirm = {own['confirm']})",
        f"RabbitMQ release series support status: {document['release_series_support_status']}",
        f"Node name: {document['node']}",
        f"Python: {document['erlang_version']}",
        f"Threads: {document['processes']['used']} used, {document['processes']['limit']} limit",
        "",
        _heading("Plugins"), "",
        f"Enabled plugin file: {document['enabled_plugin_file']}",
        "Enabled plugins:", "",
        *[f" * {name}" for name in document["active_plugins"]],
        "",
        _heading("Data directory"), "",
        f"Node data directory: {document['data_directory']}",
        "",
        _heading("Config files"), "",
        *[f" * {name}" for name in document["config_files"]],
        "",
        _heading("Log file(s)"), "",
        *[f" * {name}" for name in document["log_files"]],
        "",
        _heading("Alarms"), "",
        *(alarm_lines(document["alarms"]) or ["(none)"]),
        "",
    ]  # fmt: skip
    return [*lines, *_memory_lines(document, unit), *_limit_lines(document, unit)]


def alarm_lines(alarms: list[dict[str, Any]]) -> list[str]:
    """One line an alarm; all but those of memory with what is wrong: it need not be that little is free."""
    names = {
        "memory": "Memory alarm",
        "disk": "Free disk space alarm",
        "queue": "Queue files alarm",
        "cluster": "Cluster alarm",
    }
    return [
        f"{names.get(alarm['resource'], alarm['resource'])} on node {alarm['node']}"
        f"{': ' + alarm['cause'] if alarm['resource'] != 'memory' and alarm['cause'] else ''}"
        for alarm in alarms
    ]


def _memory_lines(document: dict[str, Any], unit: str) -> list[str]:
    memory = document["memory"]
    total = memory["total"]
    setting, limit = (
        document["vm_memory_high_watermark_setting"],
        document["vm_memory_high_watermark_limit"],
    )
    if "relative" in setting:
        watermark = (
            f"{setting['relative']} of available memory, computed to: {_in_unit(limit, unit)}"
        )
    else:
        watermark = _in_unit(limit, unit)
    return [
        _heading("Memory"), "",
        f"Total memory used: {_in_unit(total['rss'], unit)}",
        f"Calculation strategy: {memory['strategy']}",
        f"Memory high watermark setting: {watermark}",
        "",
        *_breakdown(memory, unit, "{name}: {amount} ({share} %)"),
        "",
        f"      {{total,[{{erlang,{total['erlang']}}},{{rss,{total['rss']}}},{{allocated,{total['allocated']}}}]}}]}},",
        "",
    ]  # fmt: skip


def _breakdown(memory: dict[str, Any], unit: str, shape: str) -> list[str]:
    parts = [(name, value) for name, value in memory.items() if isinstance(value, int)]
    parts.sort(key=lambda part: (-part[1], part[0]))
    total = max(1, memory["total"]["rss"])
    return [
        shape.format(name=name, amount=_in_unit(value, unit), share=f"{100 * value / total:.2f}")
        for name, value in parts
    ]


def _limit_lines(document: dict[str, Any], unit: str) -> list[str]:
    descriptors, totals = document["file_descriptors"], document["totals"]
    return [
        _heading("File Descriptors"), "",
        f"Total: {descriptors['total_used']}, limit: {descriptors['total_limit']}",
        f"Sockets: {descriptors['sockets_used']}, limit: {descriptors['sockets_limit']}",
        f"Store: {descriptors.get('store_used', 0)}, limit: {descriptors.get('store_limit', 0)}",
        "",
        _heading("Free Disk Space"), "",
        f"Low free disk space watermark: {_in_unit(document['disk_free_limit'], unit)}",
        f"Free disk space: {_in_unit(document['disk_free'], unit)}",
        "",
        _heading("Totals"), "",
        f"Connection count: {totals['connection_count']}",
        f"Queue count: {totals['queue_count']}",
        f"Virtual host count: {totals['virtual_host_count']}",
        "",
        _heading("Listeners"), "",
        *[listener_line(row) for row in document["listeners"]],
    ]  # fmt: skip


def listener_line(row: dict[str, Any]) -> str:
    """One open port."""
    return f"Interface: {row['interface']}, port: {row['port']}, protocol: {row['protocol']}, purpose: {row['purpose']}"


def _proplist(document: dict[str, Any]) -> str:
    """The document as Erlang terms, memory in the shape that older versions printed."""
    total = document["memory"]["total"]
    parts = [(name, value) for name, value in document["memory"].items() if isinstance(value, int)]
    memory = ",\n      ".join(f"{{{name},{value}}}" for name, value in parts)
    others = [
        f" {terms.erlang(name, value)}"
        for name, value in document.items()
        if name not in ("memory", "burrowmq")
    ]
    shown = (
        f" {{memory,\n     [{memory},\n      {{strategy,rss}},\n"
        f"      {{total,[{{erlang,{total['erlang']}}},{{rss,{total['rss']}}},{{allocated,{total['allocated']}}}]}}]}}"
    )
    # Not last: the line with rss ends in a comma, which is what people grep for.
    return "[" + ",\n".join([*others[:1], shown, *others[1:]]).lstrip() + "]"


def memory_breakdown(invocation: Invocation) -> int:
    """memory_breakdown."""
    unit = _unit(invocation)
    document = invocation.node.get("/api/burrowmq/status")
    if invocation.is_machine_readable:
        invocation.say(terms.compact({"memory": document["memory"], "node": document["node"]}))
        return OK
    invocation.banner(f"Reporting memory breakdown on node {document['node']}...")
    invocation.say(
        "\n".join(_breakdown(document["memory"], unit, "{name}: {amount} ({share}%)")) + "\n"
    )
    return OK


def environment(invocation: Invocation) -> int:
    """Environment."""
    document = invocation.node.get("/api/burrowmq/environment")
    if invocation.is_machine_readable:
        invocation.say(terms.compact(document))
        return OK
    invocation.banner(f"Application environment of node {invocation.node.node_name} ...")
    for name, value in document["burrowmq"].items():
        invocation.say(f"{name} = {terms.compact(value)}")
    for row in document["effective"]:
        why = f"; no effect: {row['remark']}" if row["remark"] else ""
        invocation.say(f"{row['key']} = {row['value']}  # {row['source']}{why}")
    return OK


def listeners(invocation: Invocation) -> int:
    """Listeners."""
    document = invocation.node.get("/api/burrowmq/status")
    name = document["node"]
    if invocation.formatter == "csv":
        columns = ["node", "protocol", "interface", "port", "purpose"]
        rows = [[row[column] for column in columns] for row in document["listeners"]]
        invocation.rows(columns, rows)
        return OK
    if invocation.is_machine_readable:
        invocation.say(
            terms.compact({"listeners": document["listeners"], "node": name, "result": "ok"})
        )
        return OK
    invocation.banner(f"Asking node {name} to report its protocol listeners ...")
    for row in document["listeners"]:
        invocation.say(listener_line(row))
    return OK


def server_version(invocation: Invocation) -> int:
    """server_version."""
    invocation.banner(f"Asking node {invocation.node.node_name} for its RabbitMQ version...")
    version = str(invocation.node.process["version"])
    if invocation.is_machine_readable:
        version = terms.compact({"result": "ok", "value": version})
    invocation.say(version)
    return OK


def log_location(invocation: Invocation) -> int:
    """log_location."""
    invocation.banner(f"Log file location(s) on node {invocation.node.node_name} ...")
    invocation.say("\n".join(invocation.node.process["log_files"]))
    return OK


# -- start and stop ----------------------------------------------------------------------------------------------


def await_startup(invocation: Invocation) -> int:
    """await_startup: until the node answers or the time is up. One whose application is stopped fails at once."""
    limit_s = invocation.patience_s(STARTUP_TIMEOUT_S)
    deadline = time.monotonic() + limit_s
    while True:
        why = "it is still starting"
        try:
            state = invocation.node.get("/api/burrowmq/process")["state"]
        except Unreachable as error:
            why = error.text
        else:
            if state == "running":
                return OK
            if state == "stopped":
                raise failure("rabbit_is_not_running", UNAVAILABLE)
        if time.monotonic() >= deadline:
            raise CliError(
                TEMPFAIL, f"Error: the node did not start within {limit_s:g} seconds\n\n{why}"
            )
        time.sleep(POLL_S)


def _check_control_socket(invocation: Invocation) -> None:
    """Over HTTP nobody could log in to start again what was stopped. Raises: CliError 69."""
    if invocation.node.url:
        raise failure(
            f"{invocation.name} works on the node's machine only, over its control socket:"
            " --data-dir DIR names the node's data directory",
            UNAVAILABLE,
        )


def stop_app(invocation: Invocation) -> int:
    """stop_app: returns when the broker has stopped; its process goes on."""
    _check_control_socket(invocation)
    invocation.banner(f"Stopping rabbit application on node {invocation.node.node_name} ...")
    invocation.node.request("POST", "/api/burrowmq/stop-app")
    return OK


def start_app(invocation: Invocation) -> int:
    """start_app: returns when clients can connect. Raises: CliError 69 with the reason why they cannot."""
    _check_control_socket(invocation)
    invocation.banner(f"Starting node {invocation.node.node_name} ...")
    invocation.node.request("POST", "/api/burrowmq/start-app")
    return OK


def _stop(invocation: Invocation) -> dict[str, Any]:
    answer: dict[str, Any] = invocation.node.request("POST", "/api/burrowmq/shutdown")
    return answer


def _is_gone(invocation: Invocation, pid: int) -> bool:
    """Whether the process has ended; for a node elsewhere, whether nothing answers."""
    if invocation.node.url:
        try:
            invocation.node.get("/api/burrowmq/ready")
        except Unreachable:
            return True
        return False
    return is_process_gone(pid)


def is_process_gone(pid: int) -> bool:
    """Whether a process of this machine has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
    return False


def _wait_until_gone(invocation: Invocation, pid: int) -> None:
    deadline = time.monotonic() + (invocation.node.timeout_s or 1e9)
    while not _is_gone(invocation, pid):
        if time.monotonic() >= deadline:
            raise CliError(
                TEMPFAIL,
                f"Error: PID {pid} did not end within {invocation.node.timeout_s:g} seconds",
            )
        time.sleep(POLL_S)


def shutdown(invocation: Invocation) -> int:
    """Shutdown."""
    answer = _stop(invocation)
    name, pid = answer["node"], int(answer["pid"])
    invocation.banner(f"Shutting down RabbitMQ node {name} running at PID {pid}")
    if "no-wait" in invocation.flags:
        return OK
    invocation.banner(f"Waiting for PID {pid} to terminate")
    _wait_until_gone(invocation, pid)
    invocation.banner(f"RabbitMQ node {name} running at PID {pid} successfully shut down")
    return OK


def stop(invocation: Invocation) -> int:
    """Stop [PIDFILE]: with a pid file, until that process is gone."""
    file = invocation.args[0] if invocation.args else ""
    # Before, since a node takes its file along; where it cannot be read the node is stopped all the same, as there.
    pid, why = _pid_in(file)
    try:
        answer = _stop(invocation)
    except Unreachable:
        if "idempotent" not in invocation.flags:
            raise
        invocation.banner("Node is already stopped")
        return OK
    name = answer["node"]
    if not file:
        invocation.banner(f"Stopping and halting node {name} ...")
        return OK
    invocation.banner(f"Stopping and halting node {name} (will monitor pid file {file}) ...")
    if pid is None:
        raise failure(f"could not read the pid file {file}: {why}", UNAVAILABLE)
    _wait_until_gone(invocation, pid)
    return OK


def _pid_in(file: str) -> tuple[int | None, str]:
    """The number in a pid file, or None and why there is none."""
    try:
        with open(file, encoding="ascii") as opened:
            return int(opened.read().strip()), ""
    except (OSError, ValueError) as error:
        return None, str(error)
