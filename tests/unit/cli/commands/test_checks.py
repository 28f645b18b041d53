"""Health checks."""

from __future__ import annotations

import json

import pytest

from tests.support.served import Served


def test_ping(served: Served) -> None:
    assert served.ctl("-q", "ping") == (0, "Ping succeeded\n", "")
    assert served.ctl("ping").out.startswith("Will ping rabbit@test.")
    assert json.loads(served.ctl("ping", "--formatter", "json").out) == {
        "result": "ok",
        "node": "rabbit@test",
    }


def test_well(served: Served) -> None:
    for name, text in (
        ("check_running", "RabbitMQ on node rabbit@test is fully booted and running"),
        ("is_running", "RabbitMQ on node rabbit@test is fully booted and running"),
        ("check_local_alarms", "Node rabbit@test reported no local alarms"),
        ("check_alarms", "Node rabbit@test reported no alarms, local or clusterwide"),
        ("alarms", "Node rabbit@test reported no alarms, local or clusterwide"),
        ("check_virtual_hosts", "Node rabbit@test reported all vhosts as running"),
    ):
        output = served.ctl("-q", name)
        assert (output.code, output.out) == (0, text + "\n")
    assert served.ctl("check_if_node_is_quorum_critical").code == 0


def test_an_alarm(served: Served) -> None:
    served.bench.run_short_of_memory()
    output = served.ctl("check_local_alarms")
    assert (output.code, output.err) == (69, "Error:\nMemory alarm on node rabbit@test\n")
    assert served.ctl("check_alarms").code == 69
    assert served.ctl("-q", "alarms") == (0, "Memory alarm on node rabbit@test\n", "")
    failed = served.ctl("check_alarms", "--formatter", "json")
    assert (failed.code, json.loads(failed.out)["result"]) == (69, "error")


def test_ports(served: Served) -> None:
    port = served.bench.port
    output = served.ctl("-q", "check_port_connectivity")
    assert (output.code, output.err) == (0, "")
    assert output.out.startswith(f"Successfully connected to ports {port}, ")
    assert served.ctl("suspend_listeners").code == 0
    output = served.ctl("check_port_connectivity")
    assert (output.code, str(port) in output.err) == (69, True)
    assert served.ctl("check_port_listener", str(port)).code == 0
    assert served.ctl("check_port_listener", "1").code == 69
    assert served.ctl("check_port_listener", "x").code == 65
    assert served.ctl("check_protocol_listener", "amqp").code == 0
    assert (
        "Found listeners for the following protocols: amqp"
        in served.ctl("check_protocol_listener", "mqtt").err
    )


def test_a_stopped_application(stays_stopped: Served) -> None:
    text = "RabbitMQ on node rabbit@test is not running or has not fully booted yet (check with is_booting)\n"
    assert stays_stopped.ctl("-q", "is_running") == (0, text, "")
    assert stays_stopped.ctl("-q", "check_running") == (69, "", f"Error:\n{text}")
    assert stays_stopped.ctl("-q", "ping") == (0, "Ping succeeded\n", "")


CHECKS = (
    "ping", "check_running", "is_running", "check_local_alarms", "check_alarms", "alarms", "check_virtual_hosts",
    "check_port_connectivity", "check_port_listener 1", "check_protocol_listener amqp",
    "check_if_node_is_quorum_critical", "check_if_node_is_mirror_sync_critical", "check_certificate_expiration",
    "node_health_check",
)  # fmt: skip


def test_every_check_fails_once_the_store_has_failed(served: Served) -> None:
    served.bench.perform(lambda: served.node.engine.store_failed("disk on fire"))
    error = "Error:\nthe store of node rabbit@test has failed: disk on fire\n"
    for check in CHECKS:
        assert served.ctl("-q", *check.split()) == (69, "", error), check
    document = json.loads(served.ctl("ping", "--formatter", "json").out)
    assert (document["result"], document["message"]) == ("error", error[7:-1])
    served.bench.clients[0].lose()
    served.stop_application()  # on the way to the end of its process
    assert served.ctl("-q", "ping").code == served.ctl("-q", "check_alarms").code == 69


def test_mirrored_queues_are_what_is_deprecated(served: Served) -> None:
    features, mirrors = (
        "check_if_any_deprecated_features_are_used",
        "check_if_cluster_has_classic_queue_mirroring_policy",
    )
    assert served.ctl(features).out == (
        "Checking if any deprecated features are used ...\nCluster reported no deprecated features in use\n"
    )
    assert served.ctl(mirrors).out.endswith(
        "\nCluster reported no policies enabling classic queue mirroring\n"
    )
    assert served.ctl("-q", "set_policy", "ha", ".*", '{"ha-mode":"all"}').code == 0
    output = served.ctl("-q", mirrors)
    assert output == (69, "", "Error:\nPolicy ha enables classic queue mirroring\n")
    assert '"policies":["ha"]' in served.ctl(mirrors, "--formatter", "json").out
    assert served.ctl("-q", features).code == 69
    served.ctl("-q", "set_policy", "ha", ".*", '{"max-length":1}')
    served.ctl("-q", "set_policy", "h\x1b[31m", ".*", '{"ha-mode":"all"}')
    output = served.ctl("-q", mirrors)
    assert output == (69, "", "Error:\nPolicy h\\033[31m enables classic queue mirroring\n")


def test_questions_in_json_answer_what_was_asked(served: Served) -> None:
    def answer(name: str) -> dict[str, object]:
        found: dict[str, object] = json.loads(served.ctl(name, "--formatter", "json").out)
        return found

    assert answer("alarms") == {"result": "ok", "node": "rabbit@test", "alarms": []}
    assert answer("is_running")["result"] is True
    assert answer("is_booting")["result"] is False
    assert answer("server_version")["value"] == served.ctl("-q", "server_version").out.strip()
    served.bench.run_short_of_memory()
    found = answer("alarms")
    assert (found["local"], found["global"]) == (["Memory alarm on node rabbit@test"], [])


def test_listeners_as_csv(served: Served) -> None:
    head, *rows = served.ctl("listeners", "--formatter", "csv").out.splitlines()
    assert head == '"node","protocol","interface","port","purpose"'
    assert f'"rabbit@test","amqp","127.0.0.1","{served.bench.port}","AMQP 0-9-1"' in rows


def test_silent_says_nothing_of_checks_and_answers_questions(served: Served) -> None:
    assert served.ctl("-s", "check_local_alarms") == (0, "", "")
    assert served.ctl("-s", "ping") == (0, "Ping succeeded\n", "")
    served.bench.run_short_of_memory()
    assert served.ctl("-s", "alarms") == (0, "Memory alarm on node rabbit@test\n", "")


@pytest.mark.parametrize("name", ["AMQP", "amqp0.9.1", "management", "http_api", "Http"])
def test_protocols_have_other_names(served: Served, name: str) -> None:
    assert served.ctl("check_protocol_listener", name).code == 0
