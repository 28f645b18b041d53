"""Commands: rabbitmqctl on the one, burrowctl on the other; status, output and errors.

Each scenario has a virtual host of its own, so that what others do is not listed.
"""

from __future__ import annotations

import re
from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer
from tests.support.field_table import Typed

Record = Any
BESIDE_OTHERS = 2


def _some_queues(broker: Broker, word: str) -> tuple[str, Peer]:
    """The virtual host, and a channel in it."""
    vhost, peer = broker.inside(word)
    peer.queue("b", {"x-max-length": 10, "x-overflow": "drop-head"}, durable=True)
    peer.fill("b", b"1", b"22", delivery_mode=2)
    peer.get("b", no_ack=False)
    return vhost, peer


COLUMNS = (
    "name",
    "durable",
    "auto_delete",
    "arguments",
    "messages_ready",
    "messages_unacknowledged",
)
COLUMNS += ("messages", "consumers", "exclusive", "type")


def list_queues_as_a_table(broker: Broker) -> Record:
    vhost, _ = _some_queues(broker, "table")
    return [
        broker.ctl("list_queues", "-p", vhost),
        broker.ctl("list_queues", "-p", vhost, *COLUMNS),
    ]


def list_queues_quietly(broker: Broker) -> Record:
    vhost, _ = _some_queues(broker, "quiet")
    return [
        broker.ctl("list_queues", "-q", "-p", vhost),
        broker.ctl("list_queues", "-s", "-p", vhost),
        broker.ctl("list_queues", "--no-table-headers", "-p", vhost),
    ]


def list_queues_as_json(broker: Broker) -> Record:
    vhost, _ = _some_queues(broker, "json")
    return [
        broker.ctl(
            "list_queues", "-p", vhost, "--formatter", "json", "name", "arguments", "messages"
        ),
        broker.ctl("list_queues", "-p", vhost, "--formatter", "csv", "name", "messages"),
    ]


def list_queues_as_a_pretty_table(broker: Broker) -> Record:
    vhost, _ = _some_queues(broker, "pretty")
    return broker.ctl("list_queues", "-p", vhost, "--formatter", "pretty_table", "name", "messages")


ARGUMENTS: dict[str, dict[str, Any]] = {
    "as the guide": {"x-queue-type": "classic", "x-max-length": 7},
    "none": {},
    "numbers": {
        "x-l": Typed("l", 2**40), "x-s": Typed("s", -3), "x-u": Typed("u", 3), "x-b": Typed("b", -3),
        "x-B": Typed("B", 200), "x-i": Typed("i", 2**32 - 1), "x-T": Typed("T", 1600000000), "x-t": True,
        "x-void": None,
    },
    "floats": {
        f"x{number}": value
        for number, value in enumerate((
            0.0, 0.1, 1.5, 2.0, 100.0, 1000.0, 123456.0, 1e5, 12e5, 1e20, 1.25e-7, 1e-7, 0.001, 0.0123, -4.5,
            Typed("f", 0.1),
        ))
    },
    "octets": {
        "x-bin": b"\x00\xff", "x-text": b"abc", "x-empty": b"", "x-latin": b"gr\xfc",
        "x-long": bytes(range(70)), "x-longer": b"a" * 90,
    },
    "texts": {
        "x-empty": "", "x-foreign": "gr\u00fc\u00df \u20ac \u4e2d", "x-quoted": 'a"b\\c', "x-control": "a\n\t\x01",
        "x-\u00fc": "x", "x-long": "y" * 120,
    },
    "tables": {
        "x-table": {"k": 1, "s": "x", "n": {"m": True}},
        "x-empty": {},
        "x-deep": {"a": {"b": {"c": {"d": "e" * 40, "f": [1, 2, 3]}}}, "g": "h" * 30},
    },
    "arrays": {
        "x-mixed": [1, "two", {"k": 3}, [True, None]],
        "x-empty": [],
        "x-short": [104, 101],
        "x-long": list(range(40)),
        "x-tables": [{"key": "v" * 30, "other": [1, {"x": 2}]}, {"key": "w" * 60}],
    },
}  # fmt: skip


def _cells(output: str) -> Record:
    """Rows of a pretty table by their first cell, whatever its lines are drawn with."""
    lines = re.sub(r"\x1b\[\d*m", "", output).replace("\x1b(0x\x1b(B", "│").splitlines()
    rows: list[list[str]] = []
    for line in lines:
        if not line.startswith("│"):
            rows.append([])
        elif rows:
            rows[-1].append("|".join(cell.rstrip() for cell in line.strip("│").split("│")))
    return {row[0].split("|")[0].strip(): row for row in rows if row}


def arguments_in_pretty_tables(broker: Broker) -> Record:
    vhost, peer = broker.inside("terms")
    peer.exchange("x", "headers", arguments={"alternate-exchange": "amq.fanout"})
    for name, arguments in ARGUMENTS.items():
        peer.queue(name, arguments)
    peer.bind("none", "x", "k", {"x-match": "all", "n": 5, "t": Typed("T", 7)})
    peer.consume("none", tag="ct", arguments={"x-priority": 5})
    pretty = ("-p", vhost, "--formatter", "pretty_table", "-s")
    return [
        _cells(broker.ctl(command, *pretty, *columns)["output"])
        for command, *columns in (
            ("list_queues", "name", "arguments"),
            ("list_exchanges", "name", "arguments"),
            ("list_bindings", "source_name", "arguments"),
            ("list_consumers", "queue_name", "arguments"),
        )
    ]


def list_queues_of_memory_and_bytes(broker: Broker) -> Record:
    vhost, _ = _some_queues(broker, "bytes")
    columns = (
        "name",
        "message_bytes",
        "message_bytes_ready",
        "messages_persistent",
        "message_bytes_persistent",
    )
    return broker.ctl("list_queues", "-s", "-p", vhost, *columns, "policy", "state")


def list_queues_of_wrong_columns(broker: Broker) -> Record:
    return [broker.ctl("list_queues", "nonsense"), broker.ctl("list_queues", "-p", "nowhere")]


def list_exchanges(broker: Broker) -> Record:
    vhost, peer = broker.inside("exchanges")
    peer.exchange("x", "topic", {"alternate-exchange": "y"}, durable=True)
    columns = ("name", "type", "durable", "auto_delete", "internal", "arguments")
    found = broker.ctl("list_exchanges", "-s", "-p", vhost, *columns)
    return [found["status"], sorted(found["output"].splitlines())]


def list_bindings(broker: Broker) -> Record:
    vhost, peer = broker.inside("bindings")
    peer.queue("q")
    peer.bind("q", "amq.topic", "a.#", {"n": 1, "s": "x"})
    found = broker.ctl("list_bindings", "-s", "-p", vhost)
    return [found["status"], sorted(found["output"].splitlines())]


def list_consumers(broker: Broker) -> Record:
    vhost, peer = broker.inside("consumers")
    peer.queue("q")
    peer.qos(5)
    peer.consume("q", "t", {"x-priority": 1})
    return broker.ctl("list_consumers", "-p", vhost)


def list_connections_and_channels(broker: Broker) -> Record:
    user = broker.user("lonely", "", (".*", ".*", ".*"))
    peer = broker.peer(user=user, password=user)
    peer.qos(3)
    connections = broker.ctl(
        "list_connections", "-s", "user", "vhost", "state", "channels", "protocol"
    )
    channels = broker.ctl(
        "list_channels", "-s", "user", "number", "prefetch_count", "confirm", "transactional"
    )
    return [
        [line for line in found["output"].splitlines() if user in line]
        for found in (connections, channels)
    ]


def purge_and_delete_queues(broker: Broker) -> Record:
    vhost, _ = _some_queues(broker, "purge")
    return [
        broker.ctl("purge_queue", "-p", vhost, "b"),
        broker.ctl("purge_queue", "-p", vhost, "none"),
        broker.ctl("delete_queue", "-p", vhost, "b"),
        broker.ctl("delete_queue", "-p", vhost, "none"),
    ]


def delete_queues_on_a_condition(broker: Broker) -> Record:
    vhost, peer = _some_queues(broker, "delete")
    peer.consume("b", "t")
    return [
        broker.ctl("delete_queue", "-p", vhost, "b", "--if-empty"),
        broker.ctl("delete_queue", "-p", vhost, "b", "--if-unused"),
    ]


def policies(broker: Broker) -> Record:
    vhost, _ = broker.inside("policies")
    here = ("-p", vhost)
    return [
        broker.ctl("set_policy", *here, "p", "^x", '{"message-ttl":60000}', "--priority", "1"),
        broker.ctl("set_policy", *here, "q", "^y", '{"max-length":1}', "--apply-to", "exchanges"),
        broker.ctl("list_policies", *here),
        broker.ctl("list_policies", *here, "--formatter", "json"),
        broker.ctl("clear_policy", *here, "nosuch"),
        broker.ctl("clear_policy", *here, "p"),
    ]


def policies_that_are_refused(broker: Broker) -> Record:
    vhost, _ = broker.inside("refused")
    here = ("-p", vhost)
    return [
        broker.ctl("set_policy", *here, "p", "x", "{}"),
        broker.ctl("set_policy", *here, "p", "x", '{"foo":1,"bar":"x"}'),
        broker.ctl("set_policy", *here, "p", "x", '{"max-length":"a\\"b"}'),
        broker.ctl("set_policy", *here, "p", "(", '{"max-length":1}'),
        broker.ctl("set_policy", *here, "only", "two"),
        broker.ctl("set_policy", "-p", "nowhere", "p", "x", '{"max-length":1}'),
    ]


def operator_policies(broker: Broker) -> Record:
    vhost, _ = broker.inside("operators")
    here = ("-p", vhost)
    return [
        broker.ctl("set_operator_policy", *here, "o", ".*", '{"max-length":3}'),
        broker.ctl("set_operator_policy", *here, "o2", ".*", '{"dead-letter-exchange":"x"}'),
        broker.ctl("list_operator_policies", *here),
        broker.ctl("clear_operator_policy", *here, "o"),
        broker.ctl("clear_operator_policy", *here, "o"),
    ]


def limits_of_vhosts(broker: Broker) -> Record:
    vhost, _ = broker.inside("limited")
    here = ("-p", vhost)
    return [
        broker.ctl("set_vhost_limits", *here, '{"max-queues":300,"max-connections":200}'),
        broker.ctl("list_vhost_limits", *here),
        broker.ctl("set_vhost_limits", *here, '{"foo":3}'),
        broker.ctl("set_vhost_limits", *here, '{"max-queues":"x"}'),
        broker.ctl("set_vhost_limits", "-p", "nowhere", '{"max-queues":3}'),
        broker.ctl("clear_vhost_limits", *here),
    ]


def limits_of_users(broker: Broker) -> Record:
    user = broker.user("counted")
    return [
        broker.ctl("set_user_limits", user, '{"max-connections":200}'),
        broker.ctl("set_user_limits", user, '{"foo":200}'),
        broker.ctl("set_user_limits", "nobody", '{"max-connections":200}'),
        broker.ctl("list_user_limits", "--user", user),
        broker.ctl("list_user_limits", "--user", "nobody"),
        broker.ctl("clear_user_limits", user, "all"),
    ]


def users(broker: Broker) -> Record:
    user = broker.own("made")
    broker.also(broker.http, "DELETE", f"users/{user}")
    listed = broker.ctl("list_users", "-s")
    return [
        broker.ctl("add_user", user, "secret"),
        broker.ctl("add_user", user, "secret"),
        broker.ctl("set_user_tags", user, "monitoring", "mine"),
        [line for line in broker.ctl("list_users")["output"].splitlines() if line.startswith(user)],
        broker.ctl("authenticate_user", user, "secret"),
        broker.ctl("authenticate_user", user, "wrong"),
        broker.ctl("change_password", user, "other"),
        broker.ctl("clear_password", user),
        broker.ctl("delete_user", user),
        broker.ctl("delete_user", user),
        listed["status"],
    ]


def permissions(broker: Broker) -> Record:
    vhost, _ = broker.inside("granted")
    user = broker.user("granted")
    here = ("-p", vhost)
    return [
        broker.ctl("set_permissions", *here, user, "^a", ".*", ""),
        sorted(broker.ctl("list_permissions", *here, "-s")["output"].splitlines()),
        broker.ctl("list_user_permissions", user),
        broker.ctl("set_permissions", *here, "nobody", "", "", ""),
        broker.ctl("set_permissions", *here, user, "(", "", ""),
        broker.ctl("clear_permissions", *here, user),
        broker.ctl("list_user_permissions", "nobody"),
    ]


def topic_permissions(broker: Broker) -> Record:
    vhost, _ = broker.inside("topics")
    user = broker.user("topical")
    here = ("-p", vhost)
    return [
        broker.ctl("set_topic_permissions", *here, user, "amq.topic", "a", "b"),
        broker.ctl("list_topic_permissions", *here),
        broker.ctl("list_user_topic_permissions", user),
        broker.ctl("clear_topic_permissions", *here, user, "amq.topic"),
        broker.ctl("clear_topic_permissions", *here, "nobody"),
    ]


def vhosts(broker: Broker) -> Record:
    vhost = broker.own("made")
    broker.also(broker.http, "DELETE", f"vhosts/{vhost}")
    return [
        broker.ctl("add_vhost", vhost, "--description", "mine", "--tags", "a,b"),
        broker.ctl("add_vhost", vhost),
        [
            line
            for line in broker.ctl("list_vhosts", "name", "tracing")["output"].splitlines()
            if line.startswith(vhost)
        ],
        broker.ctl("delete_vhost", vhost),
        broker.ctl("delete_vhost", vhost),
    ]


def parameters(broker: Broker) -> Record:
    vhost = broker.vhost("parameters")
    name = broker.own("differential")
    return [
        broker.ctl("set_parameter", "-p", vhost, "foo", "bar", "1"),
        broker.ctl("clear_parameter", "-p", vhost, "foo", "bar"),
        broker.ctl("list_parameters", "-p", vhost),
        broker.ctl("set_global_parameter", name, '{"a":1}'),
        broker.ctl("clear_global_parameter", name),
        broker.ctl("clear_global_parameter", name),
    ]


def words_that_are_no_commands(broker: Broker) -> Record:
    return [
        broker.ctl("list_queue")["status"],
        broker.ctl("list_queues", "--nonsense")["status"],
        broker.ctl("add_user")["status"],
        broker.ctl("delete_vhost", "a", "b")["status"],
    ]


def close_a_connection(broker: Broker) -> Record:
    user = broker.user("closed", "", (".*", ".*", ".*"))
    peer = broker.peer(user=user, password=user)
    reply = broker.ctl("close_all_user_connections", user, "enough")
    return [reply["status"], peer.take(1)]


def health(broker: Broker) -> Record:
    words = ("ping", "await_startup", "nonsense")
    return {word: broker.ctl(word)["status"] for word in words}
