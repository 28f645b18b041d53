"""The colours of the UI's two themes: text and marks are told apart from what is behind them (WCAG 2.1 AA)."""

from __future__ import annotations

import re

import pytest

from burrowmq.management.ui import files

TEXT, MARK = 4.5, 3.0
TOKEN = re.compile(r"--([\w-]+): (#[0-9a-f]{3,6})")
ON_PAGES = ("text", "quiet", "accent", "good", "busy", "bad")
PAIRS = [(name, page, TEXT) for name in ON_PAGES for page in ("page", "raised")]
PAIRS += [(name, f"{name}-page", TEXT) for name in ("good", "busy", "bad")]
PAIRS += [("text", f"{name}-page", TEXT) for name in ("good", "busy", "bad")]
PAIRS += [("on-accent", "accent", TEXT)]
PAIRS += [
    (name, "page", MARK)
    for name in ("publish", "deliver", "ack", "redeliver", "ready", "unacked", "memory", "disk")
]


def themes() -> dict[str, dict[str, str]]:
    """Each block of tokens by the selector it stands under."""
    css = files.file("app.css").plain.decode()
    blocks = re.findall(r"(:root[^{]*)\{([^}]*--page[^}]*)\}", css)
    return {selector.strip(): dict(TOKEN.findall(block)) for selector, block in blocks}


def luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(each * 2 for each in digits)
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)


def test_every_text_is_readable_in_both_themes() -> None:
    found = themes()
    assert len(found) == 3, "light, dark by the system, dark by choice"
    weak = [
        (selector, name, page, round(contrast(tokens[name], tokens[page]), 2))
        for selector, tokens in found.items()
        for name, page, least in PAIRS
        if contrast(tokens[name], tokens[page]) < least
    ]
    assert weak == []


def test_dark_is_dark_whoever_chose_it() -> None:
    _, by_system, by_choice = themes().values()
    assert by_system == by_choice


def test_no_colour_stands_beside_the_tokens() -> None:
    css = files.file("app.css").plain.decode()
    rest = re.sub(r":root[^{]*\{[^}]*\}", "", css)
    assert re.findall(r"#[0-9a-f]{3,6}\b", rest) == []
