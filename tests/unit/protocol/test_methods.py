from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands, frame

from burrowmq.protocol import methods
from burrowmq.protocol.errors import AmqpError, CommandInvalid, FrameError
from burrowmq.protocol.table import FieldValue, Long
from tests.support.amqp_frames import method


def payload(octets: bytes) -> bytes:
    return octets[7:-1]


def test_every_method_of_pamqp_is_there() -> None:
    assert set(commands.INDEX_MAPPING) <= set(methods.METHODS)


@pytest.mark.filterwarnings("ignore:This command is deprecated")
@pytest.mark.parametrize("index", sorted(commands.INDEX_MAPPING))
def test_pamqp_agrees_about_each_method(index: int) -> None:
    theirs = commands.INDEX_MAPPING[index]()
    for name in theirs.attributes():
        kind = theirs.amqp_type(name)
        if getattr(theirs, name) is None:
            setattr(theirs, name, {} if kind == "table" else "" if kind.endswith("str") else 0)
    octets = frame.marshal(theirs, 3)
    ours = methods.decode_method(payload(octets))
    assert (ours.name, ours.index) == (theirs.name, index)
    assert methods.encode_method(3, ours) == octets
    assert ours.ids == (index >> 16, index & 0xFFFF)


def test_names_that_pamqp_refuses_are_taken() -> None:
    name = "q €!\n" + "x" * 200
    octets = methods.encode_method(1, methods.Queue.Declare(queue=name, ticket=7))
    declared = methods.decode_method(payload(octets))
    assert isinstance(declared, methods.Queue.Declare)
    assert declared.queue == name


def test_arguments_keep_their_types() -> None:
    declare = methods.Queue.Declare(queue="q", durable=True, arguments={"x-expires": Long(5)})
    decoded = methods.decode_method(payload(methods.encode_method(1, declare)))
    assert isinstance(decoded, methods.Queue.Declare)
    assert type(decoded.arguments["x-expires"]) is Long
    assert (decoded.passive, decoded.durable, decoded.exclusive) == (False, True, False)


def test_the_ids_in_a_close_are_arguments() -> None:
    close = methods.Channel.Close(404, "NOT_FOUND", 50, 10)
    decoded = methods.decode_method(payload(methods.encode_method(1, close)))
    assert isinstance(decoded, methods.Channel.Close)
    assert (decoded.class_id, decoded.method_id) == (50, 10)
    assert decoded.ids == (20, 40)


def nested_lists(depth: int) -> FieldValue:
    value: list[FieldValue] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_long_strings_are_octets() -> None:
    octets = method(0, commands.Connection.StartOk(response="\0guest\0guest"))
    decoded = methods.decode_method(payload(octets))
    assert isinstance(decoded, methods.Connection.StartOk)
    assert decoded.credentials == b"\0guest\0guest"


def test_unknown_method() -> None:
    with pytest.raises(CommandInvalid, match="unimplemented method"):
        methods.decode_method(b"\x00\x3c\x00\xff")


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"\x00\x32", "cannot decode <<0,50>>"),
        (b"\x00\x32\x00\x0a\x00\x00\x05q", "cannot decode <<0,0,5,113>>"),
        (b"\x00\x3c\x00\x46\x00\x00\x01q\x00\xff", "cannot decode <<0,0,1,113,0,255>>"),
        (b"\x00\x3c\x00\x46\x00\x00\x02\xc3\x28\x00", "Malformed UTF-8 in shortstr"),
        # What is there of a name that goes on beyond the frame is not looked at.
        (b"\x00\x3c\x00\x46\x00\x00\x03\xc3", "cannot decode <<0,0,3,195>>"),
        (b"\x00\x0a\x00\x14\x00\x00\x00\x09ab", "cannot decode <<0,0,0,9,97,98>>"),
    ],
)
def test_undecodable_arguments(octets: bytes, text: str) -> None:
    with pytest.raises(FrameError) as caught:
        methods.decode_method(octets)
    assert caught.value.text == text


def test_the_names_of_a_publish_may_be_any_octets() -> None:
    octets = b"\x00\x3c\x00\x28\x00\x00\x02\xff\xfe\x03a\xe9b\x00"
    publish = methods.decode_method(octets)
    assert isinstance(publish, methods.Basic.Publish)
    assert publish.exchange.encode("utf-8", "surrogateescape") == b"\xff\xfe"
    assert publish.routing_key.encode("utf-8", "surrogateescape") == b"a\xe9b"


def test_an_error_names_the_method() -> None:
    with pytest.raises(FrameError) as caught:
        methods.decode_method(b"\x00\x32\x00\x0a")
    assert (caught.value.class_id, caught.value.method_id) == (50, 10)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x" * 131072, "field table larger than 131072 octets"),
        (nested_lists(128), "field table nested deeper than 128 levels"),
    ],
)
def test_arguments_beyond_a_limit_name_it(value: FieldValue, text: str) -> None:
    declare = methods.Queue.Declare(queue="q", arguments={"k": value})
    with pytest.raises(FrameError) as caught:
        methods.decode_method(payload(methods.encode_method(1, declare)))
    assert caught.value.text == text
    assert (caught.value.class_id, caught.value.method_id) == (50, 10)


@given(st.sampled_from(sorted(methods.METHODS)), st.binary(max_size=60))
def test_any_arguments_decode_or_raise_amqp_errors(index: int, octets: bytes) -> None:
    try:
        decoded = methods.decode_method(index.to_bytes(4, "big") + octets)
    except AmqpError:
        return
    assert methods.encode_method(1, decoded)


def test_access_request() -> None:
    request = methods.decode_method(b"\x00\x1e\x00\x0a\x05/data\x1f")
    assert isinstance(request, methods.Access.Request)
    assert methods.encode_method(2, methods.Access.RequestOk())[7:-1] == b"\x00\x1e\x00\x0b\x00\x01"


def test_a_method_has_the_name_that_people_use() -> None:
    assert methods.method_name(50, 10) == "queue.declare"
    assert methods.method_name(60, 80) == "basic.ack"
    assert methods.method_name(0, 0) == ""
