"""/api/burrowmq/scrub: how far it is, a pass on demand, what it finds and who is told."""

from __future__ import annotations

from burrowmq.storage.names import QueueNames
from tests.support.bench.world import publish
from tests.support.served import Served

PATH = "/api/burrowmq/scrub"
DAMAGE = "/api/health/checks/damage"


def spoil(served: Served, name: str, ending: str, place: int) -> None:
    """Change one octet of a queue's file, counted from its end; or from its beginning."""
    disk = served.bench.disk
    ours = QueueNames("/", name, 0).directory
    (path,) = [each for each in disk.paths() if ours in each and each.endswith(ending)]
    disk.damage(path, place if place >= 0 else disk.file_size(path) + place, b"?")


def test_a_pass_is_begun_and_says_what_it_found(served_files: Served) -> None:
    served = served_files
    before = served.get(PATH)
    assert (before["running"], before["last"], before["last_complete"]) == (False, None, None)
    assert served.get(DAMAGE) == {"status": "ok"}
    served.bench.queue("t", arguments={"x-queue-mode": "lazy"})
    publish(served.bench.clients[0], "t", 3, size=1000)
    spoil(served, "t", ".qs", -10)
    spoil(served, "t", ".qs", 20)
    answer = served.api("POST", PATH)
    assert answer.status == 202
    found = served.get(PATH)
    assert (found["last"]["found"], found["last"]["unread"], found["quarantined"]) == (1, 0, 1)
    assert found["last"] == found["last_complete"]
    assert [each["what"] for each in found["damaged_files"]] == ["damaged header"]
    assert found["last"]["bytes"] > 2000
    failed = served.api("GET", DAMAGE)
    assert (failed.status, failed.body["quarantined"], len(failed.body["files"])) == (503, 1, 1)
    assert failed.body["reason"].startswith(
        "1 damaged messages are in quarantine; 1 files are damaged"
    )
    assert served.get("/api/health/checks/alarms") == {"status": "ok"}
    (row,) = served.get("/api/burrowmq/pages/overview")["alarms"]
    assert (row["resource"], row["value"]) == ("damage", 1)
    assert served.get("/api/burrowmq/pages/node")["scrub"]["last"]["found"] == 1
    (kept,) = served.get("/api/burrowmq/quarantine")
    assert served.api("DELETE", f"/api/burrowmq/quarantine/{kept['name']}").status == 204
    assert served.api("GET", DAMAGE).body["quarantined"] == 0


def test_who_may(served: Served) -> None:
    served.api("PUT", "/api/users/bob", {"password": "x", "tags": ["monitoring"]})
    assert served.api("GET", PATH, login="bob:x").status == 200
    assert served.api("POST", PATH, login="bob:x").status == 401


def test_a_failed_store_is_not_read(served: Served) -> None:
    served.node.engine.failure = "gone"
    answer = served.api("POST", PATH)
    assert (answer.status, answer.body["reason"]) == (400, "the store has failed")
