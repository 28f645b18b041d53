"""Imports and shovels in trouble: TTLs that run out, a certificate that nobody trusts, alarms of this node."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pika import BasicProperties

from tests.crash.moving_in import http
from tests.support.black_box import eventually
from tests.support.broker_process import BrokerProcess
from tests.support.secure_node import SecureNode
from tests.support.two_nodes import Two, asked, channel, drained, publish, wait_for

pytestmark = [pytest.mark.needs_server, pytest.mark.slow]


def test_what_runs_out_on_the_way_is_dead_lettered_once_there_or_here(two: Two) -> None:
    """A TTL begins anew with the move: until then the broker there counts it, then the node here."""
    found = channel(two.there)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    found.queue_declare("dead", durable=True)
    found.queue_declare("q", durable=True, arguments=arguments)
    found.queue_declare("t", durable=True, arguments={**arguments, "x-message-ttl": 300})
    found.tx_select()
    for number in range(200):
        mode = BasicProperties(delivery_mode=2, expiration=str(number * 4))
        found.basic_publish("", "q", b"q%d" % number, mode)
        found.basic_publish("", "t", b"t%d" % number, BasicProperties(delivery_mode=2))
    found.basic_publish("", "q", b"last", BasicProperties(delivery_mode=2, expiration="86400000"))
    found.tx_commit()
    found.connection.close()
    rows = two.rows("--queues", "^.$")
    assert {row["state"] for row in rows.values()} == {"done"}
    dead: list[bytes] = []

    def all_are_dead() -> bool:
        dead.extend(body for node in (two.there, two.ours) for _, _, body in drained(node, "dead"))
        return len(dead) >= 400

    eventually(all_are_dead)
    assert sorted(dead) == sorted(b"%s%d" % (kind, n) for kind in (b"q", b"t") for n in range(200))
    ((_, kept, body),) = drained(two.ours, "q")
    assert (body, kept.expiration) == (b"last", "86400000")
    assert drained(two.ours, "t") == drained(two.there, "q") == drained(two.there, "t") == []


@pytest.fixture
def full(two: Two) -> BrokerProcess:
    """Our node, which wants more room on its disk than there is."""
    two.ours.ctl("set_disk_free_limit", "1000TB")
    eventually(lambda: http(two.ours.management_port, "GET", "nodes")[0]["disk_free_alarm"])
    return two.ours


def test_an_import_waits_for_an_alarm_here_and_says_so(two: Two, full: BrokerProcess) -> None:
    publish(two.there, "q", b"1", b"2")
    publish(full, "q")
    body = {
        "uri": f"amqp://127.0.0.1:{two.there.amqp_port}",
        "queues": [{"vhost": "/", "name": "q"}],
    }
    http(full.management_port, "POST", "burrowmq/import", body)
    wait_for(two, lambda told: told["waits"] == "this node is low on disk")
    assert (asked(two)["state"], asked(two)["moved"]) == ("running", 0)
    full.ctl("set_disk_free_limit", "1")
    wait_for(two, lambda told: told["state"] == "finished")
    assert asked(two)["waits"] == ""
    assert [body for _, _, body in drained(full, "q")] == [b"1", b"2"]


def test_an_import_that_waits_for_an_alarm_is_stopped_at_once(
    two: Two, full: BrokerProcess
) -> None:
    publish(two.there, "q", b"1")
    publish(full, "q")
    body = {
        "uri": f"amqp://127.0.0.1:{two.there.amqp_port}",
        "queues": [{"vhost": "/", "name": "q"}],
    }
    http(full.management_port, "POST", "burrowmq/import", body)
    wait_for(two, lambda told: told["waits"] != "")
    assert http(full.management_port, "DELETE", "burrowmq/import")["state"] == "stopped"
    assert asked(two)["waits"] == ""
    eventually(lambda: [body for _, _, body in drained(two.there, "q")] == [b"1"])


def shovels(node: BrokerProcess) -> list[dict[str, Any]]:
    found = http(node.management_port, "GET", "shovels")
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("is_local", [True, False])
def test_a_shovel_into_a_node_with_an_alarm_waits_and_says_so(
    two: Two, full: BrokerProcess, is_local: bool
) -> None:
    """The shovel is here and its destination too, or the shovel is there."""
    bodies = [b"%d" % number for number in range(3000)]
    publish(two.there, "q", *bodies)
    runs_at = full if is_local else two.there
    here = "amqp://" if is_local else f"amqp://127.0.0.1:{full.amqp_port}"
    there = f"amqp://127.0.0.1:{two.there.amqp_port}" if is_local else "amqp://"
    value = {"src-uri": there, "src-queue": "q", "dest-uri": here, "dest-queue": "q",
             "src-prefetch-count": 100}  # fmt: skip
    runs_at.ctl("set_parameter", "shovel", "s", json.dumps(value))
    eventually(lambda: shovels(runs_at)[0].get("blocked_status") == "blocked")
    assert shovels(runs_at)[0]["forwarded"] <= 100
    full.ctl("set_disk_free_limit", "1")
    eventually(lambda: shovels(runs_at)[0].get("forwarded") == 3000)
    assert [body for _, _, body in drained(full, "q")] == bodies
    assert drained(two.there, "q") == []


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[SecureNode]:
    """A node whose certificate only its own authority knows."""
    node = SecureNode(tmp_path / "secured")
    yield node
    node.process.kill()


def test_a_certificate_that_nobody_trusts_is_said(two: Two, secured: SecureNode) -> None:
    uri = f"amqps://guest:secret@127.0.0.1:{secured.port}?verify=verify_peer"
    publish(two.ours, "q")
    body = {"uri": uri, "queues": [{"vhost": "/", "name": "q"}]}
    http(two.ours.management_port, "POST", "burrowmq/import", body)
    wait_for(two, lambda told: told["state"] == "failed")
    (row,) = asked(two)["queues"]
    assert "certificate verify failed" in row["reason"]
    value = {"src-uri": uri, "src-queue": "q", "dest-uri": "amqp://", "dest-queue": "r",
             "reconnect-delay": 0.1}  # fmt: skip
    two.ours.ctl("set_parameter", "shovel", "s", json.dumps(value))
    eventually(lambda: shovels(two.ours)[0]["state"] == "terminated")
    eventually(lambda: "certificate verify failed" in shovels(two.ours)[0].get("reason", ""))
    eventually(lambda: two.ours.log_of_this_start().count("shovel_failed") >= 2)
    assert "secret" not in two.ours.log_of_this_start()


@pytest.mark.parametrize(("words", "anew"), [((), 3), (("--ttl-from-timestamp",), 1)])
def test_of_how_many_messages_the_ttl_began_anew_is_said(
    two: Two, words: tuple[str, ...], anew: int
) -> None:
    """(That it goes on: tests/unit/broker/imports/test_move_power_cut.py.)"""
    found = channel(two.there)
    found.queue_declare("q", durable=True, arguments={"x-message-ttl": 86_400_000})
    found.queue_declare("plain", durable=True)
    found.tx_select()
    stamp = int(time.time()) - 60
    for headers, timestamp in (({"timestamp_in_ms": stamp * 1000}, None), (None, stamp), (None, None)):  # fmt: skip
        mode = BasicProperties(delivery_mode=2, headers=headers, timestamp=timestamp)
        for queue in ("q", "plain"):
            found.basic_publish("", queue, b"x", mode)
    found.tx_commit()
    found.connection.close()
    told = {line.split("\t")[1]: line for line in two.ctl("--dry-run", *words).stdout.splitlines() if "\t" in line}  # fmt: skip
    becomes = "goes on where a message has a time" if words else "begins anew"
    assert told["q"].endswith(f"would be moved, its TTL {becomes}")
    assert told["plain"].endswith("would be moved")
    report = two.ctl(*words).stdout
    assert f"done: the TTL of {anew} began anew" in report
    assert report.count("began anew") == 1
    drained_of = {(p.headers or {}).get("timestamp_in_ms") or p.timestamp for _, p, _ in drained(two.ours, "q")}  # fmt: skip
    assert drained_of == {stamp * 1000, stamp, None}, "properties are as they were"
