"""broker.pattern: operators' expressions as PCRE would read them."""

from __future__ import annotations

import pytest

from broker.pattern import BadPattern, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("b", "abc", True),
        ("^[[:alpha:]]+$", "abc", True),
        ("^[[:digit:]]+$", "abc", False),
        (r"^a\z", "a", True),
        ("^(foo|bar)-.*", "bar-1", True),
        ("(?i)ABC", "abc", True),
        ("^(a.)*$", "abac", True),
    ],
)
def test_patterns(pattern: str, name: str, found: bool) -> None:
    assert (compile_pattern(pattern).search(name) is not None) is found


@pytest.mark.parametrize(
    "pattern", ["(", "[", "*", "(a+)+", "(a*)*$", r"(?:\w+)+x", "([a-z]+){2,}"]
)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        compile_pattern(pattern)
