"""Listeners, logins and errors of the management server."""

from __future__ import annotations

import base64
import gc
import http.client
import json
import os
import socket
import stat
import threading
import weakref
from pathlib import Path
from urllib.parse import quote

import pytest

from burrowmq.config.schema import ManagementConfig, PrometheusConfig
from burrowmq.config.units import Endpoint
from burrowmq.management import settings
from burrowmq.management.answers.reply import Call
from burrowmq.management.bound_sockets import bind
from burrowmq.management.server import Management, start
from tests.support.bench.node import NodeBench
from tests.support.ports import free_ports
from tests.support.served import Served, serving


def test_login(served: Served) -> None:
    answer = served.api("GET", "/api/overview", login=None)
    assert (answer.status, answer.body) == (401, "")
    assert answer.headers["www-authenticate"] == 'Basic realm="RabbitMQ Management"'
    answer = served.api("GET", "/api/overview", login="guest:wrong")
    assert (answer.status, answer.body) == (
        401,
        {"error": "not_authorized", "reason": "Login failed"},
    )


def test_the_log_has_failed_logins_and_changes(served: Served) -> None:
    observer = served.bench.observer
    served.api("GET", "/api/overview", login="guest:wrong")
    ((address, mechanism, reason),) = observer.named("login_refused")
    assert (address, mechanism) == ("127.0.0.1", "HTTP")
    assert "'guest'" in reason
    served.api("PUT", "/api/vhosts/a%2Fb", {})
    served.api("PUT", "/api/queues/%2F/q", {})
    served.api("DELETE", "/api/queues/%2F/q")
    served.api("PUT", "/api/users/bad", "{")
    served.api("GET", "/api/queues")
    assert observer.named("change_made") == [
        ("guest", "PUT", "/api/vhosts/a%2Fb", ""),
        ("guest", "DELETE", "/api/queues/%2F/q", ""),
    ]


def test_the_log_says_what_was_done_where_the_path_does_not(served: Served) -> None:
    served.ctl("drain")
    served.ctl("revive")
    served.ctl("delete_queue", "lazy")
    served.ctl("set_disk_free_limit", "1MB")
    served.ctl("add_user", "bob", "secret")
    served.api("POST", "/api/burrowmq/log-level", {"level": "none", "more": "x" * 600})
    found = [(path, body) for *_, path, body in served.bench.observer.named("change_made")]
    assert found[:5] == [
        ("/api/burrowmq/maintenance", '{"enabled": true}'),
        ("/api/burrowmq/maintenance", '{"enabled": false}'),
        ("/api/burrowmq/delete-queue", found[2][1]),
        ("/api/burrowmq/disk-free-limit", found[3][1]),
        ("/api/users/bob", ""),
    ]
    assert '"lazy"' in found[2][1]
    assert "1000000" in found[3][1]
    assert len(found[5][1]) == 500, "a long body is cut"


def test_a_page_of_the_ui_is_told_of_alarms_with_every_answer(served: Served) -> None:
    asked = {"X-Requested-With": "BurrowMQ"}
    quiet = served.api("GET", "/api/whoami", **asked)
    assert quiet.headers["x-alarms"] == "", "else a browser would keep the last one with a 304"
    assert "x-alarms" not in served.api("GET", "/api/whoami").headers, "tools do not ask"
    assert "x-alarms" not in served.api("GET", "/api/whoami", login="guest:wrong", **asked).headers
    served.bench.run_short_of_memory()
    tag = {"If-None-Match": quiet.headers["etag"]}
    again = served.api("GET", "/api/whoami", **asked, **tag)
    assert (again.status, again.headers["x-alarms"]) == (304, "memory")
    assert served.api("GET", "/api/queues", **asked).headers["x-alarms"] == "memory"


def test_tags_decide(served: Served) -> None:
    served.api("PUT", "/api/users/none", {"password": "x", "tags": []})
    served.api("PUT", "/api/users/plain", {"password": "x", "tags": ["management"]})
    assert (
        served.api("GET", "/api/overview", login="none:x").body["reason"] == "Not management user"
    )
    assert served.api("GET", "/api/nodes", login="plain:x").body["reason"] == "Not monitor user"
    assert served.api("GET", "/api/queues/%2F", login="plain:x").status == 401
    assert served.api("GET", "/api/queues", login="plain:x").body == []
    assert served.api("GET", "/api/connections", login="plain:x").body == []


def test_amqp_permissions_hold_for_administrators_too(served: Served) -> None:
    served.api("PUT", "/api/users/admin", {"password": "x", "tags": ["administrator"]})
    answer = served.api("PUT", "/api/queues/%2F/q", {}, login="admin:x")
    assert (answer.status, answer.body["error"]) == (401, "not_authorised")


def test_unknown_path_and_method(served: Served) -> None:
    answer = served.api("GET", "/api/nosuch")
    assert (answer.status, answer.body) == (
        404,
        {"error": "Object Not Found", "reason": "Not Found"},
    )
    answer = served.api("DELETE", "/api/overview")
    assert (answer.status, answer.body) == (405, "")


def test_bad_bodies(served: Served) -> None:
    assert served.api("PUT", "/api/queues/%2F/q", "{").body["reason"] == "not_json"
    assert served.api("PUT", "/api/queues/%2F/q", "[]").body["reason"] == "not_json"


def test_a_bug_is_a_500_without_details(served: Served) -> None:
    served.node.metrics = None
    answer = served.api("GET", "/api/overview")
    assert (answer.status, answer.body["error"]) == (500, "internal_error")


def test_writes_wait_for_the_store(served: Served) -> None:
    before = served.node.scheduler.committed_epoch
    served.api("PUT", "/api/queues/%2F/q", {"durable": True})
    assert served.node.scheduler.committed_epoch > before
    assert ("queue", '["/","q"]') in [row[:2] for row in served.bench.store.load()]


def test_control_socket_is_private_and_goes_away(tmp_path: Path) -> None:
    (tmp_path / "control.sock").write_text("left by a node that was killed")
    with serving(tmp_path):
        mode = os.stat(tmp_path / "control.sock").st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
    assert not (tmp_path / "control.sock").exists()


def test_what_listens_is_logged(served: Served) -> None:
    listeners = served.bench.observer.named("http_listener_started")
    assert [(part, is_tls) for part, _, is_tls in listeners] == [
        ("Management plugin", False),
        ("Prometheus metrics", False),
    ]
    assert listeners[0][1] == f"127.0.0.1:{served.port}"


def test_head_is_get_without_a_body(served: Served) -> None:
    answer = served.api("HEAD", "/api/queues")
    assert (answer.status, answer.body) == (200, "")
    assert answer.headers["content-type"].startswith("application/json")
    assert served.api("HEAD", "/api/queues/%2F/nosuch").status == 404


def test_options_names_the_verbs(served: Served) -> None:
    answer = served.api("OPTIONS", "/api/queues/%2F/orders")
    assert (answer.status, answer.headers["allow"]) == (200, "HEAD, GET, PUT, DELETE, OPTIONS")


@pytest.mark.parametrize("name", [*"{}/%$\"'<>()[]&+;:?# \\", "{name}", "\x07", "\u202e"])
def test_every_name_has_an_address(served: Served, name: str) -> None:
    path = f"/api/queues/%2F/{quote(name, safe='')}"
    assert served.api("PUT", path, {}).status == 201
    assert served.get(path)["name"] == name
    assert served.api("DELETE", path).status == 204


def test_a_slash_at_the_end_means_nothing(served: Served) -> None:
    assert served.get("/api/exchanges/") == served.get("/api/exchanges")
    assert served.get("/api/queues/%2F/orders/")["name"] == "orders"


def test_a_login_that_cannot_be_read_is_a_bad_request(served: Served) -> None:
    for header in ("Digest abc", "Basic %%%", "Basic Z3Vlc3Q="):
        answer = served.api("GET", "/api/overview", login=None, Authorization=header)
        assert (answer.status, answer.body) == (400, "")


STOPPED = {
    "error": "not_running",
    "reason": "the application is stopped: start_app starts it again",
}


def test_a_stopped_application_is_a_503_over_http(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        served.stop_application()
        for method, path in (
            ("GET", "/api/overview"),
            ("GET", "/api/health/checks/alarms"),
            ("PUT", "/api/queues/%2F/q"),
            ("POST", "/api/burrowmq/shutdown"),
            ("GET", "/api/burrowmq/process"),
        ):
            answer = served.api(method, path)
            assert (answer.status, answer.body) == (503, STOPPED), path


def test_a_control_socket_that_another_node_has_made_stays(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with serving(tmp_path):
        path.unlink()
        path.write_text("of another node")
    assert path.read_text() == "of another node"


def test_a_control_socket_that_goes_before_it_is_served_ends_no_start(tmp_path: Path) -> None:
    api, metrics = (Endpoint("127.0.0.1", port) for port in free_ports(2))
    with NodeBench(
        tmp_path,
        management=ManagementConfig(listeners=(api,)),
        prometheus=PrometheusConfig(listeners=(metrics,)),
    ) as bench:

        async def start_and_stop() -> str:
            bound = bind(bench.host.process)
            os.unlink(settings.control_socket(bench.host.process.config))
            management = await start(bench.host, bound)
            await management.stop()
            return "stopped"

        assert bench.loop.run_until_complete(start_and_stop()) == "stopped"


def test_a_sample_of_another_application_is_forgotten(tmp_path: Path) -> None:
    with NodeBench(tmp_path) as bench:
        management = Management(bench.host)

        async def samples() -> list[float]:
            found = []
            for now_s in (0.0, 5.0):
                bench.node.metrics.connections_opened += 10
                await management.sample(bench.node, now_s)
            found.append(management.rates.rate("node", "connection_created"))
            await management.sample_what_runs()
            found.append(management.rates.rate("node", "connection_created"))
            return found

        assert bench.loop.run_until_complete(samples()) == [2.0, 0.0]


def test_a_stopped_application_is_not_kept_for_the_next_sample(tmp_path: Path) -> None:
    with NodeBench(tmp_path) as bench:
        management = Management(bench.host)
        bench.loop.run_until_complete(management.sample_what_runs())
        sampled = weakref.ref(bench.node)
        bench.loop.run_until_complete(bench.host.stop_application())
        bench.loop.run_until_complete(bench.loop.shutdown_default_executor())
        gc.collect()
        assert sampled() is None
        bench.loop.run_until_complete(management.sample_what_runs())
        assert management.rates.rate("node", "connection_created") == 0.0


@pytest.mark.parametrize(
    "text", [b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nA: \x00\r\n\r\n"]
)
def test_what_is_no_request_is_answered_and_not_logged(
    served: Served, text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as peer:
        peer.sendall(text)
        answer = peer.recv(65536)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 ")), answer
    assert b"Server: BurrowMQ\r\n" in answer
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


def test_a_body_may_have_as_many_bytes_as_is_said(tmp_path: Path) -> None:
    """management.http.max_body_size, with RabbitMQ's words; burrowctl reads files of this machine, and may."""
    with serving(tmp_path / "data", management=ManagementConfig(body_max_bytes=60)) as served:
        body = json.dumps({"password": "x", "tags": ""})
        fits, larger = body.ljust(60), body.ljust(61)
        assert served.api("PUT", "/api/users/a", fits).status == 201
        answer = served.api("PUT", "/api/users/b", larger)
        assert answer.status == 400
        assert answer.body == {
            "error": "bad_request",
            "reason": "Exceeded HTTP request body size limit",
        }
        assert "b" not in served.node.auth.users
        assert served.ctl("add_user", "c", "y" * 100).code == 0


def test_what_is_deleted_while_a_body_is_on_its_way_is_not_found(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked up once all has come, and not before."""
    found = threading.Event()
    vhost = Call.vhost

    def noted(call: Call) -> str:
        name = vhost(call)
        if name == "mine":
            found.set()
        return name

    monkeypatch.setattr(Call, "vhost", noted)
    login = base64.b64encode(b"guest:guest").decode()
    for path in ("queues/mine/q", "exchanges/mine/e"):
        assert served.api("PUT", "/api/vhosts/mine").status == 201
        found.clear()
        asked = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
        asked.putrequest("PUT", f"/api/{path}")
        asked.putheader("Authorization", f"Basic {login}")
        asked.putheader("Content-Length", "2")
        asked.endheaders()
        found.wait(0.3)
        assert served.api("DELETE", "/api/vhosts/mine").status == 204
        asked.send(b"{}")
        assert asked.getresponse().status == 404
        asked.close()
