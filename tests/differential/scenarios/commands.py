"""Commands: rabbitmqctl on the one, burrowctl on the other; status, output and errors.

Each scenario has a virtual host of its own, so that what others do is not listed.
"""

from __future__ import annotations

from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer

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
