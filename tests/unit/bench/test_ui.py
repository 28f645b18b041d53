"""The benchmark of the management UI, as far as it goes without a browser."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

from bench.ui import figures, world
from bench.ui.hands import CLICK_S, KEY_S, REACH_MOUSE_S, TABS_MAX, Hands


class Keyboard:
    """Counts, and moves the focus along a page of so many stops."""

    def __init__(self, stops: int) -> None:
        self.stops, self.at = stops, 0
        self.pressed: list[str] = []

    def press(self, key: str) -> None:
        self.pressed.append(key)
        if key == "Tab":
            self.at = (self.at + 1) % self.stops


class Page:
    """As much of playwright's page as hands need; `wanted` is the number of a stop."""

    def __init__(self, stops: int) -> None:
        self.keyboard = Keyboard(stops)
        self.clicked: list[str] = []

    def evaluate_all(self, _: str) -> bool:
        return self.keyboard.at == int(self.wanted)

    def locator(self, wanted: str) -> Page:
        self.wanted = wanted
        return self

    @property
    def first(self) -> Page:
        return self

    def click(self) -> None:
        self.clicked.append(self.wanted)

    def wait_for(self, **_: object) -> None:
        """It is there."""


def test_keys_and_clicks_are_counted() -> None:
    page = Page(10)
    hands = Hands(page)
    hands.type("ab")
    hands.choose("3")
    assert (hands.keys, hands.clicks) == (2 + 3 + 1, 0)
    hands.choose("77")  # it never gets the focus
    hands.click("78")
    assert (hands.keys, hands.clicks, page.clicked) == (6, 2, ["77", "78"])
    assert len(page.keyboard.pressed) == 6 + TABS_MAX
    expected = 6 * KEY_S + REACH_MOUSE_S + 2 * CLICK_S
    assert hands.seconds == expected + hands.waited_s


def test_the_world_has_a_thousand_queues_and_its_story() -> None:
    found = world._definitions()
    names = [row["name"] for row in found["queues"]]
    assert len(names) == len(set(names)) == world.QUEUES
    assert {world.DEEPEST, world.UNCONSUMED, world.DROPPING, world.HELD} <= set(names)
    assert {row["destination"] for row in found["bindings"]} <= set(names)


def test_tables() -> None:
    hands = Hands(Page(3))
    hands.type("abcd")
    table = figures.markdown_of_tasks({"find": hands, "why": hands}, {"find": "not shown"})
    assert "| find | 4 | 0 | 1.1 | not shown | | |" in table
    assert "| why | 4 | 0 | 1.1 | not measured | | |" in table
    rows = [("first view", "BurrowMQ", 310.0, 300.0, "ms"), ("files", "RabbitMQ", 5.0, None, "kB")]
    table = figures.markdown_of_figures(rows)
    assert "| first view | BurrowMQ | 310.0 ms **missed** | 300 ms |" in table
    assert "| files | RabbitMQ | 5.0 kB |  |" in table


def test_the_address_of_a_comparison() -> None:
    _, _, query = figures.compare_address("a b", "c").partition("?")
    assert json.loads(parse_qs(query)["pinned"][0]) == [["/", "a b"], ["/", "c"]]
