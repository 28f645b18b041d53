"""Bodies and errors."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp.test_utils import make_mocked_request

from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.management.answers import reply
from burrowmq.management.answers.access import TRUSTED, Caller
from burrowmq.management.answers.rates import Rates
from tests.support.bench.node import NodeBench
from tests.support.served import Served


def test_lenient_values() -> None:
    assert reply.flag_of({"a": "true"}, "a", False)
    assert not reply.flag_of({}, "a", False)
    assert reply.number_of({"n": "-3"}, "n") == -3
    for body in ({"n": "x"}, {"n": True}, {}):
        with pytest.raises(reply.ApiError):
            reply.number_of(body, "n")


def test_arguments_have_no_null_in_them() -> None:
    for given in ({}, {"arguments": None}, {"arguments": {}}, {"arguments": ""}):
        assert reply.arguments_of(given) == {}
    fine = {"a": 0, "b": [False, {"c": ""}]}
    assert reply.arguments_of({"arguments": fine}) == fine
    for refused in ("x", [1], {"a": None}, {"a": [1, [{"b": {"c": None}}]]}):
        with pytest.raises(reply.ApiError) as caught:
            reply.arguments_of({"arguments": refused})
        wanted = "null_not_allowed" if isinstance(refused, dict) else "arguments must be an object"
        assert caught.value.reason == wanted


@pytest.mark.parametrize(
    "path", ["queues/%2F/n", "exchanges/%2F/n", "bindings/%2F/e/amq.topic/q/orders"]
)
def test_null_among_the_arguments_is_refused_over_http(served: Served, path: str) -> None:
    method = "POST" if path.startswith("bindings") else "PUT"
    answer = served.api(method, f"/api/{path}", {"arguments": {"x-a": [None]}})
    expected = {"error": "bad_request", "reason": "null_not_allowed"}
    assert (answer.status, answer.body) == (400, expected)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (reply.not_found(), (404, {"error": "Object Not Found", "reason": "Not Found"})),
        (reply.bad_request(["not_int", "n"]), (400, {"error": "bad_request", "reason": ["not_int", "n"]})),
        (reply.unauthorised("Not you"), (401, {"error": "not_authorised", "reason": "Not you"})),
    ],
)  # fmt: skip
def test_refusals_have_rabbitmqs_bodies(
    error: reply.ApiError, expected: tuple[int, dict[str, Any]]
) -> None:
    assert (error.status, error.body()) == expected


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"a": 1, "bb": None}, None),
        ({"a": 1}, "[{key_missing,bb}]"),
        ({}, "[{key_missing,a},{key_missing,bb}]"),
    ],
)
def test_keys_that_are_missing_are_all_named(body: dict[str, Any], told: str | None) -> None:
    if told is None:
        reply.require_keys(body, "a", "bb")
        return
    with pytest.raises(reply.ApiError) as refusal:
        reply.require_keys(body, "a", "bb")
    assert refusal.value.reason == told


def test_many_missing_keys_are_on_a_line_each_as_erlang_prints_them() -> None:
    with pytest.raises(reply.ApiError) as refusal:
        reply.require_keys({}, "a" * 30, "b" * 30)
    assert refusal.value.reason == (f"[{{key_missing,{'a' * 30}}},\n {{key_missing,{'b' * 30}}}]")


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_what_is_no_boolean_is_refused_with_its_value(value: object) -> None:
    with pytest.raises(reply.ApiError) as refusal:
        reply.flag_of({"a": value}, "a", default=True)
    assert refusal.value.reason == ["not_boolean", value]


def test_answers_without_a_body_and_json_that_has_no_surrogates() -> None:
    assert (reply.no_content().status, reply.created().status) == (204, 201)
    assert reply.reply({"a": [1, "ä"]}, 202).body == '{"a":[1,"ä"]}'.encode()
    assert reply.dump("a\udcff") == b'"a?"'


def test_long_lists_give_way() -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def collect() -> int:
        task = asyncio.get_running_loop().create_task(count_turns())
        rows = await reply.collect(range(1000))
        task.cancel()
        return len(rows)

    assert asyncio.run(collect()) == 1000
    assert turns >= 4


@pytest.mark.parametrize("count", [0, 3, reply.TEXTS_INLINE, 1000])
def test_long_replies_are_the_same_json_and_are_sent_while_they_are_made(
    served: Served, count: int
) -> None:
    served.bench.perform(lambda: declare_many(served.bench, count))
    whole = served.api("GET", "/api/queues?columns=name")
    assert [row["name"] for row in whole.body] == ["lazy", *names(count), "orders"]
    assert ("content-length" in whole.headers) == (count + 5 < reply.TEXTS_INLINE)
    lines = served.ctl("--silent", "list_queues", "name").out.splitlines()
    assert lines[-count - 2 :] == ["lazy", *names(count), "orders"]


def test_a_long_answer_to_head_and_to_an_old_client(served: Served) -> None:
    served.bench.perform(lambda: declare_many(served.bench, 1000))
    login = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    for method, path in (("HEAD", "/api/queues"), ("GET", "/api/whoami")):  # on one connection
        connection.request(method, path, headers=login)
        answer = connection.getresponse()
        assert (answer.status, len(answer.read()) > 0) == (200, method == "GET")
    connection.close()
    with socket.create_connection(("127.0.0.1", served.port)) as old:
        said = f"GET /api/queues?columns=name HTTP/1.0\r\nAuthorization: {login['Authorization']}\r\n\r\n"
        old.sendall(said.encode())
        with old.makefile("rb") as stream:
            body = stream.read().partition(b"\r\n\r\n")[2]
    assert len(json.loads(body)) == 1002


def names(count: int) -> list[str]:
    return [f"many-{number:04}" for number in range(count)]


def declare_many(bench: NodeBench, count: int) -> None:
    for name in names(count):
        bench.node.vhosts["/"].declare_queue(QueueDeclaration(name=name, durable=True))


def test_an_answer_that_fails_half_way_is_cut_off_and_not_ended(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    served.bench.perform(lambda: declare_many(served.bench, 1000))
    queue = served.node.vhosts["/"].queues["many-0999"]
    queue.auto_delete = cast("Any", b"yes")  # what JSON cannot say
    with pytest.raises(http.client.IncompleteRead):
        served.api("GET", "/api/queues?columns=auto_delete")
    assert "request_failed" in caplog.text


def test_a_call_gives_the_application_that_runs(tmp_path: Path) -> None:
    with NodeBench(tmp_path) as bench:
        call = reply.Call(cast("Any", None), bench.host, TRUSTED, Rates())
        assert call.node is bench.node
        bench.loop.run_until_complete(bench.host.stop_application())
        with pytest.raises(reply.ApiError) as refusal:
            _ = call.node
    assert (refusal.value.status, refusal.value.error) == (503, "not_running")


# -- a call -----------------------------------------------------------------------------------------------------------


def call(
    bench: NodeBench, path: str = "/", *, caller: Caller = TRUSTED, **segments: str
) -> reply.Call:
    """A request of this path whose route had these segments."""
    request = make_mocked_request("GET", path, match_info=segments)
    return reply.Call(request, bench.host, caller, Rates())


def test_a_call_reads_path_and_query(bench: NodeBench) -> None:
    found = call(bench, "/x?a=b%20c&yes=true&no=1", name="q/1")
    assert (found.path("name"), found.query("a"), found.query("z", "d")) == ("q/1", "b c", "d")
    assert (found.flag("yes"), found.flag("no"), found.flag("z")) == (True, False, False)


def test_the_vhost_of_a_path_is_there_and_open_to_the_caller(bench: NodeBench) -> None:
    guest, bob = Caller("guest", ("management",)), Caller("bob", ("management",))
    assert call(bench, caller=guest, vhost="/").vhost() == "/"
    assert call(bench, caller=guest, vhost="/").target_vhost() == "/"
    with pytest.raises(reply.ApiError, match="401 not_authorised: User not authorised to access"):
        call(bench, caller=bob, vhost="/").vhost()
    with pytest.raises(reply.ApiError, match="404 Object Not Found"):
        call(bench, vhost="nope").vhost()
    with pytest.raises(reply.ApiError, match="404 not_found: vhost_not_found"):
        call(bench, vhost="nope").target_vhost()


def test_a_path_without_a_vhost_is_about_all_of_them(bench: NodeBench) -> None:
    assert call(bench).vhost_or_all() is None
    assert call(bench, vhost="/").vhost_or_all() == "/"
    with pytest.raises(reply.ApiError, match="404"):
        call(bench, vhost="nope").vhost_or_all()


def test_the_node_of_a_path_is_this_one(bench: NodeBench) -> None:
    call(bench, node="rabbit@test").check_node()
    with pytest.raises(reply.ApiError, match="404"):
        call(bench, node="rabbit@other").check_node()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 404),
        (" \n", 404),
        ("null", 404),
        ("{}", 404),
        ('{"name": "lazy"}', 200),
        ("[1]", 400),
        ('"text"', 400),
        ("{", 400),
    ],
)
def test_a_body_is_an_object_or_nothing(served: Served, body: str, status: int) -> None:
    answer = served.api("POST", "/api/burrowmq/delete-queue", body)  # of no name: 404
    assert answer.status == status
    if status == 400:
        told = reply.TWICE_ENCODED if body.startswith('"') else "not_json"
        assert answer.body == {"error": "bad_request", "reason": told}


def test_an_empty_body_has_none_of_the_keys(served: Served) -> None:
    answer = served.api("PUT", "/api/vhost-limits/%2F/max-queues", "")
    assert (answer.status, answer.body["reason"]) == (400, "[{key_missing,value}]")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_what_is_no_number_in_json_is_refused(served: Served, value: str) -> None:
    """Python's reader takes it: an answer with it could be read by nobody else."""
    answer = served.api("PUT", "/api/queues/%2F/n", f'{{"arguments": {{"a": [{value}]}}}}')
    assert (answer.status, answer.body["reason"]) == (400, "not_json")


def test_a_float_of_a_client_that_is_no_number_is_null(served: Served) -> None:
    """Over AMQP there are such floats: in arguments, headers, what a client says of itself."""
    arguments = {"a": float("nan"), "b": [float("inf")], "c": {"d": 1.5}}
    served.bench.queue("odd", arguments=arguments)
    body = json.dumps(served.get("/api/queues/%2F/odd")["arguments"])
    assert body == '{"a": null, "b": [null], "c": {"d": 1.5}}'
    json.dumps(served.get("/api/queues?columns=arguments"), allow_nan=False)
    json.dumps(served.get("/api/definitions"), allow_nan=False)
