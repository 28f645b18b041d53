from __future__ import annotations

from burrowmq.protocol import constants


def test_flags_do_not_overlap() -> None:
    properties = [
        value for name, value in vars(constants).items() if name.startswith("PROP_") and value > 3
    ]
    flags = [
        constants.PERSISTENT,
        constants.MANDATORY,
        constants.IMMEDIATE,
        constants.MAYBE_CC,
        constants.ON_DISK,
    ]
    assert len(properties) == 14
    assert sum(properties) == 0xFFFC
    assert sum(flags) & 0xFFFF == 0
    assert len(set(flags)) == len(flags) == sum(flags).bit_count()


def test_reply_codes_have_rabbitmqs_names() -> None:
    assert constants.ReplyCode(404).name == "NOT_FOUND"
    assert constants.ReplyCode(502).name == "SYNTAX_ERROR"
    assert constants.ReplyCode(540).name == "NOT_IMPLEMENTED"
