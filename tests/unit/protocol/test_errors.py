from __future__ import annotations

import pytest

from burrowmq.protocol import errors
from burrowmq.protocol.constants import ReplyCode

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type)
    and issubclass(kind, errors.AmqpError)
    and "reply_code" in vars(kind)
    and kind is not errors.AmqpError
]


def test_there_is_one_class_per_code() -> None:
    codes = [kind.reply_code for kind in KINDS]
    assert len(codes) == len(set(codes)) == 16
    assert set(ReplyCode) - set(codes) == {
        ReplyCode.SUCCESS,
        ReplyCode.NO_ROUTE,
        ReplyCode.NO_CONSUMERS,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_soft_errors_are_those_that_close_channels(kind: type[errors.AmqpError]) -> None:
    is_soft = kind.reply_code in {311, 403, 404, 405, 406}
    assert issubclass(kind, errors.SoftError) == is_soft
    assert issubclass(kind, errors.HardError) != is_soft


def test_the_text_begins_with_the_name() -> None:
    error = errors.NotFound("no queue 'q' in vhost '/'", 50, 10)
    assert error.reply_text == "NOT_FOUND - no queue 'q' in vhost '/'"
    assert (error.name, error.class_id, error.method_id) == ("NOT_FOUND", 50, 10)


def test_a_text_without_explanation_is_the_bare_name() -> None:
    assert errors.InternalError().reply_text == "INTERNAL_ERROR"


def test_long_texts_are_cut_at_255_octets() -> None:
    exact = errors.NotFound("x" * (255 - len("NOT_FOUND - ")))
    assert len(exact.reply_text) == 255
    assert not exact.reply_text.endswith("...")
    longer = errors.NotFound("x" * 300)
    assert len(longer.reply_text) == 255
    assert longer.reply_text.endswith("x...")


def test_cutting_does_not_break_a_character() -> None:
    text = errors.NotFound("é" * 300).reply_text
    assert len(text.encode()) <= 255
    assert text.endswith("é...")
