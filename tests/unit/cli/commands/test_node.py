"""status, await_startup, shutdown, memory."""

from __future__ import annotations

import json
from pathlib import Path

from burrowmq.cli.commands import node
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
