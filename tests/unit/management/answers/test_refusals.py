"""The broker's refusals keep their words."""

from __future__ import annotations

import pytest

from burrowmq.broker.rules.auth import LoginRefused
from burrowmq.broker.rules.pattern import BadPattern
from burrowmq.management.answers.refusals import refusal_of
from burrowmq.protocol.errors import AccessRefused, NotFound, PreconditionFailed
from burrowmq.protocol.table import MalformedTable


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotFound("no queue"), 404),
        (AccessRefused("no"), 401),
        (PreconditionFailed("other"), 400),
        (LoginRefused("who"), 401),
        (MalformedTable("no table"), 400),
    ],
)
def test_refusals_keep_their_words(error: Exception, status: int) -> None:
    refusal = refusal_of(error)
    assert refusal is not None
    assert (refusal.status, refusal.reason) == (status, str(error))


def test_a_pattern_that_is_none_is_named_as_such() -> None:
    refusal = refusal_of(BadPattern("missing )"))
    assert refusal is not None
    assert (refusal.status, refusal.reason) == (400, "invalid regular expression: missing )")


def test_a_bug_is_no_refusal() -> None:
    assert refusal_of(KeyError("bug")) is None
