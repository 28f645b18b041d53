"""Policies on a running broker: the policy half of the length limit guide, and what a change does to what is there.

Source: RabbitMQ's "Queue Length Limit" guide, and the policy sections of its parameters guide. Each test is named
after the promise that it checks. Command lines of the guide run as they are printed.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import ConnectionClosedByBroker, NackError, ProbableAccessDeniedError

from tests.support.black_box import (
    channel_error,
    drop,
    eventually,
    get_all,
    publish,
    queue_of,
    ready,
    wait_ready,
)
from tests.support.broker_process import BrokerProcess, Target

SetPolicy = Callable[..., None]


@pytest.fixture
def set_policy(broker: Target) -> Iterator[SetPolicy]:
    """Yield a setter of policies (an operator's with `operator=True`), all cleared after the test."""
    made: dict[tuple[str, str], None] = {}

    def set_one(name: str, pattern: str, operator: bool = False, **options: Any) -> None:
        definition = {
            key.replace("_", "-"): value
            for key, value in options.items()
            if key not in {"priority", "apply_to"}
        }
        kind = "operator_policy" if operator else "policy"
        made[(kind, name)] = None
        more = []
        for key in ("priority", "apply_to"):
            if key in options:
                more += ["--" + key.replace("_", "-"), str(options[key])]
        broker.ctl(f"set_{kind}", name, pattern, json.dumps(definition), *more)

    yield set_one
    for kind, name in made:
        broker.ctl(f"clear_{kind}", name)


def run_printed(broker: Target, line: str) -> str:
    """Run a command line of the guide, as the shell would split it; the text as a terminal shows it."""
    words = shlex.split(line.replace("\\\n", " "))
    assert words[0] == "rabbitmqctl"
    return as_shown(broker.ctl(*words[1:]))


def as_shown(printed: str) -> str:
    """Draw the lines of boxes that are asked of the terminal (RabbitMQ 3.10), and drop bold print."""
    drawn = re.sub(
        r"\x1b\(0(.*?)\x1b\(B", lambda line: line[1].translate(LINES_OF_A_TERMINAL), printed
    )
    return re.sub(r"\x1b\[\d*m", "", drawn)


def confirmed(channel: BlockingChannel, queue: str, body: bytes) -> bool:
    """Publish on a confirming channel; False when the broker nacked."""
    try:
        channel.basic_publish("", queue, body)
    except NackError:
        return False
    return True


COLUMNS_SINCE_3_11 = {
    "operator_policy": "rabbit_policy:name_op(Q)",
    "effective_policy_definition": "maps:from_list(rabbit_policy:effective_definition(Q))",
}
LINES_OF_A_TERMINAL = str.maketrans("lqwkxtnumvj", "┌─┬┐│├┼┤└┴┘")


def column(broker: Target, queue: str, name: str) -> Any:
    """One column of one queue; RabbitMQ 3.10 has no column for two of them, but knows the value."""
    if broker.is_rabbitmq_3_10 and (known := COLUMNS_SINCE_3_11.get(name)) is not None:
        found = f'{{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"{queue}">>))'
        printed = broker.ctl("eval", f"{found}, rabbit_json:encode([{known}]).").strip()
        return json.loads(json.loads(printed.removeprefix("<<").removesuffix(">>")))[0]
    rows = json.loads(broker.ctl("list_queues", "name", name, "--formatter", "json"))
    return next(row[name] for row in rows if row["name"] == queue)


@pytest.fixture
def named_queue(channel: BlockingChannel) -> Callable[..., str]:
    """Return a declarer of exclusive queues with a given name."""
    return lambda name, **arguments: queue_of(channel, name, **arguments)


# -- the length limit guide --------------------------------------------------------------------------------------


def test_one_meg_the_guides_command_as_printed(
    broker: Target, channel: BlockingChannel, named_queue: Callable[..., str]
) -> None:
    run_printed(
        broker,
        'rabbitmqctl set_policy my-pol "^one-meg$" \\\n  \'{"max-length-bytes":1048576}\' \\\n  --apply-to queues',
    )
    try:
        queue = named_queue("one-meg")
        bodies = [bytes([48 + number]) * 300_000 for number in range(5)]
        publish(channel, queue, *bodies)
        assert get_all(channel, queue) == bodies[2:], "the oldest are discarded from the head"
    finally:
        broker.ctl("clear_policy", "my-pol")


def test_two_messages_the_guides_command_as_printed(
    broker: Target, channel: BlockingChannel, named_queue: Callable[..., str]
) -> None:
    run_printed(
        broker,
        'rabbitmqctl set_policy my-pol "^two-messages$" \\\n'
        '  \'{"max-length":2,"overflow":"reject-publish"}\' \\\n  --apply-to queues',
    )
    try:
        queue = named_queue("two-messages")
        channel.confirm_delivery()
        assert [confirmed(channel, queue, body) for body in (b"1", b"2", b"3", b"4")] == [
            True,
            True,
            False,
            False,
        ]
        channel.basic_get(queue, auto_ack=True)
        assert confirmed(channel, queue, b"5")
        assert get_all(channel, queue) == [b"2", b"5"]
    finally:
        broker.ctl("clear_policy", "my-pol")


def test_limit_by_argument_and_by_policy_the_minimum_is_used(
    channel: BlockingChannel, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    set_policy(name, f"^{name}", max_length=3, max_length_bytes=1000)
    lower = named_queue(f"{name}.lower", x_max_length=2)
    higher = named_queue(f"{name}.higher", x_max_length=5, x_max_length_bytes=2)
    publish(channel, lower, b"1", b"2", b"3", b"4")
    publish(channel, higher, b"1", b"2", b"3", b"4")
    assert get_all(channel, lower) == [b"3", b"4"]
    assert get_all(channel, higher) == [b"3", b"4"]


def test_length_can_be_set_by_operator_policies(
    broker: Target,
    channel: BlockingChannel,
    name: str,
    named_queue: Callable[..., str],
    set_policy: SetPolicy,
) -> None:
    queue = named_queue(name)
    set_policy(name, f"^{name}$", operator=True, max_length=1)
    publish(channel, queue, b"1", b"2")
    assert get_all(channel, queue) == [b"2"]
    assert column(broker, queue, "operator_policy") == name
    # Both kinds: the lower of the two, and what only one of them says.
    set_policy(f"{name}.user", f"^{name}$", max_length=3, message_ttl=60_000)
    publish(channel, queue, b"1", b"2", b"3")
    assert get_all(channel, queue) == [b"3"]
    assert column(broker, queue, "policy") == f"{name}.user"


def test_ready_messages_only_count_also_by_policy(
    channel: BlockingChannel, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    queue = named_queue(name)
    publish(channel, queue, b"1", b"2", b"3")
    tags = [channel.basic_get(queue)[0].delivery_tag for _ in range(2)]
    set_policy(name, f"^{name}$", max_length=1)
    assert ready(channel, queue) == 1
    channel.basic_ack(tags[-1], multiple=True)
    assert get_all(channel, queue) == [b"3"]


def test_reject_publish_dlx_by_policy_also_dead_letters(
    channel: BlockingChannel, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    dead = named_queue(f"dead.{name}")
    queue = named_queue(name)
    set_policy(
        name,
        f"^{name}$",
        max_length=1,
        overflow="reject-publish-dlx",
        dead_letter_exchange="",
        dead_letter_routing_key=dead,
    )
    channel.confirm_delivery()
    assert [confirmed(channel, queue, body) for body in (b"1", b"2")] == [True, False]
    wait_ready(channel, dead, 1)
    properties = channel.basic_get(dead, auto_ack=True)[1]
    assert properties.headers["x-death"][0]["reason"] == "maxlen"


def test_arguments_and_policy_are_inspected_with_list_queues(
    broker: Target, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    named_queue(name, x_queue_type="classic")
    set_policy(name, f"^{name}$", max_length=11)
    table = run_printed(
        broker,
        "rabbitmqctl list_queues name durable arguments policy --formatter=pretty_table --silent",
    )
    row = next(line for line in table.splitlines() if f"│ {name} " in line)
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells[0] == name
    assert cells[1] == "false"
    assert "x-queue-type" in cells[2]
    assert cells[3] == name


def test_what_a_policy_says_is_inspected_with_list_policies(
    broker: Target, set_policy: SetPolicy
) -> None:
    set_policy("limited", r"^limited\.", max_length=11, apply_to="queues")
    assert run_printed(
        broker, "rabbitmqctl list_policies --formatter=pretty_table --silent"
    ).splitlines() == [
        "┌───────┬─────────┬────────────┬──────────┬───────────────────┬──────────┐",
        "│ vhost │ name    │ pattern    │ apply-to │ definition        │ priority │",
        "├───────┼─────────┼────────────┼──────────┼───────────────────┼──────────┤",
        '│ /     │ limited │ ^limited\\. │ queues   │ {"max-length":11} │ 0        │',
        "└───────┴─────────┴────────────┴──────────┴───────────────────┴──────────┘",
    ]


# -- which policy applies ----------------------------------------------------------------------------------------


def test_the_highest_priority_applies_alone(
    broker: Target, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    queue = named_queue(name)
    set_policy(f"{name}.low", f"^{name}$", max_length=1, priority=1)
    set_policy(f"{name}.high", f"^{name}$", expires=1_800_000, priority=2)
    assert column(broker, queue, "policy") == f"{name}.high"
    assert json.dumps(column(broker, queue, "effective_policy_definition")).count("max-length") == 0
    broker.ctl("set_policy", f"{name}.low", f"^{name}$", '{"max-length":1}', "--priority", "3")
    assert column(broker, queue, "policy") == f"{name}.low"


def test_a_policy_with_a_key_that_classic_queues_do_not_know_does_not_match_at_all(
    broker: Target, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    queue = named_queue(name)
    set_policy(f"{name}.quorum", f"^{name}$", max_length=1, delivery_limit=3, priority=9)
    set_policy(f"{name}.plain", f"^{name}$", max_length=2)
    assert column(broker, queue, "policy") == f"{name}.plain"


def test_patterns_search_anywhere_in_the_name(
    broker: Target, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    queue = named_queue(f"before.{name}.behind")
    set_policy(name, name[2:], max_length=1)
    assert column(broker, queue, "policy") == name


def test_apply_to_exchanges_does_not_touch_queues(
    broker: Target, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    queue = named_queue(name)
    set_policy(name, f"^{name}$", alternate_exchange="x", apply_to="exchanges")
    assert column(broker, queue, "policy") == ""


# -- what a change does to what is there -------------------------------------------------------------------------


def test_a_lower_limit_drops_from_the_head_at_once_and_dead_letters(
    channel: BlockingChannel, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    dead = named_queue(f"dead.{name}")
    queue = named_queue(name, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    publish(channel, queue, b"1", b"2", b"3", b"4")
    wait_ready(channel, queue, 4)
    set_policy(name, f"^{name}$", max_length=1)
    wait_ready(channel, queue, 1)
    wait_ready(channel, dead, 3)
    assert get_all(channel, queue) == [b"4"]
    assert get_all(channel, dead) == [b"1", b"2", b"3"]


def test_a_limit_that_comes_together_with_reject_publish_drops_the_excess(
    channel: BlockingChannel, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    """As RabbitMQ: the limit is in force before the overflow behaviour. What is dropped is dead-lettered."""
    dead = queue_of(channel)
    queue = named_queue(name, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    publish(channel, queue, b"1", b"2", b"3", b"4")
    wait_ready(channel, queue, 4)
    set_policy(name, f"^{name}$", max_length=2, overflow="reject-publish")
    wait_ready(channel, dead, 2)
    channel.confirm_delivery()
    assert not confirmed(channel, queue, b"5"), "from then on publishes are refused"
    assert get_all(channel, queue) == [b"3", b"4"]
    assert get_all(channel, dead) == [b"1", b"2"]


def test_a_lower_limit_under_reject_publish_drops_nothing(
    channel: BlockingChannel, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    queue = named_queue(name)
    set_policy(name, f"^{name}$", max_length=4, overflow="reject-publish")
    publish(channel, queue, b"1", b"2", b"3", b"4")
    wait_ready(channel, queue, 4)
    set_policy(name, f"^{name}$", max_length=2, overflow="reject-publish")
    channel.confirm_delivery()
    assert not confirmed(channel, queue, b"5")
    assert ready(channel, queue) == 4
    set_policy(name, f"^{name}$", max_length=2)
    assert get_all(channel, queue) == [b"3", b"4"], "back to drop-head: the excess goes at once"


def test_overflow_by_argument_wins_over_the_policy(
    channel: BlockingChannel, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    queue = named_queue(name, x_overflow="reject-publish")
    set_policy(name, f"^{name}$", max_length=1, overflow="drop-head")
    publish(channel, queue, b"1", b"2")
    assert get_all(channel, queue) == [b"1"]


def test_a_cleared_policy_takes_its_limit_away(
    broker: Target, channel: BlockingChannel, name: str, named_queue: Callable[..., str]
) -> None:
    broker.ctl("set_policy", name, f"^{name}$", '{"max-length":1}')
    queue = named_queue(name)
    publish(channel, queue, b"1", b"2")
    wait_ready(channel, queue, 1)
    broker.ctl("clear_policy", name)
    publish(channel, queue, b"3", b"4")
    assert get_all(channel, queue) == [b"2", b"3", b"4"]
    assert column(broker, queue, "policy") == ""


def test_message_ttl_by_policy_is_for_new_messages_only(
    channel: BlockingChannel, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    old, new = named_queue(f"{name}.old"), named_queue(f"{name}.new")
    publish(channel, old, b"old")
    wait_ready(channel, old, 1)
    set_policy(name, f"^{name}", message_ttl=100)
    publish(channel, new, b"new")
    wait_ready(channel, new, 1)
    wait_ready(channel, new, 0)
    assert get_all(channel, old) == [b"old"]


def test_message_ttl_the_lower_of_argument_and_policy(
    channel: BlockingChannel, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    queue = named_queue(name, x_message_ttl=600_000)
    set_policy(name, f"^{name}$", message_ttl=100)
    publish(channel, queue, b"1")
    wait_ready(channel, queue, 0)


def test_expires_by_policy_ends_an_unused_queue(
    broker: Target, channel: BlockingChannel, name: str, set_policy: SetPolicy
) -> None:
    channel.queue_declare(name)
    set_policy(name, f"^{name}$", expires=200)
    eventually(lambda: f"\n{name}\t" not in broker.ctl("list_queues", "name", "messages", "-q"))


def test_dead_letter_exchange_by_policy_serves_the_next_death(
    channel: BlockingChannel, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    dead, queue = named_queue(f"dead.{name}"), named_queue(name)
    publish(channel, queue, b"1")
    set_policy(name, f"^{name}$", dead_letter_exchange="", dead_letter_routing_key=dead)
    method = eventually(lambda: channel.basic_get(queue)[0])
    channel.basic_reject(method.delivery_tag, requeue=False)
    wait_ready(channel, dead, 1)


def test_alternate_exchange_by_policy_serves_the_next_publish(
    channel: BlockingChannel,
    name: str,
    exchange: Callable[..., str],
    named_queue: Callable[..., str],
    set_policy: SetPolicy,
) -> None:
    first, rest = exchange("direct"), exchange("fanout")
    queue = named_queue(name)
    channel.queue_bind(queue, rest)
    channel.basic_publish(first, "nowhere", b"lost")
    set_policy(name, f"^{first}$", alternate_exchange=rest, apply_to="exchanges")
    channel.basic_publish(first, "nowhere", b"kept")
    wait_ready(channel, queue, 1)
    assert get_all(channel, queue) == [b"kept"]


# -- refusals, restarts, limits, definitions ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ('{"max-length":"10"}', '<<"10">> is not a valid maximum length'),
        ('{"foo":1}', '[{<<"foo">>,1}] are not recognised policy settings'),
        ("{}", "no policy provided"),
        ('{"overflow":"foo"}', '<<"foo">> is not a valid overflow value'),
    ],
)
def test_bad_definitions_are_refused(broker: Target, definition: str, text: str) -> None:
    with pytest.raises(Exception, match=r"Validation failed|non-zero exit status 69"):
        broker.ctl("set_policy", "bad", "x", definition)
    assert "bad" not in broker.ctl("list_policies", "-q")
    if broker.process is not None:
        with pytest.raises(RuntimeError) as caught:
            broker.ctl("set_policy", "bad", "x", definition)
        assert f"Error:\nValidation failed\n\n{text}\n" in str(caught.value)


ConnectTo = Callable[..., BlockingConnection]


@pytest.fixture
def connect_to() -> Iterator[ConnectTo]:
    """Yield an opener of connections to nodes of our own, cut after the test."""
    opened: list[BlockingConnection] = []

    def open_one(node: BrokerProcess, user: str = "guest", vhost: str = "/") -> BlockingConnection:
        credentials = pika.PlainCredentials(user, user)
        parameters = pika.ConnectionParameters(
            "127.0.0.1", node.amqp_port, vhost, credentials, heartbeat=0
        )
        opened.append(BlockingConnection(parameters))
        return opened[-1]

    yield open_one
    for connection in opened:
        drop(connection)


def test_policies_parameters_and_limits_come_back_after_restarts(
    own_broker: Callable[..., BrokerProcess], connect_to: ConnectTo
) -> None:
    node = own_broker()
    node.ctl(
        "set_policy", "one", "^q", '{"max-length":2}', "--priority", "3", "--apply-to", "queues"
    )
    node.ctl("set_operator_policy", "op", "^q", '{"max-length":1}')
    node.ctl("set_global_parameter", "gp", '{"a":1}')
    node.ctl("set_vhost_limits", '{"max-queues":5}')
    node.ctl("set_user_limits", "guest", '{"max-channels":100}')
    node.ctl("set_topic_permissions", "guest", "amq.topic", "a", "b")
    connection = connect_to(node)
    connection.channel().queue_declare("q", durable=True)
    connection.close()
    commands = (
        "list_policies",
        "list_operator_policies",
        "list_global_parameters",
        "list_vhost_limits",
        "list_user_limits",
        "list_topic_permissions",
    )
    before = [node.ctl(command) for command in commands]
    for end in (node.stop, node.kill):
        end()
        node.start()
        assert [node.ctl(command) for command in commands] == before
        assert "q\tone\top" in node.ctl("list_queues", "name", "policy", "operator_policy")
    channel = connect_to(node).channel()
    publish(channel, "q", b"1", b"2")
    assert get_all(channel, "q") == [b"2"]


def test_limits_of_vhosts_and_users_are_enforced(
    own_broker: Callable[..., BrokerProcess], connect_to: ConnectTo
) -> None:
    node = own_broker()
    node.ctl("set_vhost_limits", '{"max-queues":1}')
    channel = connect_to(node).channel()
    channel.queue_declare("a")
    channel.queue_declare("a")
    with channel_error(406, "cannot declare queue 'b': queue limit in vhost '/' (1) is reached"):
        channel.queue_declare("b")
    node.ctl("set_vhost_limits", '{"max-connections":1}')
    refused = "access to vhost '/' refused for user 'guest': connection limit (1) is reached"
    with pytest.raises(ProbableAccessDeniedError, match=re.escape(refused)):
        connect_to(node)
    node.ctl("clear_vhost_limits")
    node.ctl("set_user_limits", "guest", '{"max-connections":1,"max-channels":2}')
    refused = "connection refused for user 'guest': user connection limit (1) is reached"
    with pytest.raises(ProbableAccessDeniedError, match=re.escape(refused)):
        connect_to(node)
    node.ctl("clear_user_limits", "guest", "max-connections")
    connection = connect_to(node)
    connection.channel()
    connection.channel()
    with pytest.raises(ConnectionClosedByBroker) as caught:
        connection.channel()
        connection.process_data_events(5)
    assert caught.value.reply_code == 530
    assert "maximum allowed user limit of (2)" in caught.value.reply_text
    node.ctl("clear_user_limits", "guest", "all")
    assert connect_to(node).channel().is_open


def test_definitions_travel_to_another_node_and_again_change_nothing(
    own_broker: Callable[..., BrokerProcess], connect_to: ConnectTo, tmp_path: Any
) -> None:
    first = own_broker()
    channel = connect_to(first).channel()
    channel.exchange_declare("x", "headers", durable=True)
    channel.queue_declare("q", durable=True, arguments={"x-max-length": 7, "x-foo": [1, "a"]})
    channel.queue_bind("q", "x", "k", {"x-match": "all", "n": 1})
    first.ctl("add_vhost", "v", "--description", "other", "--tags", "a,b")
    first.ctl("add_user", "bob", "bob")
    first.ctl("set_permissions", "-p", "v", "bob", "^a", ".*", "")
    first.ctl("set_topic_permissions", "-p", "v", "bob", "amq.topic", "a", "b")
    first.ctl("set_policy", "p", "^q", '{"max-length":3}', "--priority", "-1")
    first.ctl("set_operator_policy", "o", "^q", '{"expires":600000}')
    first.ctl("set_vhost_limits", "-p", "v", '{"max-queues":5}')
    first.ctl("set_user_limits", "bob", '{"max-channels":5}')
    first.ctl("set_global_parameter", "gp", "[1]")
    path = tmp_path / "definitions.json"
    first.ctl("export_definitions", str(path))
    document = json.loads(path.read_text())
    second = own_broker(load_definitions=str(path))
    assert json.loads(second.ctl("export_definitions", "-")) == document
    for _ in range(2):
        second.ctl("import_definitions", str(path))
        assert json.loads(second.ctl("export_definitions", "-")) == document
    first.ctl("import_definitions", str(path))
    assert json.loads(first.ctl("export_definitions", "-")) == document, "on its own node too"
    assert connect_to(second, "bob", "v").channel().is_open


def test_a_policy_change_does_not_cancel_consumers_or_requeue(
    channel: BlockingChannel, name: str, named_queue: Callable[..., str], set_policy: SetPolicy
) -> None:
    queue = named_queue(name)
    got: list[bytes] = []
    channel.basic_consume(queue, lambda _c, _m, _p, body: got.append(body), auto_ack=False)
    publish(channel, queue, b"1")
    set_policy(name, f"^{name}$", max_length=5)
    publish(channel, queue, b"2")
    deadline = time.monotonic() + 10
    while len(got) < 2 and time.monotonic() < deadline:
        channel.connection.process_data_events(0.05)
    assert got == [b"1", b"2"]
