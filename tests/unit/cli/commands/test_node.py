"""status, await_startup, shutdown, memory."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from burrowmq.cli.commands import node
from burrowmq.cli.registry import COMMANDS, WITHOUT_APP
from burrowmq.storage.errors import StorageError
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
            " stop what uses it, or name another with listeners.tcp.default\n",
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
def test_most_commands_need_the_application(stopped: Served, words: tuple[str, ...]) -> None:
    output = stopped.ctl(*words)
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
def test_some_commands_are_about_the_process(stopped: Served, words: tuple[str, ...]) -> None:
    output = stopped.ctl(*words)
    assert (output.code, output.err) == (0, "")
    assert output.out


def test_who_does_not_need_the_application_is_a_command() -> None:
    assert set(COMMANDS) >= WITHOUT_APP
