"""/api/burrowmq/import: what is refused, who may; the moves themselves are in tests/integration/test_import_from.py.

Covers: management/commands/imports.py
Covers: broker/imports/job.py
"""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import Any

import pytest

from tests.support.ports import free_port
from tests.support.served import Served

PATH = "/api/burrowmq/import"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "uri is missing"),
        ({"uri": "amqp://h"}, "queues must be a list"),
        ({"uri": "amqp://h", "queues": [{"vhost": "/"}]}, "queues must be a list of objects"),
        ({"uri": "amqp://h", "queues": [], "rate": -1}, "rate must be a number"),
        ({"uri": "amqp://h", "queues": [], "rate": float("nan")}, "not_json"),
        ({"uri": "amqp://h", "queues": [], "rate": 10**400}, "rate must be a number"),
        ({"uri": "amqp://h", "queues": [], "rate": True}, "rate must be a number"),
        ({"uri": "http://h", "queues": []}, "unexpected_uri_scheme"),
        ({"uri": "amqp://", "queues": []}, "names no host"),
    ],
)
def test_what_makes_no_sense_is_refused(served: Served, body: dict[str, Any], reason: str) -> None:
    answer = served.api("POST", PATH, body)
    assert answer.status == 400
    assert reason in answer.body["reason"]
    assert served.api("GET", PATH).status == 404


def test_one_at_a_time_and_it_waits_for_a_broker_that_says_nothing(served: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"amqp://guest:secret@127.0.0.1:{silent.getsockname()[1]}"
        body = {"uri": uri, "queues": [{"vhost": "/", "name": "lazy"}] * 2}
        answer = served.api("POST", PATH, body)
        assert answer.status == 202
        assert "secret" not in str(answer.body)
        assert served.api("POST", PATH, body).status == 409
        (row,) = served.get(PATH)["queues"]
        assert (row["there"], row["moved"], row["left"]) == (0, 0, 0)
        stopped = served.api("DELETE", PATH)
        assert (stopped.status, stopped.body["state"]) == (200, "stopped")
        assert served.get(PATH)["state"] == "stopped"


def test_a_broker_that_was_never_there_is_not_waited_for(served: Served) -> None:
    uri = f"amqp://guest:secret@127.0.0.1:{free_port()}"
    body = {"uri": uri, "queues": [{"vhost": "/", "name": "lazy"}]}
    assert served.api("POST", PATH, body).status == 202
    found = served.get(PATH)
    while found["state"] not in ("failed", "stopped"):
        found = served.get(PATH)
    assert (found["state"], found["queues"][0]["state"]) == ("failed", "failed")
    where = uri.replace("guest:secret@", "")
    assert found["queues"][0]["reason"] == f"{where}: Connection refused"


@pytest.mark.parametrize("host", ["h%00st", "h" * 300, "x%2F..%2F..", "%E2%82%AC"])
def test_any_host_has_its_directory(served: Served, host: str) -> None:
    body = {"uri": f"amqp://{host}", "queues": [{"vhost": "/", "name": "lazy"}]}
    answer = served.api("POST", PATH, body)
    assert answer.status == 202, answer
    assert served.api("DELETE", PATH).body["state"] in ("stopped", "failed")  # by who is first
    (directory,) = (served.data_dir / "import").iterdir()
    assert directory.name.startswith("host-")


def test_one_that_cannot_begin_does_not_count_as_running(served: Served) -> None:
    (served.data_dir / "import").write_text("in the way")
    body = {"uri": "amqp://h", "queues": []}
    for _ in range(2):
        answer = served.api("POST", PATH, body)
        assert (answer.status, "no import here" in answer.body["reason"]) == (500, True)
    assert served.api("GET", PATH).status == 404


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = (
        "import sys; import burrowmq.broker.__main__; import burrowmq.management.server;"
        " print([name for name in sys.modules if '.imports' in name and 'management' not in name"
        " or '.link' in name or 'protocol.client' in name or name.startswith('burrowmq.cluster')"
        " or '.replicated' in name"
        " or name.endswith(('.consistent_hash', '.modulus_hash', '.chance', '.recent_history', '.phash2'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
