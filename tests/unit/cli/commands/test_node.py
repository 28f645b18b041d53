"""status, await_startup, shutdown, memory."""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from burrowmq.cli.commands import node
from burrowmq.cli.registry import COMMANDS, WITHOUT_APP
from burrowmq.storage.errors import StorageError
from tests.support.broker_process import BrokerProcess
from tests.support.served import Served, ctl


def test_status(served: Served) -> None:
    output = served.ctl("status")
    assert output.code == 0
    for line in (
        "RabbitMQ version: 3.13.7",
        "Node name: rabbit@test",
        "Queue count: 2",
        "Connection count: 1",
        "(none)",
    ):
        assert line in output.out.splitlines()
    (line,) = [line for line in output.out.splitlines() if "rss," in line]
    assert line.startswith("      {total,[{erlang,")


def test_status_for_programs(served: Served) -> None:
    document = json.loads(served.ctl("status", "--formatter", "json").out)
    assert document["memory"]["total"]["rss"] > 1_000_000
    assert document["totals"]["queue_count"] == 2
    output = served.ctl("-q", "status", "--formatter", "erlang")
    (line,) = [line for line in output.out.splitlines() if "rss," in line]
    assert line.endswith("]}]},")


def test_units(served: Served) -> None:
    assert " mib" in served.ctl("memory_breakdown", "--unit", "mib").out
    assert served.ctl("status", "--unit", "pounds").code == 64


def test_alarms_are_in_the_status(served: Served) -> None:
    served.node.alarms.active.add("memory")
    assert "Memory alarm on node rabbit@test" in served.ctl("status").out


def test_await_startup(served: Served, tmp_path: Path) -> None:
    assert served.ctl("await_startup") == (0, "", "")
    output = ctl("--data-dir", str(tmp_path / "nosuch"), "await_startup", "-t", "0.1")
    assert output.code == 75
    assert "did not start within 0.1 seconds" in output.err


def test_shutdown_without_waiting(served: Served) -> None:
    output = served.ctl("shutdown", "--no-wait")
    assert output.out.startswith("Shutting down RabbitMQ node rabbit@test running at PID ")
    assert served.ctl("stop").out == "Stopping and halting node rabbit@test ...\n"


def test_stop_of_a_node_that_is_down(tmp_path: Path) -> None:
    assert ctl("--data-dir", str(tmp_path), "stop").code == 69
    assert ctl("--data-dir", str(tmp_path), "stop", "--idempotent").code == 0


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """One that ends when its input does."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        yield running


def test_stop_with_a_pid_file_returns_when_that_process_is_gone(
    served: Served, tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    file = tmp_path / "pid"
    file.write_text(f" {process.pid}\n")
    output = served.ctl("stop", str(file), "-t", "0.1")
    text = f"Error: PID {process.pid} did not end within 0.1 seconds\n"
    assert (output.code, output.err) == (75, text)
    assert process.stdin is not None
    process.stdin.close()
    banner = f"Stopping and halting node rabbit@test (will monitor pid file {file}) ...\n"
    assert served.ctl("stop", str(file)) == (0, banner, ""), "nobody has waited for it yet"
    process.wait()
    assert served.ctl("-q", "stop", str(file)) == (0, "", "")


def test_a_pid_file_that_the_node_takes_along_has_been_read(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    file.write_text("1")

    class Stopping(http.server.BaseHTTPRequestHandler):
        """A node that has ended by the time that its answer is read."""

        def do_POST(self) -> None:
            file.unlink()
            body = b'{"node": "a@b"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Stopping) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        output = ctl("--url", f"http://127.0.0.1:{server.server_port}", "-q", "stop", str(file))
        server.shutdown()
        thread.join()
    assert output == (0, "", "")


@pytest.mark.parametrize("content", [None, "", "none"])
def test_a_pid_file_that_cannot_be_read_is_told(
    served: Served, tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "pid").write_text(content)
    output = served.ctl("stop", str(tmp_path / "pid"))
    assert output.code == 69
    assert output.err.startswith(f"Error:\ncould not read the pid file {tmp_path / 'pid'}: ")


@pytest.mark.slow
@pytest.mark.parametrize("is_over_http", [False, True])
def test_shutdown_returns_when_the_node_is_gone(tmp_path: Path, is_over_http: bool) -> None:
    node = BrokerProcess(tmp_path / "data")
    node.start()
    try:
        where = ["--data-dir", str(node.data_dir)]
        if is_over_http:
            where = ["--url", f"http://127.0.0.1:{node.management_port}"]
        pid = node.running().pid
        output = ctl(*where, "shutdown", "-t", "20")
        assert (output.code, output.err) == (0, "")
        first, second, third = output.out.splitlines()
        assert first.endswith(f" running at PID {pid}")
        assert second == f"Waiting for PID {pid} to terminate"
        assert third.endswith(f" running at PID {pid} successfully shut down")
        assert node.running().wait(20) == 0
    finally:
        if node.is_alive:
            node.kill()


def test_listeners_and_memory_for_programs(served: Served) -> None:
    found = json.loads(served.ctl("listeners", "--formatter", "json").out)
    assert (found["node"], found["result"]) == ("rabbit@test", "ok")
    assert served.bench.port in [row["port"] for row in found["listeners"]]
    found = json.loads(served.ctl("memory_breakdown", "--formatter", "json").out)
    assert set(found) == {"memory", "node"}


def test_a_watermark_that_is_absolute_is_shown_as_bytes(served: Served) -> None:
    assert served.ctl("set_vm_memory_high_watermark", "absolute", "300MB").code == 0
    assert "Memory high watermark setting: 300.0 mb" in served.ctl("status", "--unit", "mb").out


def test_sizes_may_be_bytes(served: Served) -> None:
    assert (
        "Memory high watermark setting: 0.4 of available memory, computed to: 400000000 bytes"
        in (served.ctl("status", "--unit", "bytes").out)
    )


def test_others(served: Served, tmp_path: Path) -> None:
    assert f"port: {served.bench.port}, protocol: amqp" in served.ctl("listeners").out
    assert served.ctl("-q", "server_version").out == "3.13.7\n"
    assert served.ctl("-q", "log_location").out == "<stderr>\n"
    target = tmp_path / "defs.json"
    assert served.ctl("export_definitions", str(target)).code == 0
    assert json.loads(target.read_text())["queues"][0]["name"] == "lazy"
    assert json.loads(served.ctl("export_definitions", "-").out)["users"]
    assert served.ctl("export_definitions", "/nosuch/dir/file").code == 65
    assert (
        json.loads(served.ctl("environment", "--formatter", "json").out)["burrowmq"]["node_name"]
        == "rabbit@test"
    )


def test_a_process_that_is_gone() -> None:
    line = {"interface": "::", "port": 1, "protocol": "amqp", "purpose": "p"}
    assert node.listener_line(line) == "Interface: ::, port: 1, protocol: amqp, purpose: p"


def test_stop_app_and_start_app(stopped: Served) -> None:
    stopping = "Stopping rabbit application on node rabbit@test ...\n"
    assert stopped.ctl("stop_app") == (0, stopping, "")
    for _ in range(2):
        assert stopped.ctl("start_app") == (0, "Starting node rabbit@test ...\n", "")
        assert stopped.bench.host.state == "running"
    assert stopped.ctl("-q", "stop_app") == (0, "", "")
    assert stopped.bench.host.state == "stopped"


def test_why_the_application_cannot_start(stopped: Served) -> None:
    port = stopped.bench.port
    with socket.create_server(("127.0.0.1", port)):
        assert stopped.ctl("-q", "start_app") == (
            69,
            "",
            f"Error:\ncannot listen on 127.0.0.1:{port}: Address already in use;"
            " stop what uses it, or name another with listeners.tcp or listeners.ssl\n",
        )


def test_a_stop_that_was_not_clean(stopped: Served) -> None:
    stopped.ctl("start_app")
    close = stopped.node.engine.close

    def close_badly() -> None:
        close()
        raise StorageError("the disk is gone")

    stopped.node.engine.close = close_badly  # type: ignore[method-assign]
    text = "Error:\nthe store was not closed cleanly; see the log\n"
    assert stopped.ctl("-q", "stop_app") == (69, "", text)


def test_over_a_url_nobody_could_start_what_was_stopped(served: Served) -> None:
    for name in ("stop_app", "start_app"):
        output = ctl("--url", f"http://guest:guest@127.0.0.1:{served.port}", name)
        assert (output.code, output.out) == (69, "")
        assert "over its control socket" in output.err
    assert served.bench.host.state == "running"


def test_a_stopped_application_has_not_started(stopped: Served) -> None:
    assert stopped.ctl("await_startup") == (69, "", "Error:\nrabbit_is_not_running\n")
    stopped.bench.host.state = "starting"
    output = stopped.ctl("await_startup", "-t", "0.1")
    assert (output.code, "it is still starting" in output.err) == (75, True)


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("cluster_status",),
        ("listeners",),
        ("list_queues",),
        ("list_queues", "--formatter", "json"),
        ("-q", "list_users"),
        ("check_alarms",),
        ("check_port_listener", "5672"),
        ("check_if_node_is_quorum_critical",),
        ("discover_peers",),
        ("node_health_check",),
        ("add_user", "a", "b"),
        ("set_policy", "p", "^a", '{"max-length":1}'),
        ("close_all_connections", "why"),
        ("report",),
    ],
)
def test_most_commands_need_the_application(stays_stopped: Served, words: tuple[str, ...]) -> None:
    output = stays_stopped.ctl(*words)
    assert (output.code, output.out) == (64, "")
    assert output.err.startswith(
        "Error: this command requires the 'rabbit' app to be running on the target node."
        f" Start it with 'rabbitmqctl start_app'.\nArguments given:\n\t{' '.join(words)}\n\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("ping",),
        ("server_version",),
        ("log_location",),
        ("erlang_version",),
        ("environment",),
        ("force_gc",),
        ("eval", "node()."),
        ("command_line_arguments",),
        ("shutdown", "--no-wait"),
        ("stop",),
    ],
)
def test_some_commands_are_about_the_process(stays_stopped: Served, words: tuple[str, ...]) -> None:
    output = stays_stopped.ctl(*words)
    assert (output.code, output.err) == (0, "")
    assert output.out


def test_who_does_not_need_the_application_is_a_command() -> None:
    assert set(COMMANDS) >= WITHOUT_APP


def test_alarms_of_disks_say_what_is_wrong() -> None:
    rows = [
        {"node": "rabbit@test", "resource": "memory", "cause": "much is used"},
        {"node": "rabbit@test", "resource": "disk", "cause": ""},
        {"node": "rabbit@test", "resource": "disk", "cause": "a.db: commit failed: full"},
        {
            "node": "rabbit@test",
            "resource": "queue",
            "cause": "queue 'q' in vhost '/' (reading): no",
        },
    ]
    assert node.alarm_lines(rows) == [
        "Memory alarm on node rabbit@test",
        "Free disk space alarm on node rabbit@test",
        "Free disk space alarm on node rabbit@test: a.db: commit failed: full",
        "Queue files alarm on node rabbit@test: queue 'q' in vhost '/' (reading): no",
    ]
