"""Commands: rabbitmqctl on the one, burrowctl on the other; status, output and errors.

Each scenario has a virtual host of its own, so that what others do is not listed.
"""

from __future__ import annotations

from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer

Record = Any
BESIDE_OTHERS = 2


def _inside(broker: Broker, name: str) -> Peer:
    broker.vhost(name)
    broker.permit("guest", ".*", ".*", ".*", name)
    return broker.peer(vhost=name)


def _some_queues(broker: Broker, vhost: str) -> Peer:
    peer = _inside(broker, vhost)
    peer.queue("b", {"x-max-length": 10, "x-overflow": "drop-head"}, durable=True)
    peer.fill("b", b"1", b"22", delivery_mode=2)
    peer.get("b", no_ack=False)
    return peer


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
    _some_queues(broker, "table")
    return [
        broker.ctl("list_queues", "-p", "table"),
        broker.ctl("list_queues", "-p", "table", *COLUMNS),
    ]


def list_queues_quietly(broker: Broker) -> Record:
    _some_queues(broker, "quiet")
    return [
        broker.ctl("list_queues", "-q", "-p", "quiet"),
        broker.ctl("list_queues", "-s", "-p", "quiet"),
        broker.ctl("list_queues", "--no-table-headers", "-p", "quiet"),
    ]


def list_queues_as_json(broker: Broker) -> Record:
    _some_queues(broker, "json")
    return [
        broker.ctl(
            "list_queues", "-p", "json", "--formatter", "json", "name", "arguments", "messages"
        ),
        broker.ctl("list_queues", "-p", "json", "--formatter", "csv", "name", "messages"),
    ]


def list_queues_as_a_pretty_table(broker: Broker) -> Record:
    _some_queues(broker, "pretty")
    return broker.ctl(
        "list_queues", "-p", "pretty", "--formatter", "pretty_table", "name", "messages"
    )


def list_queues_of_memory_and_bytes(broker: Broker) -> Record:
    _some_queues(broker, "bytes")
    columns = (
        "name",
        "message_bytes",
        "message_bytes_ready",
        "messages_persistent",
        "message_bytes_persistent",
    )
    return broker.ctl("list_queues", "-s", "-p", "bytes", *columns, "policy", "state")


def list_queues_of_wrong_columns(broker: Broker) -> Record:
    return [broker.ctl("list_queues", "nonsense"), broker.ctl("list_queues", "-p", "nowhere")]


def list_exchanges(broker: Broker) -> Record:
    peer = _inside(broker, "exchanges")
    peer.exchange("x", "topic", {"alternate-exchange": "y"}, durable=True)
    columns = ("name", "type", "durable", "auto_delete", "internal", "arguments")
    found = broker.ctl("list_exchanges", "-s", "-p", "exchanges", *columns)
    return [found["status"], sorted(found["output"].splitlines())]


def list_bindings(broker: Broker) -> Record:
    peer = _inside(broker, "bindings")
    peer.queue("q")
    peer.bind("q", "amq.topic", "a.#", {"n": 1, "s": "x"})
    found = broker.ctl("list_bindings", "-s", "-p", "bindings")
    return [found["status"], sorted(found["output"].splitlines())]


def list_consumers(broker: Broker) -> Record:
    peer = _inside(broker, "consumers")
    peer.queue("q")
    peer.qos(5)
    peer.consume("q", "t", {"x-priority": 1})
    return broker.ctl("list_consumers", "-p", "consumers")


def list_connections_and_channels(broker: Broker) -> Record:
    broker.user("lonely", "", (".*", ".*", ".*"))
    peer = broker.peer(user="lonely", password="lonely")
    peer.qos(3)
    connections = broker.ctl(
        "list_connections", "-s", "user", "vhost", "state", "channels", "protocol"
    )
    channels = broker.ctl(
        "list_channels", "-s", "user", "number", "prefetch_count", "confirm", "transactional"
    )
    return [
        [line for line in found["output"].splitlines() if "lonely" in line]
        for found in (connections, channels)
    ]


def purge_and_delete_queues(broker: Broker) -> Record:
    _some_queues(broker, "purge")
    return [
        broker.ctl("purge_queue", "-p", "purge", "b"),
        broker.ctl("purge_queue", "-p", "purge", "none"),
        broker.ctl("delete_queue", "-p", "purge", "b"),
        broker.ctl("delete_queue", "-p", "purge", "none"),
    ]


def delete_queues_on_a_condition(broker: Broker) -> Record:
    peer = _some_queues(broker, "delete")
    peer.consume("b", "t")
    return [
        broker.ctl("delete_queue", "-p", "delete", "b", "--if-empty"),
        broker.ctl("delete_queue", "-p", "delete", "b", "--if-unused"),
    ]


def policies(broker: Broker) -> Record:
    _inside(broker, "policies")
    here = ("-p", "policies")
    return [
        broker.ctl("set_policy", *here, "p", "^x", '{"message-ttl":60000}', "--priority", "1"),
        broker.ctl("set_policy", *here, "q", "^y", '{"max-length":1}', "--apply-to", "exchanges"),
        broker.ctl("list_policies", *here),
        broker.ctl("list_policies", *here, "--formatter", "json"),
        broker.ctl("clear_policy", *here, "nosuch"),
        broker.ctl("clear_policy", *here, "p"),
    ]


def policies_that_are_refused(broker: Broker) -> Record:
    _inside(broker, "refused")
    here = ("-p", "refused")
    return [
        broker.ctl("set_policy", *here, "p", "x", "{}"),
        broker.ctl("set_policy", *here, "p", "x", '{"foo":1,"bar":"x"}'),
        broker.ctl("set_policy", *here, "p", "x", '{"max-length":"a\\"b"}'),
        broker.ctl("set_policy", *here, "p", "(", '{"max-length":1}'),
        broker.ctl("set_policy", *here, "only", "two"),
        broker.ctl("set_policy", "-p", "nowhere", "p", "x", '{"max-length":1}'),
    ]


def operator_policies(broker: Broker) -> Record:
    _inside(broker, "operators")
    here = ("-p", "operators")
    return [
        broker.ctl("set_operator_policy", *here, "o", ".*", '{"max-length":3}'),
        broker.ctl("set_operator_policy", *here, "o2", ".*", '{"dead-letter-exchange":"x"}'),
        broker.ctl("list_operator_policies", *here),
        broker.ctl("clear_operator_policy", *here, "o"),
        broker.ctl("clear_operator_policy", *here, "o"),
    ]


def limits_of_vhosts(broker: Broker) -> Record:
    _inside(broker, "limited")
    here = ("-p", "limited")
    return [
        broker.ctl("set_vhost_limits", *here, '{"max-queues":300,"max-connections":200}'),
        broker.ctl("list_vhost_limits", *here),
        broker.ctl("set_vhost_limits", *here, '{"foo":3}'),
        broker.ctl("set_vhost_limits", *here, '{"max-queues":"x"}'),
        broker.ctl("set_vhost_limits", "-p", "nowhere", '{"max-queues":3}'),
        broker.ctl("clear_vhost_limits", *here),
    ]


def limits_of_users(broker: Broker) -> Record:
    broker.user("counted")
    return [
        broker.ctl("set_user_limits", "counted", '{"max-connections":200}'),
        broker.ctl("set_user_limits", "counted", '{"foo":200}'),
        broker.ctl("set_user_limits", "nobody", '{"max-connections":200}'),
        broker.ctl("list_user_limits", "--user", "counted"),
        broker.ctl("list_user_limits", "--user", "nobody"),
        broker.ctl("clear_user_limits", "counted", "all"),
    ]


def users(broker: Broker) -> Record:
    broker.also(broker.http, "DELETE", "users/made")
    listed = broker.ctl("list_users", "-s")
    return [
        broker.ctl("add_user", "made", "secret"),
        broker.ctl("add_user", "made", "secret"),
        broker.ctl("set_user_tags", "made", "monitoring", "mine"),
        [
            line
            for line in broker.ctl("list_users")["output"].splitlines()
            if line.startswith("made")
        ],
        broker.ctl("authenticate_user", "made", "secret"),
        broker.ctl("authenticate_user", "made", "wrong"),
        broker.ctl("change_password", "made", "other"),
        broker.ctl("clear_password", "made"),
        broker.ctl("delete_user", "made"),
        broker.ctl("delete_user", "made"),
        listed["status"],
    ]


def permissions(broker: Broker) -> Record:
    _inside(broker, "granted")
    broker.user("granted")
    here = ("-p", "granted")
    return [
        broker.ctl("set_permissions", *here, "granted", "^a", ".*", ""),
        sorted(broker.ctl("list_permissions", *here, "-s")["output"].splitlines()),
        broker.ctl("list_user_permissions", "granted"),
        broker.ctl("set_permissions", *here, "nobody", "", "", ""),
        broker.ctl("set_permissions", *here, "granted", "(", "", ""),
        broker.ctl("clear_permissions", *here, "granted"),
        broker.ctl("list_user_permissions", "nobody"),
    ]


def topic_permissions(broker: Broker) -> Record:
    _inside(broker, "topics")
    broker.user("topical")
    here = ("-p", "topics")
    return [
        broker.ctl("set_topic_permissions", *here, "topical", "amq.topic", "a", "b"),
        broker.ctl("list_topic_permissions", *here),
        broker.ctl("list_user_topic_permissions", "topical"),
        broker.ctl("clear_topic_permissions", *here, "topical", "amq.topic"),
        broker.ctl("clear_topic_permissions", *here, "nobody"),
    ]


def vhosts(broker: Broker) -> Record:
    broker.also(broker.http, "DELETE", "vhosts/made")
    return [
        broker.ctl("add_vhost", "made", "--description", "mine", "--tags", "a,b"),
        broker.ctl("add_vhost", "made"),
        [
            line
            for line in broker.ctl("list_vhosts", "name", "tracing")["output"].splitlines()
            if line.startswith("made")
        ],
        broker.ctl("delete_vhost", "made"),
        broker.ctl("delete_vhost", "made"),
    ]


def parameters(broker: Broker) -> Record:
    broker.vhost("parameters")
    return [
        broker.ctl("set_parameter", "-p", "parameters", "foo", "bar", "1"),
        broker.ctl("clear_parameter", "-p", "parameters", "foo", "bar"),
        broker.ctl("list_parameters", "-p", "parameters"),
        broker.ctl("set_global_parameter", "differential", '{"a":1}'),
        broker.ctl("clear_global_parameter", "differential"),
        broker.ctl("clear_global_parameter", "differential"),
    ]


def words_that_are_no_commands(broker: Broker) -> Record:
    return [
        broker.ctl("list_queue")["status"],
        broker.ctl("list_queues", "--nonsense")["status"],
        broker.ctl("add_user")["status"],
        broker.ctl("delete_vhost", "a", "b")["status"],
    ]


def close_a_connection(broker: Broker) -> Record:
    broker.user("closed", "", (".*", ".*", ".*"))
    peer = broker.peer(user="closed", password="closed")
    reply = broker.ctl("close_all_user_connections", "closed", "enough")
    return [reply["status"], peer.take(1)]


def health(broker: Broker) -> Record:
    words = ("ping", "await_startup", "nonsense")
    return {word: broker.ctl(word)["status"] for word in words}
