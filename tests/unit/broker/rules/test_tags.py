"""Tests for tags as they are written: broker.rules.tags."""

from __future__ import annotations

import pytest

from burrowmq.broker.rules.tags import NotBoolean, texts, with_tags


@pytest.mark.parametrize(
    ("written", "tags"),
    [("a, b,,", ("a", "b")), (["a", "b"], ("a", "b")), ("", ()), ([], ()), (None, ())],
)
def test_a_list_or_a_text_with_commas(written: object, tags: tuple[str, ...]) -> None:
    assert texts(written) == tags


def test_administrator_counts_where_there_are_no_tags() -> None:
    assert with_tags({"administrator": "true"})["tags"] == ["administrator"]
    assert with_tags({"administrator": False})["tags"] == []
    assert with_tags({"administrator": True, "tags": "a"})["tags"] == "a"
    assert "tags" not in with_tags({"administrator": None})
    with pytest.raises(NotBoolean, match="not_boolean: 1"):
        with_tags({"administrator": 1})
