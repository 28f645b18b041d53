"""/api/vhosts."""

from __future__ import annotations

from pathlib import Path

from tests.support.served import Served, serving


def test_add_list_delete(served: Served) -> None:
    assert served.api("PUT", "/api/vhosts/v%2F1").status == 201
    assert served.api("PUT", "/api/vhosts/v%2F1").status == 204
    assert [row["name"] for row in served.get("/api/vhosts")] == ["/", "v/1"]
    # Its creator may use it.
    assert served.get("/api/vhosts/v%2F1/permissions")[0]["user"] == "guest"
    assert served.api("PUT", "/api/queues/v%2F1/q", {}).status == 201
    assert served.api("DELETE", "/api/vhosts/v%2F1").status == 204
    assert served.api("DELETE", "/api/vhosts/v%2F1").status == 404
    assert not [key for _, key, _ in served.bench.store.load() if "v/1" in key]


def test_tracing_is_a_flag_of_the_vhost(served: Served) -> None:
    assert served.get("/api/vhosts/%2F")["tracing"] is False
    assert served.api("PUT", "/api/vhosts/%2F", {"tracing": True}).status == 204
    assert served.get("/api/vhosts/%2F")["tracing"] is True
    assert served.api("PUT", "/api/vhosts/%2F", {}).status == 204
    assert served.node.vhosts["/"].tracer is not None
    assert served.api("PUT", "/api/vhosts/%2F", {"tracing": "false"}).status == 204
    assert served.node.vhosts["/"].tracer is None
    assert served.api("PUT", "/api/vhosts/new", {"tracing": "true"}).status == 201
    assert served.get("/api/vhosts/new")["tracing"] is True
    for value in ("yes", 1, None):
        refused = served.api("PUT", "/api/vhosts/none", {"tracing": value})
        assert (refused.status, refused.body["reason"]) == (400, ["not_boolean", value])
    assert served.api("GET", "/api/vhosts/none").status == 404, "refused before it was made"


def test_the_default_queue_type_is_part_of_the_metadata(served: Served) -> None:
    body = {"default_queue_type": "classic", "tags": "a"}
    assert served.api("PUT", "/api/vhosts/new", body).status == 201
    row = served.get("/api/vhosts/new")
    assert row["default_queue_type"] == row["metadata"]["default_queue_type"] == "classic"
    assert served.api("PUT", "/api/vhosts/new", {"description": "d"}).status == 204
    row = served.get("/api/vhosts/new")
    assert (row["default_queue_type"], row["tags"], row["description"]) == ("undefined", [], "d")
    assert served.api("PUT", "/api/vhosts/new", body).status == 204
    assert served.get("/api/vhosts/%2F")["default_queue_type"] == "undefined"
    assert "default_queue_type" not in served.get("/api/vhosts/%2F")["metadata"]
    served.api("PUT", "/api/queues/new/q", {})
    assert served.get("/api/queues/new/q")["arguments"] == {"x-queue-type": "classic"}


def test_a_default_queue_type_that_is_not_built_is_refused(served: Served) -> None:
    for name in ("new", "%2F"):
        answer = served.api("PUT", f"/api/vhosts/{name}", {"default_queue_type": "quorum"})
        assert (answer.status, answer.body["error"]) == (400, "bad_request")
        assert answer.body["reason"] == "Unsupported default queue type 'quorum'"
    assert "new" not in served.node.vhosts


def test_what_a_put_does_not_name_is_emptied_but_tracing_goes_on(served: Served) -> None:
    said = {"description": "d", "tags": "a", "default_queue_type": "classic", "tracing": True}
    served.api("PUT", "/api/vhosts/new", said)
    assert served.api("PUT", "/api/vhosts/new").status == 204
    row = served.get("/api/vhosts/new")
    assert row["metadata"] == {"description": "", "tags": []}
    assert (row["default_queue_type"], row["tracing"]) == ("undefined", True)


def test_burrowctl_changes_only_what_it_names(served: Served) -> None:
    said = {"description": "d", "tags": "a", "default_queue_type": "classic"}
    served.api("PUT", "/api/vhosts/new", said)
    assert served.ctl("update_vhost_metadata", "new", "--description", "other").code == 0
    assert served.ctl("trace_on", "-p", "new").code == 0
    assert served.ctl("set_vhost_tags", "new", "b", "c").code == 0
    row = served.get("/api/vhosts/new")
    assert (row["description"], row["tags"], row["tracing"]) == ("other", ["b", "c"], True)
    assert row["default_queue_type"] == "classic"
    assert served.api("POST", "/api/burrowmq/vhosts/nosuch", {"tags": "a"}).status == 404


def test_sums(served: Served) -> None:
    assert served.get("/api/vhosts/%2F")["messages"] == 7


def test_a_vhost_of_this_node_is_started_already(served: Served) -> None:
    name = served.node.name
    assert served.api("POST", f"/api/vhosts/%2F/start/{name}").status == 204
    assert served.api("POST", f"/api/vhosts/nope/start/{name}").status == 404
    assert served.api("POST", "/api/vhosts/%2F/start/other").status == 404


def test_a_virtual_host_shows_what_is_counted_in_it(served: Served) -> None:
    row = served.get("/api/vhosts/%2F?msg_rates_age=5&msg_rates_incr=5")
    assert row["message_stats"]["publish"] == 7
    assert len(row["message_stats"]["publish_details"]["samples"]) == 2
    assert len(row["messages_details"]["samples"]) == 2
    served.api("PUT", "/api/vhosts/quiet", {})
    assert "message_stats" not in served.get("/api/vhosts/quiet")


def test_a_protected_one_cannot_be_deleted(served: Served) -> None:
    assert served.api("PUT", "/api/vhosts/kept").status == 201
    path = "/api/vhosts/kept/deletion/protection"
    assert served.api("POST", path).status == 204
    refused = served.api("DELETE", "/api/vhosts/kept")
    assert refused.status == 412
    assert refused.body["reason"] == (
        "Refusing to delete virtual host 'kept' because it is protected from deletion"
    )
    assert served.get("/api/vhosts/kept")["metadata"]["protected_from_deletion"] is True
    exported = next(
        row for row in served.get("/api/definitions")["vhosts"] if row["name"] == "kept"
    )
    assert exported["metadata"]["protected_from_deletion"] is True
    assert served.api("DELETE", path).status == 204
    assert served.api("POST", "/api/definitions", {"vhosts": [exported]}).status == 204
    assert served.api("DELETE", "/api/vhosts/kept").status == 412
    assert served.api("DELETE", path).status == 204
    assert served.api("DELETE", "/api/vhosts/kept").status == 204


def test_there_may_be_so_many(tmp_path: Path) -> None:
    """vhost_max, with RabbitMQ's text; what there is may be put again."""
    with serving(tmp_path / "data", vhost_max=2) as served:
        assert served.api("PUT", "/api/vhosts/one").status == 201
        answer = served.api("PUT", "/api/vhosts/two")
        text = "cannot create vhost 'two': vhost limit of 2 is reached"
        assert (answer.status, answer.body["reason"]) == (400, text)
        assert served.api("PUT", "/api/vhosts/one").status == 204
        added = served.ctl("add_vhost", "two")
        assert (added.code != 0, text in added.err) == (True, True)
        answer = served.api("POST", "/api/definitions", {"vhosts": [{"name": "two"}]})
        assert (answer.status, text in answer.body["reason"]) == (400, True)
        assert served.api("DELETE", "/api/vhosts/one").status == 204
        assert served.api("PUT", "/api/vhosts/two").status == 201
