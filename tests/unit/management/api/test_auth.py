"""Logins since the start; hashes."""

from __future__ import annotations

import base64

import pytest

from burrowmq.broker.rules.passwords import SHA256, fits
from tests.support.served import Served


def test_attempts(served: Served) -> None:
    name = served.node.name
    (before,) = served.get(f"/api/auth/attempts/{name}")
    assert (before["auth_attempts"], before["auth_attempts_failed"]) == (1, 0), "the one connection"
    with pytest.raises(AssertionError):
        served.bench.connect(user="nobody")
    (row,) = served.get(f"/api/auth/attempts/{name}")
    assert (row["auth_attempts"], row["auth_attempts_failed"]) == (2, 1)
    assert served.get(f"/api/auth/attempts/{name}/source") == []
    assert served.api("GET", "/api/auth/attempts/other").status == 404


def test_a_hash_fits_its_password(served: Served) -> None:
    for answer in (
        served.get("/api/auth/hash_password/s%C3%A9sam"),
        served.api("POST", "/api/burrowmq/hash-password", {"password": "s\xe9sam"}).body,
    ):
        assert len(base64.b64decode(answer["ok"])) == 36
        assert fits(answer["ok"], SHA256, "s\xe9sam")


def test_logins_are_counted_anew(served: Served) -> None:
    path = "/api/auth/attempts/rabbit%40test"
    assert served.get(path)[0]["auth_attempts"] == 1
    for each in (path, f"{path}/source"):
        assert served.api("DELETE", each).status == 204
    assert served.get(path)[0]["auth_attempts"] == 0
    assert served.api("DELETE", "/api/auth/attempts/other").status == 404
    assert served.ctl("reset_node_auth_attempt_metrics").out == (
        "Reset auth attempt metrics on node rabbit@test ...\n"
    )
