"""/api/burrowmq/*."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pika import spec

from burrowmq.config.schema import FirstUserConfig
from burrowmq.config.seeding import LimitsDefault, SeedingConfig, UserDefault
from tests.support.served import Answer, Served, serving

LIST = "/api/burrowmq/list"


def test_rows_keep_order_and_types(served: Served) -> None:
    answer = served.get(f"{LIST}/queues?vhost=%2F&columns=messages,name,arguments")
    assert answer["rows"][0] == [
        3,
        "lazy",
        {"table": [["x-queue-mode", "longstr", "lazy"]]},
    ]
    (connection,) = served.get(f"{LIST}/connections?columns=client_properties,protocol")["rows"]
    assert connection[0]["table"][1] == ["capabilities", "table", [["basic.nack", "bool", True]]]
    assert connection[1] == {"tuple": [0, 9, 1]}


def test_unknown_columns_and_kinds(served: Served) -> None:
    assert served.api("GET", f"{LIST}/queues?columns=nosuch").status == 400
    assert served.api("GET", f"{LIST}/queues").status == 400
    assert served.api("GET", f"{LIST}/nosuch?columns=a").status == 404
    assert served.get(f"{LIST}/queues?vhost=nope&columns=name")["rows"] == []


def test_only_administrators(served: Served) -> None:
    served.api("PUT", "/api/users/bob", {"password": "x", "tags": ["monitoring"]})
    answer = served.api("GET", f"{LIST}/queues?columns=name", login="bob:x")
    assert (answer.status, answer.body["reason"]) == (401, "Not administrator user")


def put(served: Served, path: str, body: object) -> None:
    answer = served.api("PUT", f"/api/{path}", body)
    assert answer.status in (201, 204), answer


def post(served: Served, path: str, body: object) -> Answer:
    return served.api("POST", f"/api/burrowmq/{path}", body)


def rows(served: Served, query: str) -> list[list[Any]]:
    """The rows of a list."""
    found: list[list[Any]] = served.get(f"{LIST}/{query}")["rows"]
    return found


# -- lists ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("exchanges?vhost=%2F&columns=name,type", ["amq.topic", "topic"]),
        (
            "bindings?columns=source_name,source_kind,destination_name,destination_kind,routing_key",
            ["amq.topic", "exchange", "orders", "queue", "a b/c"],
        ),
        ("channels?columns=number,user,consumer_count", [1, "guest", 1]),
        ("consumers?vhost=%2F&columns=queue_name,consumer_tag", ["orders", "ctag1"]),
        ("connections?columns=user,channels,protocol", ["guest", 1, {"tuple": [0, 9, 1]}]),
        ("vhosts?columns=name,tracing", ["/", False]),
        ("users?columns=tags,user", [["administrator"], "guest"]),
        ("permissions?vhost=%2F&columns=user,configure,write,read", ["guest", ".*", ".*", ".*"]),
        ("permissions?user=guest&columns=vhost", ["/"]),
    ],
)
def test_a_list_has_the_columns_of_burrowctl(
    served: Served, query: str, expected: list[Any]
) -> None:
    answer = served.get(f"{LIST}/{query}")
    assert expected in answer["rows"]
    assert ",".join(answer["columns"]) == query.partition("columns=")[2]


def test_arguments_of_bindings_are_by_name_and_octets_are_asked_for(served: Served) -> None:
    (client,) = served.bench.clients
    arguments = {"z": 1, "a": b"\xff"}
    client.call(1, spec.Queue.Bind(queue="lazy", exchange="amq.headers", arguments=arguments))
    found = rows(served, "bindings?columns=source_name,arguments&octets=true")
    (table,) = [row[1]["octets"] for row in found if row[0] == "amq.headers"]
    assert [name for name, _, _ in table] == ["a", "z"]
    assert table[0][2] == "\xff"


POLICY = {"pattern": "^lazy$", "definition": {"max-length": 9}}
DEFINITION = '{"max-length":9}'


@pytest.fixture
def ruled(served: Served) -> Served:
    """With policies of both kinds."""
    put(served, "policies/%2F/high", {**POLICY, "priority": 2})
    put(served, "policies/%2F/low", {**POLICY, "priority": 1})
    put(served, "operator-policies/%2F/op", {**POLICY, "priority": 3, "apply-to": "queues"})
    return served


def test_policies_are_by_priority_and_their_definitions_texts(ruled: Served) -> None:
    assert rows(ruled, "policies?columns=name,definition") == [
        ["low", DEFINITION],
        ["high", DEFINITION],
    ]
    assert rows(ruled, "operator_policies?columns=name,definition") == [["op", DEFINITION]]


def test_policies_that_match_are_in_the_order_of_their_force(ruled: Served) -> None:
    query = "matching_policies?vhost=%2F&columns=name,definition&name="
    assert rows(ruled, f"{query}lazy") == [[name, DEFINITION] for name in ("op", "high", "low")]
    assert [row[0] for row in rows(ruled, f"{query}lazy&kind=exchange")] == ["high", "low"]
    assert rows(ruled, f"{query}other") == []


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("name=lazy", "no such virtual host or kind: None, queue"),
        ("vhost=nope&name=lazy", "no such virtual host or kind: nope, queue"),
        ("vhost=%2F&name=lazy&kind=user", "no such virtual host or kind: /, user"),
    ],
)
def test_what_a_policy_cannot_match_is_refused(served: Served, query: str, reason: str) -> None:
    answer = served.api("GET", f"{LIST}/matching_policies?columns=name&{query}")
    assert (answer.status, answer.body["reason"]) == (400, reason)


def test_values_of_parameters_are_texts(served: Served) -> None:
    put(served, "global-parameters/one", {"value": {"a": [1]}})
    assert ["one", '{"a":[1]}'] in rows(served, "global_parameters?columns=name,value")
    put(served, "parameters/operator_policy/%2F/op", {"value": POLICY})
    ((component, value),) = rows(served, "parameters?vhost=%2F&columns=component,value")
    assert component == "operator_policy"
    assert json.loads(value)["pattern"] == "^lazy$"


def test_topic_permissions_are_of_a_vhost_or_a_user(served: Served) -> None:
    given = {"exchange": "amq.topic", "write": "^a", "read": "^b"}
    put(served, "topic-permissions/%2F/guest", given)
    columns = "columns=user,exchange,write,read"
    expected = [["guest", "amq.topic", "^a", "^b"]]
    assert rows(served, f"topic_permissions?vhost=%2F&{columns}") == expected
    assert rows(served, f"topic_permissions?user=guest&{columns}") == expected
    assert rows(served, f"topic_permissions?user=bob&{columns}") == []


@pytest.mark.parametrize(
    "kind", ["permissions", "policies", "operator_policies", "parameters", "topic_permissions"]
)
def test_what_is_granted_or_set_in_a_vhost_needs_the_vhost(served: Served, kind: str) -> None:
    answer = served.api("GET", f"{LIST}/{kind}?vhost=nope&columns=name")
    assert (answer.status, answer.body["reason"]) == (400, "Virtual host 'nope' does not exist")


# -- the node ---------------------------------------------------------------------------------------------------------


def test_the_environment_keeps_secrets(tmp_path: Path) -> None:
    with serving(tmp_path, first_user=FirstUserConfig(password="sesame")) as served:
        found = served.api("GET", "/api/burrowmq/environment", login="guest:sesame").body[
            "burrowmq"
        ]
    assert (found["node_name"], found["loopback_users"]) == ("rabbit@test", ["guest"])
    assert found["first_user"] == {
        "name": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*", "tags": ["administrator"],
    }  # fmt: skip
    assert "sesame" not in json.dumps(found)


def test_the_environment_shows_what_new_virtual_hosts_begin_with(tmp_path: Path) -> None:
    users = (UserDefault(name="bob", password="sesame", tags=("monitoring",)),)
    limits = (LimitsDefault(limits={"max-queues": 3}),)
    with serving(tmp_path, seeding=SeedingConfig(users=users, limits=limits)) as served:
        found = served.get("/api/burrowmq/environment")["burrowmq"]["seeding"]
    assert found == {
        "users": [
            {"name": "bob", "vhost_pattern": ".*", "configure": ".*", "write": ".*", "read": ".*",
             "tags": ["monitoring"]},
        ],
        "operator_policies": [],
        "limits": [{"limits": {"max-queues": 3}, "pattern": ".*"}],
    }  # fmt: skip


def test_the_status_is_the_nodes(served: Served) -> None:
    found = served.get("/api/burrowmq/status")
    assert (found["node"], found["totals"]["queue_count"]) == ("rabbit@test", 2)


# -- what burrowctl does ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "closed"),
    [
        ({}, 3),
        ({"limit": 2}, 2),
        ({"vhost": "/"}, 2),
        ({"vhost": "/", "user": "guest"}, 1),
        ({"user": "bob"}, 2),
        ({"user": "nobody"}, 0),
        ({"pid": "<rabbit@test.1.2.3>"}, 0),
    ],
)
def test_connections_are_closed_by_vhost_and_user(
    served: Served, chosen: dict[str, object], closed: int
) -> None:
    put(served, "vhosts/other", {})
    put(served, "users/bob", {"password": "bob", "tags": []})
    for vhost in ("%2F", "other"):
        put(served, f"permissions/{vhost}/bob", {"configure": "", "write": "", "read": ""})
    served.bench.connect(user="bob")
    served.bench.connect(user="bob", vhost="other")
    answer = post(served, "close-connections", {"reason": "enough", **chosen})
    assert answer.body == {"closed": closed}
    closes = [method for client in served.bench.clients for _, method in client.read()]
    texts = [each.reply_text for each in closes if each.NAME == "Connection.Close"]
    assert texts == ["CONNECTION_FORCED - enough"] * closed


def test_a_connection_is_closed_by_the_pid_that_its_row_has(served: Served) -> None:
    served.bench.connect()
    (pid,) = rows(served, "connections?columns=pid")[1]
    served.bench.clients[0].read()
    assert post(served, "close-connections", {"pid": pid}).body == {"closed": 1}
    found = [[method.NAME for _, method in client.read()] for client in served.bench.clients]
    assert sorted(found) == [[], ["Connection.Close"]]


def test_a_password_is_right_or_wrong(served: Served) -> None:
    right = post(served, "authenticate", {"username": "guest", "password": "guest"})
    assert (right.status, right.body) == (200, {"status": "ok"})
    for body in ({"username": "guest", "password": "no"}, {"username": "bob"}, {}):
        answer = post(served, "authenticate", body)
        assert answer.status == 401
        assert answer.body["reason"].endswith("invalid credentials")


def test_a_deleted_queue_says_how_many_messages_went(served: Served) -> None:
    assert post(served, "delete-queue", {"name": "orders"}).body == {"messages": 3}
    assert post(served, "delete-queue", {"name": "orders"}).status == 404
    assert post(served, "delete-queue", {"vhost": "nope", "name": "lazy"}).status == 404


@pytest.mark.parametrize(
    ("name", "condition", "reason"),
    [("orders", "if_unused", "Queue is in use"), ("lazy", "if_empty", "Queue is not empty")],
)
def test_a_queue_stays_while_a_condition_does_not_hold(
    served: Served, name: str, condition: str, reason: str
) -> None:
    answer = post(served, "delete-queue", {"name": name, condition: True})
    assert (answer.status, answer.body["reason"]) == (400, reason)
    assert post(served, "delete-queue", {"name": name, condition: False}).body == {"messages": 3}


def test_limits_of_a_vhost_are_replaced(served: Served) -> None:
    for given in ({"max-queues": 3}, {"max-connections": 2}):
        assert post(served, "vhost-limits/%2F", {"value": given}).status == 204
        assert served.node.vhosts["/"].limits == given
    assert post(served, "vhost-limits/nope", {"value": {}}).status == 404


def test_limits_of_a_user_are_added_and_cleared(served: Served) -> None:
    def after(body: dict[str, object]) -> dict[str, int]:
        assert post(served, "user-limits/guest", body).status == 204
        return dict(served.node.auth.users["guest"].limits)

    after({"value": {"max-channels": 30}})
    both = {"max-channels": 30, "max-connections": 20}
    assert after({"value": {"max-connections": 20}}) == both
    assert after({"clear": "max-channels"}) == {"max-connections": 20}
    assert after({"clear": "all", "value": {"max-channels": 10}}) == {"max-channels": 10}
    assert post(served, "user-limits/guest", {"value": 1}).status == 400
    assert post(served, "user-limits/nobody", {"value": {}}).status == 404


def test_shutdown_asks_the_node(served: Served) -> None:
    assert served.api("POST", "/api/burrowmq/shutdown").status == 202
    assert served.get("/api/burrowmq/ready")["node"] == "rabbit@test"


def test_the_application_is_stopped_and_started_over_the_control_socket_only(
    tmp_path: Path,
) -> None:
    with serving(tmp_path) as served:
        for path in ("stop-app", "start-app"):
            answer = served.api("POST", f"/api/burrowmq/{path}")
            assert (answer.status, answer.body["reason"]) == (
                401,
                "Asked for over the control socket only",
            )
        assert served.bench.host.state == "running"
        assert served.ctl("stop_app").code == 0
        assert served.bench.host.state == "stopped"
        assert served.ctl("start_app").code == 0
        assert served.bench.host.state == "running"


def test_the_process_is_described_whether_the_application_runs_or_not(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        found = served.get("/api/burrowmq/process")
        assert (found["node"], found["pid"], found["state"]) == (
            "rabbit@test",
            os.getpid(),
            "running",
        )
        served.stop_application()
        assert served.ctl("-q", "server_version") == (0, found["version"] + "\n", "")


@pytest.mark.parametrize("limit", [-1, 2**70, None, [], "x"])
def test_a_limit_of_closing_is_a_number(served: Served, limit: object) -> None:
    path = "/api/burrowmq/close-connections"
    assert served.api("POST", path, {"limit": limit}).status == 400
