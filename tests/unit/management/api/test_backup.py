"""/api/burrowmq/backup."""

from __future__ import annotations

from tests.support.served import Served

PATH = "/api/burrowmq/backup"


def test_a_backup_is_begun_and_looked_at(served: Served) -> None:
    assert served.api("GET", PATH).status == 404
    answer = served.api("POST", PATH, {"directory": "/backups/one"})
    assert (answer.status, answer.body["state"]) == (202, "waiting")
    job = served.node.engine.backup
    assert job is not None
    assert (job.directory, job.labels["product"]) == ("/backups/one", "BurrowMQ")
    assert job.labels["node"] == "rabbit@test"
    assert str(job.labels["made_at"]).endswith("+00:00")
    document = served.get(PATH)
    assert (document["state"], document["messages"], document["queues"]) == ("done", 3, 1)
    assert served.bench.disk.exists("/backups/one")
    job.state, job.bytes_done, job.cut_ms = "running", 5, 1.23456
    document = served.get(PATH)
    assert (document["state"], document["bytes_done"], document["cut_ms"]) == ("running", 5, 1.235)


def test_refusals_have_their_reason(served: Served) -> None:
    served.bench.disk.mkdir("/full")
    served.bench.disk.create("/full/one")
    assert served.api("POST", PATH, {"directory": "/other"}).status == 202
    job = served.node.engine.backup
    assert job is not None
    job.state = "running"
    for directory, reason in (
        ("/full", "/full is not empty"),
        ("/busy", "a backup to /other is being made"),
        ("/a\0b", "directory is missing"),
        (7, "directory is missing"),
    ):
        answer = served.api("POST", PATH, {"directory": directory})
        assert (answer.status, answer.body["reason"]) == (400, reason)


def test_only_administrators_may(served: Served) -> None:
    served.api("PUT", "/api/users/bob", {"password": "x", "tags": ["monitoring"]})
    for method in ("GET", "POST"):
        answer = served.api(method, PATH, {"directory": "/x"}, login="bob:x")
        assert (answer.status, answer.body["reason"]) == (401, "Not administrator user")
    assert served.node.engine.backup is None
