"""Header fields as they came: both codecs against the decoded table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.protocol import table
from burrowmq.protocol.properties import Properties, rewrite
from tests.support.amqp_frames import CODECS
from tests.support.field_values import NAMES, VALUES
from tests.support.messages import message

EACH_CODEC = pytest.mark.parametrize("codec", CODECS, ids=lambda module: module.NAME)
TABLES = st.dictionaries(NAMES, VALUES, max_size=6)


@pytest.mark.slow
@EACH_CODEC
@given(
    headers=TABLES,
    wanted=st.frozensets(NAMES, max_size=3),
    others=st.fixed_dictionaries(
        {}, optional={"content_type": st.text(max_size=9), "content_encoding": st.text(max_size=9)}
    ),
)
def test_the_fields_that_are_asked_for_and_no_others(codec, headers, wanted, others) -> None:
    one = rewrite(message(b"x"), Properties(headers=headers, message_id="m", **others))
    names = frozenset(name.encode() for name in wanted)
    found = codec.header_fields(one.raw, names)
    kept = {name: value for name, value in headers.items() if name in wanted}
    assert found == table.encode_table(kept)[4:]


@EACH_CODEC
def test_a_message_without_headers_has_none(codec) -> None:
    assert codec.header_fields(message(b"x").raw, frozenset([b"a"])) == b""


@EACH_CODEC
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=12), st.booleans())
def test_the_like_of_a_message_is_resolved_once(codec, sent, with_address) -> None:
    messages = []
    for key, value in sent:
        headers = {"n": value, "other": len(messages)}
        one = rewrite(message(b"x"), Properties(headers=headers))
        messages.append(codec.Message(b"\0\1%d" % key, one.raw, 1, one.flags, 1, 100))
    asked = []
    known: dict[bytes, str] = {}

    def resolve(octets: bytes, one: object) -> str:
        known[octets] = f"route {len(known)}"
        asked.append(one)
        return known[octets]

    found = codec.look_up_by_headers(messages, frozenset([b"n"]), with_address, known, resolve)
    like = [(key if with_address else 0, value) for key, value in sent]
    assert len(asked) == len(set(like))
    assert len(set(zip(like, found, strict=True))) == len(set(like))
