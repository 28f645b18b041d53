"""/api/definitions."""

from __future__ import annotations

import base64
import json

import pytest
from pika.spec import Queue

from burrowmq.broker.vhost.vhost import Edge, ExchangeDeclaration
from burrowmq.management.api import definitions
from burrowmq.management.api.definitions import ENTRIES_PER_TURN
from tests.support.served import Served

FORM = '--b\r\nContent-Disposition: form-data; name="file"\r\n{more}\r\n\r\n{{}}\r\n--b--\r\n'


def test_export_has_what_the_user_made(served: Served) -> None:
    document = served.get("/api/definitions")
    assert [queue["name"] for queue in document["queues"]] == ["lazy", "orders"]
    assert document["exchanges"] == []
    assert document["bindings"][0]["arguments"] == {"x": 1}
    assert document["users"][0]["hashing_algorithm"] == "rabbit_password_hashing_sha256"
    assert document["permissions"][0]["user"] == "guest"


def test_export_of_a_vhost_does_not_name_it(served: Served) -> None:
    document = served.get("/api/definitions/%2F")
    assert "users" not in document
    assert "vhost" not in document["queues"][0]
    assert "rabbit_version" in document
    assert "product_name" not in document


def test_what_goes_while_an_export_is_made_stays_out(served: Served) -> None:
    node = served.bench.node
    vhost = node.vhosts["/"]
    for name in ("a", "b"):
        vhost.declare_exchange(ExchangeDeclaration(name=name))
        vhost.bind(Edge(name, "queue", "orders", b"", {}))
        node.parameters.put(name, 1)
    pieces = definitions.texts(node)
    found = [next(pieces)]
    for piece in pieces:
        found.append(piece)
        if b'"name":"a"' in piece and b'"value"' in piece:
            node.parameters.remove("b")
        if b'"name":"a"' in piece and b'"type"' in piece:
            vhost.delete_exchange(vhost.exchange("b"))
    document = json.loads(b"".join(found))
    assert [row["name"] for row in document["global_parameters"]] == ["a"]
    assert [row["name"] for row in document["exchanges"]] == ["a"]
    assert {row["source"] for row in document["bindings"]} == {"a", "amq.topic"}


@pytest.mark.parametrize(
    ("asked", "name"), [("rabbit_1.json", "rabbit_1.json"), ("a%22;%0d%0aX:%20%C3%A9", "a____X_ _")]
)
@pytest.mark.parametrize("path", ["/api/definitions", "/api/definitions/%2F"])
def test_an_export_may_be_a_file_to_keep(served: Served, path: str, asked: str, name: str) -> None:
    answer = served.api("GET", f"{path}?download={asked}")
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert "content-disposition" not in served.api("GET", path).headers


def test_a_long_export_may_be_one_too(served: Served) -> None:
    queues = [{"name": f"q{i}", "vhost": "/"} for i in range(200)]
    assert served.api("POST", "/api/definitions", {"queues": queues}).status == 204
    answer = served.api("GET", "/api/definitions?download=x")
    assert answer.headers["content-disposition"] == 'attachment; filename="x"'
    assert len(answer.body["queues"]) > 200


def test_exclusive_queues_stay_out(served: Served) -> None:
    (client,) = served.bench.clients
    client.call(1, Queue.Declare(queue="mine", exclusive=True))
    client.call(1, Queue.Bind(queue="mine", exchange="amq.topic", routing_key="k"))
    document = served.get("/api/definitions")
    assert [queue["name"] for queue in document["queues"]] == ["lazy", "orders"]
    assert [binding["destination"] for binding in document["bindings"]] == ["orders"]


def test_import_is_what_export_says(served: Served) -> None:
    served.api("PUT", "/api/policies/%2F/p", {"pattern": "x", "definition": {"expires": 1}})
    document = served.get("/api/definitions")
    assert served.api("DELETE", "/api/policies/%2F/p").status == 204
    assert served.api("POST", "/api/definitions", document).status == 204
    assert served.get("/api/definitions") == document
    part = served.get("/api/definitions/%2F")
    assert [row["name"] for row in part["policies"]] == ["p"]
    served.api("PUT", "/api/vhosts/other")
    assert served.api("POST", "/api/definitions/other", part).status == 204
    assert served.get("/api/policies/other/p")["definition"] == {"expires": 1}
    assert served.api("POST", "/api/definitions", {}).status == 204


def test_import_from_a_browsers_form(served: Served) -> None:
    text = '{"policies":[{"vhost":"/","name":"p","pattern":"x","definition":{"expires":1}}]}'
    lines = [
        "--b",
        'Content-Disposition: form-data; name="file"; filename="d.json"',
        "",
        text,
        "--b--",
        "",
    ]
    body = "\r\n".join(lines)
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    assert served.api("POST", "/api/definitions", body, **kind).status == 204
    assert served.get("/api/policies/%2F/p")["definition"] == {"expires": 1}


def test_refused_documents(served: Served) -> None:
    for body in ("{", "[]", ""):
        answer = served.api("POST", "/api/definitions", body)
        assert (answer.status, answer.body["reason"]) == (400, "failed_to_parse_json")
    answer = served.api("POST", "/api/definitions", {"queues": [{"name": "z", "vhost": "nope"}]})
    assert (answer.status, answer.body["reason"]) == (400, ["no_such_vhost", "nope"])


def test_a_long_document_is_read_and_taken_over_in_turns(served: Served) -> None:
    count = 2 * ENTRIES_PER_TURN
    queues = [
        {"name": f"q{number}", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
        for number in range(count)
    ]
    policy = {"name": "p", "vhost": "/", "pattern": "^q", "definition": {"max-length": 3}}
    answer = served.api("POST", "/api/definitions", {"queues": queues, "policies": [policy]})
    assert answer.status == 204
    found = served.node.vhosts["/"].queues
    assert sum(queue.settings.max_length == 3 for queue in found.values()) == count
    assert {row["name"] for row in served.get("/api/definitions")["queues"]} == set(found)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=b", b"--b\r\nbroken"),
        ("multipart/form-data; boundary=b", FORM.format(more="Content-Transfer-Encoding: x").encode()),
        ("multipart/form-data; boundary=b", FORM.format(more="Content-Type: a/b; charset=x").encode()),
    ],
)  # fmt: skip
def test_a_form_that_is_none_is_refused(served: Served, kind: str, body: bytes) -> None:
    answer = served.api("POST", "/api/definitions", body, **{"Content-Type": kind})
    assert (answer.status, answer.body["reason"]) == (400, "failed_to_parse_json")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1e999"])
def test_what_is_no_number_in_json_is_refused(served: Served, value: str) -> None:
    queue = f'{{"name":"n","vhost":"/","arguments":{{"a":[{value}]}}}}'
    for document in (f'{{"queues":[{queue}]}}', f'{{"unknown":{value}}}'):
        answer = served.api("POST", "/api/definitions", document)
        assert (answer.status, answer.body["reason"]) == (400, "failed_to_parse_json")
    assert "n" not in served.node.vhosts["/"].queues


def test_a_link_has_the_login_in_its_query(served: Served) -> None:
    login = base64.b64encode(b"guest:guest").decode()
    for path in ("definitions", "definitions/%2F", "all-configuration"):
        assert served.api("GET", f"/api/{path}?auth={login}", login=None).status == 200
    assert served.api("GET", f"/api/definitions?auth={login}", login="guest:wrong").status == 200
    wrong = base64.b64encode(b"guest:wrong").decode()
    assert served.api("GET", f"/api/definitions?auth={wrong}").status == 401
    assert served.api("GET", "/api/definitions?auth=zzz", login=None).status == 400
    assert served.api("GET", f"/api/overview?auth={login}", login=None).status == 401
    assert served.api("POST", f"/api/definitions?auth={login}", {}, login=None).status == 204
    (*_, told) = served.bench.observer.named("change_made")
    assert told[2] == "/api/definitions"
