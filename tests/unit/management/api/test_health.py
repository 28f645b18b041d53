"""Health checks."""

from __future__ import annotations

import pytest

from tests.support.served import Served

CHECKS = "/api/health/checks"


PATHS = [
    "alarms", "local-alarms", "virtual-hosts", "port-listener/{port}", "protocol-listener/AMQP",
    "protocol-listener/amqp091", "certificate-expiration/1/weeks", "node-is-quorum-critical",
    "node-is-mirror-sync-critical",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_well(served: Served, path: str) -> None:
    assert served.get(f"{CHECKS}/{path.format(port=served.bench.port)}")["status"] == "ok"


def test_alarm_fails_the_checks(served: Served) -> None:
    served.bench.run_short_of_memory()
    answer = served.api("GET", f"{CHECKS}/alarms")
    (alarm,) = answer.body["alarms"]
    assert (answer.status, alarm["node"], alarm["resource"]) == (503, "rabbit@test", "memory")
    assert alarm["cause"].endswith("the watermark is 400 MB")
    assert served.api("GET", f"{CHECKS}/local-alarms").status == 503
    assert served.api("GET", "/api/healthchecks/node").status == 503


def test_missing_listener(served: Served) -> None:
    answer = served.api("GET", f"{CHECKS}/port-listener/1")
    assert (answer.status, answer.body["missing"]) == (503, 1)
    assert served.api("GET", f"{CHECKS}/port-listener/x").status == 400
    assert served.api("GET", f"{CHECKS}/protocol-listener/mqtt").status == 503
    assert served.api("GET", f"{CHECKS}/certificate-expiration/1/moons").status == 400


def test_every_check_fails_once_the_store_has_failed(served: Served) -> None:
    reason = "the store has failed: disk on fire"
    served.bench.perform(lambda: served.node.engine.store_failed("disk on fire"))
    paths = [f"{CHECKS}/{path.format(port=served.port)}" for path in PATHS]
    for path in (*paths, "/api/healthchecks/node", "/api/aliveness-test/%2F"):
        answer = served.api("GET", path)
        assert (answer.status, answer.body) == (503, {"status": "failed", "reason": reason}), path
    served.bench.clients[0].lose()
    served.stop_application()  # on the way to the end of its process
    assert {served.api("GET", path).status for path in paths} == {503}


def test_aliveness_is_tried_with_the_callers_own_rights(served: Served) -> None:
    """Else who may only watch would make a queue in any virtual host, and publish to it."""
    served.api("PUT", "/api/users/watch", {"password": "x", "tags": "monitoring"})
    path = "/api/aliveness-test/%2F"
    rights = {
        "configure": "^aliveness-test$",
        "write": "^amq\\.default$",
        "read": "^aliveness-test$",
    }
    for missing in rights:
        served.api("PUT", "/api/permissions/%2F/watch", rights | {missing: ""})
        refused = served.api("GET", path, login="watch:x")
        assert refused.status == 401, missing
        assert refused.body["reason"].startswith(f"ACCESS_REFUSED - {missing} access to ")
    assert "aliveness-test" not in served.node.vhosts["/"].queues
    served.api("PUT", "/api/permissions/%2F/watch", rights)
    assert served.api("GET", path, login="watch:x").body == {"status": "ok"}


def test_numbers_below_zero_are_numbers(served: Served) -> None:
    answer = served.api("GET", f"{CHECKS}/port-listener/-5")
    assert (answer.status, answer.body["missing"]) == (503, -5)
    assert served.api("GET", f"{CHECKS}/certificate-expiration/-1/days").status == 200
    assert served.api("GET", f"{CHECKS}/certificate-expiration/-9000/years").status == 400
    assert served.api("GET", f"{CHECKS}/port-listener/--5").status == 400
