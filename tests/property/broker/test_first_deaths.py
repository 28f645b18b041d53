"""A first death that is spliced into the raw header = one for which the header was decoded and encoded again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from burrowmq.broker.queue.rules.dead_letter import Death, first_record, record
from burrowmq.protocol.codec import Message, first_deaths, join_address
from burrowmq.protocol.constants import TABLE_SIZE_MAX
from burrowmq.protocol.properties import Properties, build

NAMES = st.text("abc.-é", max_size=8)
HEADERS = st.none() | st.dictionaries(
    st.sampled_from(["a", "b", "CC", "x-death", "x-first-death-queue", "long"]),
    st.integers(0, 9).map(str) | st.booleans() | st.lists(NAMES, max_size=2) | st.just("x" * 5000),
    max_size=3,
)
PROPERTIES = st.builds(
    Properties,
    content_type=st.none() | NAMES,
    headers=HEADERS,
    delivery_mode=st.sampled_from([None, 1, 2]),
    priority=st.none() | st.integers(0, 255),
    correlation_id=st.none() | NAMES,
    reply_to=st.none() | NAMES,
    expiration=st.none() | st.sampled_from(["5", "5000", "+7"]),
    message_id=st.none() | NAMES,
)
MESSAGES = st.builds(
    build, st.builds(join_address, st.just(b"e"), st.sampled_from([b"k", b"l"])), PROPERTIES,
    st.sampled_from([b"", b"x", b"y" * 9000]),
)  # fmt: skip
DEATHS = st.builds(
    Death,
    queue=NAMES,
    reason=st.sampled_from(["rejected", "expired", "maxlen"]),
    exchange=st.sampled_from([b"", b"dlx"]),
    routing_key=st.none() | st.just(b"own"),
    time_s=st.integers(0, 2**40),
)


def fields(message: Message) -> tuple[object, ...]:
    return (message.address, message.raw, message.size, message.flags, message.channel, message.frame_max)  # fmt: skip


@settings(max_examples=200)
@given(st.lists(MESSAGES, max_size=6), DEATHS, st.sampled_from([6000, TABLE_SIZE_MAX]))
def test_both_ways_give_the_same_dead_letters(
    messages: list[Message], death: Death, header_max: int
) -> None:
    seen: list[Message] = []
    for stretch, expiration, is_plain in first_deaths(messages, header_max):
        seen += stretch
        if not is_plain:
            assert len(stretch) == 1
            continue
        dead, event = first_record(stretch, expiration, death)
        for original, one in zip(stretch, dead, strict=True):
            slow, deaths = record(original, death, header_max)
            assert fields(one) == fields(slow)
            assert deaths == [event]
    assert list(map(id, seen)) == list(map(id, messages))
