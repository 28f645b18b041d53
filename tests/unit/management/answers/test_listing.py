"""Columns, sorting and paging."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest
from aiohttp.test_utils import make_mocked_request

from burrowmq.management.answers.access import TRUSTED
from burrowmq.management.answers.listing import Listed, project, reply_listed
from burrowmq.management.answers.rates import Rates
from burrowmq.management.answers.reply import Call
from tests.support.served import Served


def test_project_leaves_out_what_is_not_there() -> None:
    row = {"a": {"b": 1, "c": 2}, "d": 3}
    assert project(row, "a.b,d,e,d.x") == {"a": {"b": 1}, "d": 3}
    assert project(row, "d.x,e.f") == {"d": 3}


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
        ("page=%C2%B2", "bad_request"),
        ("page=--1", "bad_request"),
        (f"page={'1' * 5000}", "bad_request"),
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
    assert served.get("/api/queues?page=1&name=^LA&use_regex=true")["filtered_count"] == 1


def test_a_page_of_nothing_is_the_first_of_none(served: Served) -> None:
    page = served.get("/api/queues?page=1&name=nosuch")
    assert (page["page"], page["page_count"], page["items"]) == (1, 0, [])
    assert served.api("GET", "/api/queues?page=2&name=nosuch").status == 400


@pytest.mark.parametrize(
    "path",
    [
        "bindings",
        "users",
        "consumers",
        "parameters",
        "vhosts/%2F/connections",
        "vhosts/%2F/channels",
    ],
)
def test_lists_that_rabbitmq_does_not_page_are_whole(served: Served, path: str) -> None:
    whole = served.get(f"/api/{path}?columns=name,destination")
    for page in ("1", "99", "x"):
        asked = f"page={page}&page_size=1&name=nosuch&columns=name,destination"
        assert served.get(f"/api/{path}?{asked}") == whole


def test_lists_that_rabbitmq_pages(served: Served) -> None:
    for path in ("queues/%2F", "exchanges/%2F", "vhosts", "channels", "connections/username/guest"):
        assert served.get(f"/api/{path}?page=1&page_size=1")["page"] == 1


def test_a_list_in_its_own_order_may_be_turned_round(served: Served) -> None:
    for path in ("queues", "exchanges", "queues?page=1"):
        separator = "&" if "?" in path else "?"
        found = served.get(f"/api/{path}{separator}columns=name&sort_reverse=true")
        rows = found["items"] if "page" in path else found
        names = [row["name"] for row in rows]
        assert names == sorted(names, reverse=True)
        assert len(names) > 1


def test_columns_reach_into_lists() -> None:
    row = {"a": [{"b": 1, "c": 2}, {"c": 3}], "d": {"e": [1]}}
    assert project(row, "a.b,a.c,d.e.f") == {"a": [{"b": 1, "c": 2}, {"c": 3}], "d": {"e": []}}
    assert project(row, "a.b") == {"a": [{"b": 1}, {}]}
    for columns in ("d.e,d", "d,d.e"):
        assert project(row, columns) == {"d": {"e": [1]}}
    assert row == {"a": [{"b": 1, "c": 2}, {"c": 3}], "d": {"e": [1]}}


def test_columns_of_one_thing(served: Served) -> None:
    for path, name in (("users/guest", "guest"), ("permissions/%2F/guest", "guest")):
        column = "user" if "permissions" in path else "name"
        assert served.get(f"/api/{path}?columns={column}") == {column: name}
    assert served.get("/api/exchanges/%2F/amq.topic?columns=name,type") == {
        "name": "amq.topic",
        "type": "topic",
    }


class Numbers:
    """A list of numbers that counts what it is asked for."""

    def __init__(self, count: int) -> None:
        self.rows = self.keys = 0
        self.listed = Listed(range(count), self._row, str, lambda _: self._key)

    def _row(self, number: int) -> dict[str, Any]:
        self.rows += 1
        return {"name": number}

    def _key(self, number: int) -> int:
        self.keys += 1
        return number % 10

    def page(self, query: str) -> list[int]:
        """The items that a query gets."""
        request = make_mocked_request("GET", f"/x?{query}")
        call = Call(request, cast("Any", None), TRUSTED, Rates())
        response = cast("Any", asyncio.run(reply_listed(call, self.listed)))
        return [row["name"] for row in json.loads(response.body)["items"]]


def test_a_page_costs_the_rows_that_are_shown() -> None:
    numbers = Numbers(10_000)
    assert numbers.page("page=2&page_size=3&sort=digit") == [30, 40, 50]
    assert (numbers.rows, numbers.keys) == (3, 10_000)
    assert numbers.page("page=1&page_size=2&sort=digit&name=77") == [770, 1770]
    assert numbers.rows == 5


@pytest.mark.parametrize("is_reversed", ["true", "false"])
@pytest.mark.parametrize("page", [1, 7, 50])
def test_pages_are_cut_out_of_the_whole_order(page: int, is_reversed: str) -> None:
    numbers = Numbers(10_000)
    reverse = is_reversed == "true"
    whole = sorted(range(10_000), key=lambda number: number % 10, reverse=reverse)
    found = numbers.page(f"page={page}&page_size=200&sort=digit&sort_reverse={is_reversed}")
    assert found == whole[(page - 1) * 200 : page * 200]


def test_queues_are_sorted_by_what_their_rows_would_say(served: Served) -> None:
    served.api("PUT", "/api/queues/%2F/empty", {})
    rows = served.get("/api/queues?disk_writes")
    columns = [name for name, value in rows[0].items() if isinstance(value, int | str)]
    for column in [*columns, "messages_details.rate", "effective_policy_definition", "nosuch"]:
        asked = f"page=1&columns=name,{column}"
        forward = served.get(f"/api/queues?{asked}&sort={column}")["items"]
        values = [row.get(column) for row in forward if isinstance(row.get(column), int | str)]
        assert values == sorted(values, key=lambda value: (isinstance(value, str), value)), column
        backward = served.get(f"/api/queues?{asked}&sort={column}&sort_reverse=true")["items"]
        assert len(backward) == len(forward) == 3
