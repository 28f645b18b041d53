"""Columns, sorting and paging."""

from __future__ import annotations

import pytest

from burrowmq.management.answers.listing import project
from tests.support.served import Served


def test_project_leaves_out_what_is_not_there() -> None:
    row = {"a": {"b": 1, "c": 2}, "d": 3}
    assert project(row, "a.b,d,e,d.x") == {"a": {"b": 1}, "d": 3}


def test_sort(served: Served) -> None:
    names = [row["name"] for row in served.get("/api/queues?sort=messages&columns=name,messages")]
    assert names == ["lazy", "orders"]
    names = [
        row["name"]
        for row in served.get("/api/queues?sort=messages&sort_reverse=true&columns=name,messages")
    ]
    assert names == ["orders", "lazy"]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("page=1&page_size=1000", "invalid_pagination_parameters"),
        ("page=0", "invalid_pagination_parameters"),
        ("page=x", "bad_request"),
        ("page=-1", "invalid_pagination_parameters"),
        ("page=9", "page_out_of_range"),
        ("page=1&name=[&use_regex=true", "bad_request"),
    ],
)
def test_bad_pages(served: Served, query: str, error: str) -> None:
    answer = served.api("GET", f"/api/queues?{query}")
    assert (answer.status, answer.body["error"]) == (400, error)


def test_name_filter(served: Served) -> None:
    assert served.get("/api/queues?page=1&name=LAZ")["filtered_count"] == 1
    assert served.get("/api/queues?page=1&name=^o&use_regex=true")["items"][0]["name"] == "orders"
