"""/api/burrowmq/*."""

from __future__ import annotations

import os
from pathlib import Path

from burrowmq.config.schema import FirstUserConfig
from burrowmq.management.api.burrowmq import _settings
from tests.support.served import Served, serving

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


def test_the_environment_keeps_secrets(served: Served) -> None:
    assert _settings(FirstUserConfig()) == {
        "name": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*", "tags": ["administrator"],
    }  # fmt: skip
    assert served.get("/api/burrowmq/environment")["burrowmq"]["node_name"] == "rabbit@test"


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
