"""Statistics that begin anew, the effective configuration, memory in hundredths."""

from __future__ import annotations

from tests.support.served import Served

NODE = "/api/nodes/rabbit%40test"


def test_a_reset_forgets_rates_and_keeps_what_was_counted(served: Served) -> None:
    before = served.get("/api/overview")["message_stats"]["publish"]
    assert served.api("DELETE", "/api/reset").status == 204
    assert served.api("DELETE", "/api/reset/rabbit%40test").status == 204
    assert served.api("DELETE", "/api/reset/other").status == 404
    stats = served.get("/api/overview")["message_stats"]
    assert (stats["publish"], stats["publish_details"]["rate"]) == (before, 0.0)
    served.ctl("-q", "add_user", "ann", "ann")
    served.ctl("-q", "set_user_tags", "ann", "monitoring")
    assert served.api("DELETE", "/api/reset", login="ann:ann").status == 401


def test_the_effective_configuration_is_the_environment(served: Served) -> None:
    found = served.get("/api/config/effective")
    assert found == served.get("/api/burrowmq/environment")
    assert "password" not in str(found)


def test_memory_in_hundredths(served: Served) -> None:
    parts = served.get(f"{NODE}/memory/relative")["memory"]
    assert parts.pop("total") == 100
    assert set(parts) == set(served.get(f"{NODE}/memory")["memory"]) - {"strategy", "total"}
    assert 100 <= sum(parts.values()) <= 100 + len(parts)
    assert served.api("GET", "/api/nodes/other/memory/relative").status == 404


def test_there_are_no_tables_of_erlangs(served: Served) -> None:
    for path in ("ets", "ets/relative", "ets/management", "ets/management/relative"):
        assert served.get(f"{NODE}/memory/{path}") == {"ets_tables_memory": "no_tables"}
