"""Policies, limits and parameters by command: the same calls to RabbitMQ and to us print the same and do the same.

Left out is what 3.13 words differently from the 3.10 node (apply-to, JSON that does not parse), and keys that came
after 3.10 (`consumer-timeout`, an operator's `overflow` and `queue-version`).
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pika
import pytest
from pika.exceptions import NackError

from tests.support.broker_process import BURROWCTL, ROOT, BrokerProcess
from tests.support.rabbitmq_node import PROGRAMS, RabbitNode

pytestmark = [
    pytest.mark.differential,
    pytest.mark.needs_server,
    pytest.mark.long,
    pytest.mark.timeout(400),
]

Nodes = tuple[RabbitNode, BrokerProcess]
Run = Callable[..., tuple[int, str, str]]

REFUSED: list[dict[str, Any]] = [
    {},
    {"foo": 1},
    {"foo": 1, "bar": "x", "max-length": 1},
    {"foo": 1, "max-length": "b"},
    {"max-length": "b", "expires": 0},
    *({"max-length": value} for value in ("10", "", 'a"b\\c', -1, 1.5, 1e10, True, None, [1, "a"])),
    {"max-length": {"a": {"b": 1}}},
    *(
        {key: []}
        for key in (
            "alternate-exchange",
            "message-ttl",
            "expires",
            "max-length-bytes",
            "overflow",
            "dead-letter-exchange",
            "dead-letter-routing-key",
            "queue-mode",
            "queue-version",
            "delivery-limit",
            "max-in-memory-length",
            "max-in-memory-bytes",
            "queue-leader-locator",
            "initial-cluster-size",
            "stream-max-segment-size-bytes",
            "dead-letter-strategy",
            "ha-params",
            "ha-sync-mode",
        )
    ),
]
PATTERNS = ["(", "*", "[", "a{2,1}", "(?P<a", "\\"]
COMMANDS: list[tuple[str, ...]] = [
    ("set_policy", "p", "^x", '{"message-ttl":60000}', "--priority", "1", "--apply-to", "queues"),
    ("set_policy", "q", "^y", '{"max-length":1}', "--priority", "-2", "--apply-to", "exchanges"),
    ("list_policies",),
    ("list_policies", "--formatter", "json"),
    ("list_policies", "--silent"),
    ("set_policy", "only", "two"),
    ("clear_policy", "nosuch"),
    ("clear_policy", "p"),
    ("clear_policy", "q"),
    ("set_policy", "-p", "nope", "p", "x", '{"max-length":1}'),
    ("list_policies", "-p", "nope"),
    ("clear_policy", "-p", "nope", "x"),
    ("set_operator_policy", "o", ".*", '{"max-length":3}'),
    ("set_operator_policy", "o2", ".*", '{"dead-letter-exchange":"x"}'),
    ("list_operator_policies",),
    ("list_parameters",),
    ("clear_operator_policy", "o"),
    ("clear_operator_policy", "o"),
    ("set_vhost_limits", '{"max-queues":300,"max-connections":200}'),
    ("list_vhost_limits",),
    ("set_vhost_limits", '{"foo":3}'),
    ("set_vhost_limits", '{"max-queues":"x"}'),
    ("set_vhost_limits", "-p", "nope", '{"max-queues":3}'),
    ("list_vhost_limits", "-p", "nope"),
    ("clear_vhost_limits",),
    ("set_user_limits", "guest", '{"max-connections":200}'),
    ("set_user_limits", "guest", '{"foo":200}'),
    ("set_user_limits", "nope", '{"max-connections":200}'),
    ("list_user_limits", "--user", "guest"),
    ("list_user_limits", "--user", "nope"),
    ("clear_user_limits", "guest", "all"),
    ("set_topic_permissions", "guest", "amq.topic", "a", "b"),
    ("list_topic_permissions",),
    ("list_user_topic_permissions", "guest"),
    ("list_user_topic_permissions", "nope"),
    ("clear_topic_permissions", "guest", "amq.topic"),
    ("clear_topic_permissions", "nope"),
    ("set_parameter", "foo", "bar", "1"),
    ("clear_parameter", "foo", "bar"),
    ("set_global_parameter", "gp", '{"a":1}'),
    ("clear_global_parameter", "gp"),
    ("clear_global_parameter", "gp"),
]


@pytest.fixture(scope="module")
def runs(nodes: Nodes) -> tuple[Run, Run]:
    """Return how to run a command on each of the two: (exit status, output, error output)."""
    rabbit, ours = nodes

    def run(command: list[str], environment: dict[str, str] | None) -> tuple[int, str, str]:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        error = done.stderr.replace("rabbitmqctl", "burrowctl")
        return done.returncode, done.stdout, error

    return (
        lambda *words: run([str(PROGRAMS / "rabbitmqctl"), *words], rabbit.environment),
        lambda *words: run([str(BURROWCTL), "--data-dir", str(ours.data_dir), *words], None),
    )


def test_commands_print_the_same(runs: tuple[Run, Run]) -> None:
    theirs, ours = runs
    differing = {
        command: (expected, found)
        for command in COMMANDS
        if (expected := theirs(*command)) != (found := ours(*command))
    }
    assert differing == {}


@pytest.mark.parametrize("kind", ["set_policy", "set_operator_policy"])
def test_refusals_read_the_same(runs: tuple[Run, Run], kind: str) -> None:
    theirs, ours = runs
    definitions = REFUSED if kind == "set_policy" else REFUSED[:6]
    for definition in definitions:
        command = (kind, "p", "x", json.dumps(definition))
        assert ours(*command) == theirs(*command)


def test_bad_patterns_read_the_same(runs: tuple[Run, Run]) -> None:
    theirs, ours = runs
    for pattern in PATTERNS:
        command = ("set_policy", "p", pattern, '{"max-length":1}')
        assert ours(*command) == theirs(*command)


def _story(port: int, run: Run) -> list[Any]:
    """What a sequence of policies does to queues, as a client and list_queues see it."""
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
    channel = connection.channel()
    channel.confirm_delivery()
    seen: list[Any] = []

    def count(queue: str) -> int:
        return int(channel.queue_declare(queue, passive=True).method.message_count)

    def policy(definition: dict[str, Any], *more: str, kind: str = "set_policy") -> None:
        code, _, error = run(kind, "story", "^story", json.dumps(definition), *more)
        assert code == 0, error

    def fill(queue: str, *bodies: bytes) -> None:
        for body in bodies:
            with contextlib.suppress(NackError):  # confirmed or refused: the queue has seen it
                channel.basic_publish("", queue, body)
        seen.append(count(queue))

    def drain(queue: str) -> None:
        bodies = []
        while (got := channel.basic_get(queue, auto_ack=True))[0] is not None:
            bodies.append(got[2])
        seen.append(bodies)

    channel.queue_declare("dead")
    arguments = {"x-max-length": 3, "x-overflow": "drop-head"}
    channel.queue_declare("story.a")
    channel.queue_declare("story.b", arguments=arguments)
    for queue in ("story.a", "story.b"):
        fill(queue, b"1", b"2", b"3", b"4", b"5")
    policy({"max-length": 2, "overflow": "reject-publish"})
    for queue in ("story.a", "story.b"):
        fill(queue, b"6")
        drain(queue)
    policy({"max-length": 9, "dead-letter-exchange": "", "dead-letter-routing-key": "dead"})
    for queue in ("story.a", "story.b"):
        fill(queue, b"1", b"2", b"3", b"4")
    policy({"max-length": 1}, kind="set_operator_policy")
    seen.append([count("story.a"), count("story.b"), count("dead")])
    drain("dead")
    policy({"delivery-limit": 5, "max-length": 1})
    columns = ("name", "policy")
    seen.append(sorted(run("list_queues", "-s", *columns)[1].splitlines()))
    assert run("clear_operator_policy", "story")[0] == run("clear_policy", "story")[0] == 0
    fill("story.a", b"x", b"y", b"z")
    seen.append(sorted(run("list_queues", "-s", *columns)[1].splitlines()))
    for queue in ("story.a", "story.b", "dead"):
        channel.queue_delete(queue)
    connection.close()
    return seen


def test_policies_do_the_same_to_what_is_there(nodes: Nodes, runs: tuple[Run, Run]) -> None:
    rabbit, ours = nodes
    assert _story(ours.amqp_port, runs[1]) == _story(rabbit.amqp_port, runs[0])
