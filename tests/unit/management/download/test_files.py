"""The script is handed out to anybody, and old addresses lead on."""

from __future__ import annotations

from tests.support.served import Served


def test_the_script_is_handed_out(served: Served) -> None:
    answer = served.api("GET", "/cli/rabbitmqadmin", login=None)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.body.startswith("#!/usr/bin/env python3\n")


def test_short_addresses_lead_on(served: Served) -> None:
    for path, target in (("/cli", "/cli/rabbitmqadmin"), ("/cli/", "/cli/rabbitmqadmin"),
                         ("/api", "/api/index.html"), ("/api/", "/api/index.html")):  # fmt: skip
        answer = served.api("GET", path, login=None)
        assert (answer.status, answer.headers["location"]) == (301, target)
