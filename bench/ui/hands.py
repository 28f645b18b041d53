"""Hands on a keyboard that count what they do; the mouse is taken where the keyboard does not get.

State: keys, clicks, and the time that was waited for the page. Called by `bench.ui.tasks`.

Seconds are those of a practised person by the keystroke-level model (Card, Moran and Newell 1980): a key 0.28 s, the way
to the mouse and back 0.8 s, pointing and clicking 1.3 s; and what the page itself took, measured. Reading is left out, it
is the same for both.
"""

from __future__ import annotations

import time
from typing import Any

KEY_S, REACH_MOUSE_S, CLICK_S = 0.28, 0.8, 1.3
TABS_MAX = 250
HAS_FOCUS = "found => found.includes(document.activeElement)"


class Hands:
    """One person at one page."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.keys = self.clicks = self.reaches = 0
        self.waited_s = 0.0
        self._is_at_mouse = False

    @property
    def seconds(self) -> float:
        """What it took; see the module."""
        by_mouse = self.reaches * REACH_MOUSE_S + self.clicks * CLICK_S
        return self.keys * KEY_S + by_mouse + self.waited_s

    def press(self, *keys: str) -> None:
        """Keys one after the other; a chord is one."""
        self._is_at_mouse = False
        for key in keys:
            self.page.keyboard.press(key)
            self.keys += 1

    def type(self, text: str) -> None:
        """Text, a key a letter."""
        self.press(*text)

    def tab_to(self, wanted: str) -> bool:
        """Tab until what is wanted (a selector) has the focus; False, and nothing counted, where it never gets it."""
        for count in range(1, TABS_MAX + 1):
            self.page.keyboard.press("Tab")
            if self.page.locator(wanted).evaluate_all(HAS_FOCUS):
                self.keys += count
                return True
        return False

    def click(self, wanted: str) -> None:
        """With the mouse."""
        if not self._is_at_mouse:
            self.reaches += 1
        self._is_at_mouse = True
        self.clicks += 1
        self.page.locator(wanted).first.click()

    def choose(self, wanted: str) -> None:
        """Go there and press it: by keyboard if that gets there."""
        self.sees(wanted)
        if self.tab_to(wanted):
            self.press("Enter")
        else:
            self.click(wanted)

    def sees(self, wanted: str) -> None:
        """Wait until something is shown."""
        began = time.perf_counter()
        self.page.locator(wanted).first.wait_for(timeout=30_000)
        self.waited_s += time.perf_counter() - began
