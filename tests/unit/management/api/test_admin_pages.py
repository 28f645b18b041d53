"""/api/burrowmq/pages/users and vhosts: one answer for an administrator's page."""

from __future__ import annotations

import pytest

from tests.support.served import Served

PAGES = "/api/burrowmq/pages"


def test_users_and_where_they_may_enter(served: Served) -> None:
    served.api("PUT", "/api/users/app", {"password_hash": "", "tags": "monitoring"})
    page = served.get(f"{PAGES}/users?page=1&page_size=10&sort=name")
    rows = {row["name"]: row for row in page["items"]}
    assert (page["total_count"], rows["app"]["has_password"], rows["app"]["vhosts"]) == (
        2,
        False,
        0,
    )
    assert (rows["guest"]["vhosts"], rows["guest"]["connections"]) == (
        1,
        len(served.get("/api/connections")),
    )
    assert "password_hash" not in rows["guest"]


def test_one_user_and_its_rights(served: Served) -> None:
    served.api("PUT", "/api/vhosts/other", {})
    topic = {"exchange": "amq.topic", "write": "^a", "read": ""}
    served.api("PUT", "/api/topic-permissions/%2F/guest", topic)
    page = served.get(f"{PAGES}/users/guest")
    assert page["vhosts"] == ["/", "other"]
    assert [row["vhost"] for row in page["permissions"]] == ["/", "other"]
    assert page["topic_permissions"][0]["exchange"] == "amq.topic"
    assert page["user"]["has_password"] is True
    assert "hash" not in " ".join(page["user"])
    assert served.api("GET", f"{PAGES}/users/nobody").status == 404


def test_permissions_are_found_by_user_and_by_virtual_host(served: Served) -> None:
    served.api("PUT", "/api/vhosts/other", {})
    topic = {"exchange": "amq.topic", "write": "^a", "read": ""}
    served.api("PUT", "/api/topic-permissions/other/guest", topic)
    page = served.get(f"{PAGES}/permissions?page=1&name=other")
    assert [(row["user"], row["vhost"], row["topics"]) for row in page["items"]] == [
        ("guest", "other", 1)
    ]
    assert served.get(f"{PAGES}/permissions?page=1&name=guest")["filtered_count"] == 2


def test_virtual_hosts_with_limits_and_counts(served: Served) -> None:
    served.api("PUT", "/api/vhost-limits/%2F/max-queues", {"value": 50})
    (row,) = served.get(f"{PAGES}/vhosts")
    assert (row["queues"], row["users"], row["limits"]) == (2, 1, {"max-queues": 50})
    page = served.get(f"{PAGES}/vhosts/%2F")
    assert (page["queues"], page["users"]) == (2, ["guest"])
    assert page["vhost"]["limits"] == {"max-queues": 50}
    assert served.api("GET", f"{PAGES}/vhosts/nosuch").status == 404


@pytest.mark.parametrize("page", ["users", "users/guest", "vhosts", "vhosts/%2F", "permissions"])
def test_only_administrators_look(served: Served, page: str) -> None:
    served.api("PUT", "/api/users/m", {"password": "x", "tags": "monitoring,policymaker"})
    assert served.api("GET", f"{PAGES}/{page}", login="m:x").status == 401
