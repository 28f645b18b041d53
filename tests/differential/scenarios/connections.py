"""Handshake, tuning, frames and channels."""

from __future__ import annotations

import struct
from typing import Any

from pika import spec

from tests.differential.broker import Broker
from tests.differential.peer import as_event, content_frames, method_frame
from tests.support.field_table import Typed, encode_table, short_string
from tests.support.wire_client import BODY, HEADER, HEARTBEAT, METHOD, Closed, WireClient, frame

Record = Any
BESIDE_OTHERS = 12
GONE_S = 6.0


def _until_closed(client: WireClient) -> list[Any]:
    """Return what still comes until the socket is closed."""
    events: list[Any] = []
    while True:
        try:
            channel, method = client.read_method(GONE_S)
        except Closed:
            return [*events, "closed"]
        except TimeoutError:
            return [*events, "open"]
        events.append([channel, as_event(method)])
        if isinstance(method, spec.Connection.Close):
            client.send_method(0, spec.Connection.CloseOk())


def _header(broker: Broker, sent: bytes) -> Record:
    client = broker.wire()
    client.send(sent)
    try:
        first = client.read_raw(8, GONE_S)
    except TimeoutError:
        return "nothing"
    except Closed:
        return "closed"
    return first if first.startswith(b"AMQP") else "a frame"


def protocol_header_of_this_version(broker: Broker) -> Record:
    return [_header(broker, b"AMQP\x00\x00\x09\x01"), _header(broker, b"AMQP\x01\x01\x00\x09")]


def protocol_headers_of_other_versions(broker: Broker) -> Record:
    return [
        _header(broker, b"AMQP\x00\x01\x00\x00"),
        _header(broker, b"AMQP\x03\x01\x00\x00"),
        _header(broker, b"AMQP\x00\x00\x0a\x00"),
    ]


def half_a_protocol_header_is_waited_for(broker: Broker) -> Record:
    return _header(broker, b"AMQP\x00")


def start_offers_mechanisms_and_locales(broker: Broker) -> Record:
    client = broker.wire()
    started = client.start()
    mechanisms = sorted(bytes(started.mechanisms).split())
    return [started.version_major, started.version_minor, mechanisms, started.locales]


def start_names_capabilities(broker: Broker) -> Record:
    return broker.wire().start().server_properties["capabilities"]


def start_names_the_product(broker: Broker) -> Record:
    properties = broker.wire().start().server_properties
    kept = {key: properties.get(key) for key in ("product", "version")}
    return kept | {"keys": sorted(properties)}


def tune_proposes(broker: Broker) -> Record:
    client = broker.wire()
    client.start()
    client.login()
    return as_event(client.expect(spec.Connection.Tune))


def login_refused_with_the_capability(broker: Broker) -> Record:
    client = broker.wire()
    client.start()
    client.login(b"\0guest\0wrong", capabilities={"authentication_failure_close": True})
    return _until_closed(client)


def login_refused_without_the_capability(broker: Broker) -> Record:
    client = broker.wire()
    client.start()
    client.login(b"\0guest\0wrong")
    return _until_closed(client)


def login_with_an_empty_password(broker: Broker) -> Record:
    client = broker.wire()
    client.start()
    client.login(b"\0guest\0", capabilities={"authentication_failure_close": True})
    return _until_closed(client)


def login_of_an_unknown_user(broker: Broker) -> Record:
    client = broker.wire()
    client.start()
    client.login(b"\0nobody\0x", capabilities={"authentication_failure_close": True})
    return _until_closed(client)


def login_with_an_authorization_id_is_dropped(broker: Broker) -> Record:
    client = broker.wire()
    client.start()
    client.login(b"other\0guest\0guest", capabilities={"authentication_failure_close": True})
    return _until_closed(client)


def login_by_a_mechanism_that_is_not_offered(broker: Broker) -> Record:
    client = broker.wire()
    client.start()
    client.login(mechanism="GSSAPI", capabilities={"authentication_failure_close": True})
    return _until_closed(client)


def login_by_amqplain(broker: Broker) -> Record:
    client = broker.wire()
    client.start()
    response = encode_table({"LOGIN": "guest", "PASSWORD": "guest"})[4:]
    body = encode_table({}) + short_string("AMQPLAIN")
    body += struct.pack(">I", len(response)) + response + short_string("en_US")
    client.send(frame(METHOD, 0, struct.pack(">HH", 10, 11) + body))
    return as_event(client.expect(spec.Connection.Tune))


def login_by_amqplain_without_a_password(broker: Broker) -> Record:
    client = broker.wire()
    client.start()
    response = encode_table({"LOGIN": "guest"})[4:]
    capabilities = {"capabilities": {"authentication_failure_close": True}}
    body = encode_table(capabilities) + short_string("AMQPLAIN")
    body += struct.pack(">I", len(response)) + response + short_string("en_US")
    client.send(frame(METHOD, 0, struct.pack(">HH", 10, 11) + body))
    return _until_closed(client)


def _tuned(broker: Broker, *values: int) -> Record:
    client = broker.wire()
    client.start()
    client.login()
    client.expect(spec.Connection.Tune)
    client.send_method(0, spec.Connection.TuneOk(*values))
    client.send_method(0, spec.Connection.Open(virtual_host="/"))
    return (
        _until_closed(client)
        if values[1] != 4096
        else as_event(client.expect(spec.Connection.OpenOk))
    )


def tune_ok_with_the_smallest_frame(broker: Broker) -> Record:
    return _tuned(broker, 1, 4096, 0)


def tune_ok_with_a_frame_too_small(broker: Broker) -> Record:
    return _tuned(broker, 2047, 4095, 0)


def tune_ok_with_a_frame_too_large(broker: Broker) -> Record:
    return _tuned(broker, 2047, 131073, 0)


def tune_ok_without_a_channel_limit(broker: Broker) -> Record:
    return _tuned(broker, 0, 131072, 0)


def tune_ok_with_too_many_channels(broker: Broker) -> Record:
    return _tuned(broker, 2048, 131072, 0)


def heartbeats_come_in_time(broker: Broker) -> Record:
    client = broker.wire()
    client.start()
    client.login()
    client.expect(spec.Connection.Tune)
    client.send_method(0, spec.Connection.TuneOk(2047, 131072, 2))
    client.send_method(0, spec.Connection.Open(virtual_host="/"))
    client.expect(spec.Connection.OpenOk)
    return [client.read_frame(GONE_S), client.read_frame(GONE_S)]


def a_silent_client_with_heartbeats_is_dropped(broker: Broker) -> Record:
    client = broker.wire()
    client.start()
    client.login()
    client.expect(spec.Connection.Tune)
    client.send_method(0, spec.Connection.TuneOk(2047, 131072, 1))
    client.send_method(0, spec.Connection.Open(virtual_host="/"))
    client.expect(spec.Connection.OpenOk)
    return _until_closed(client)


def open_of_an_unknown_vhost(broker: Broker) -> Record:
    return broker.link(vhost="nope").refusal


def open_without_permission(broker: Broker) -> Record:
    user = broker.user("stranger")
    return broker.link(user=user, password=user).refusal


def open_before_tune_ok(broker: Broker) -> Record:
    client = broker.wire()
    client.start()
    client.login()
    client.expect(spec.Connection.Tune)
    client.send_method(0, spec.Connection.Open(virtual_host="/"))
    return _until_closed(client)


def start_ok_twice(broker: Broker) -> Record:
    client = broker.wire().open()
    client.login()
    return _until_closed(client)


def close_is_answered(broker: Broker) -> Record:
    client = broker.wire().open()
    client.send_method(0, spec.Connection.Close(200, "bye", 0, 0))
    return as_event(client.expect(spec.Connection.CloseOk))


def update_secret_is_answered(broker: Broker) -> Record:
    client = broker.wire().open()
    client.send_method(0, spec.Connection.UpdateSecret("new", "because"))
    return as_event(client.read_method()[1])


# ---- frames ---------------------------------------------------------------------------------------------


def _after(broker: Broker, *parts: bytes, frame_max: int = 131072) -> Record:
    client = broker.wire().open(frame_max=frame_max).channel(1)
    client.send(*parts)
    return _until_closed(client)


def a_frame_of_unknown_type(broker: Broker) -> Record:
    return _after(broker, frame(7, 0, b""))


def a_frame_with_a_wrong_end(broker: Broker) -> Record:
    return [
        _after(broker, frame(METHOD, 1, b"\0\x14\0\x0a\0", end=7)),
        _after(broker, frame(BODY, 1, b"x" * 40, end=0)),
    ]


def a_frame_just_within_the_slack(broker: Broker) -> Record:
    client = broker.wire().open(frame_max=4096).channel(1)
    name = client.declare(1, exclusive=True)
    publish = method_frame(1, spec.Basic.Publish(routing_key=name))
    head = content_frames(1, b"x" * 4096, {})[: 7 + 14 + 1]
    client.send(publish, head, frame(BODY, 1, b"x" * 4096))
    client.send_method(1, spec.Basic.Get(queue=name, no_ack=True))
    return len(client.read_content()[2])


def a_frame_too_large(broker: Broker) -> Record:
    return _after(broker, frame(BODY, 1, b"x" * 4097), frame_max=4096)


def frames_too_short_for_their_type(broker: Broker) -> Record:
    return [
        _after(broker, frame(kind, channel, payload))
        for channel in (0, 1)
        for kind, payload in ((METHOD, b""), (METHOD, b"\0\x3c\0"), (HEADER, b"\0\x3c"))
    ]


def a_heartbeat_on_a_channel(broker: Broker) -> Record:
    return _after(broker, frame(HEARTBEAT, 1, b""))


def a_heartbeat_with_a_payload(broker: Broker) -> Record:
    return _after(broker, frame(HEARTBEAT, 0, b"x"))


def content_on_channel_0(broker: Broker) -> Record:
    return [_after(broker, frame(HEADER, 0, bytes(14))), _after(broker, frame(BODY, 0, b"abc"))]


def a_channel_method_on_channel_0(broker: Broker) -> Record:
    return _after(broker, method_frame(0, spec.Basic.Qos()))


def a_connection_method_on_a_channel(broker: Broker) -> Record:
    return _after(broker, method_frame(1, spec.Connection.CloseOk()))


def a_method_that_only_servers_send(broker: Broker) -> Record:
    return [
        _after(broker, method_frame(1, spec.Basic.ConsumeOk(consumer_tag="x"))),
        _after(broker, method_frame(1, spec.Queue.DeclareOk("q", 0, 0))),
    ]


def arguments_that_do_not_parse(broker: Broker) -> Record:
    return _after(broker, frame(METHOD, 1, struct.pack(">HH", 60, 10) + b"abc"))


def arguments_with_octets_too_many(broker: Broker) -> Record:
    return _after(broker, frame(METHOD, 1, method_frame(1, spec.Basic.Qos())[7:-1] + b"xx"))


def a_method_on_a_channel_that_is_not_open(broker: Broker) -> Record:
    return _after(broker, method_frame(5, spec.Basic.Qos()))


def a_close_of_a_channel_that_is_not_open(broker: Broker) -> Record:
    """The ids inside it are those of what its sender complains of, not its own."""
    link = broker.link()
    link.wire.send(method_frame(5, spec.Channel.Close(200, "bye", 50, 10)))
    peer = broker.peer()
    closed = peer.close_channel()
    return [link.answer(0, None), closed, peer.close_channel()]


def closes_on_channels_where_they_do_not_belong(broker: Broker) -> Record:
    link, peer = broker.link(), broker.peer()
    link.wire.send(method_frame(0, spec.Channel.Close(200, "bye", 0, 0)))
    peer.cast(spec.Connection.Close(200, "bye", 0, 0))
    return [link.answer(0, None), peer.take(1)]


def a_channel_opened_twice(broker: Broker) -> Record:
    return _after(broker, method_frame(1, spec.Channel.Open()))


def content_header_without_a_method(broker: Broker) -> Record:
    return [
        _after(broker, content_frames(1, b"", {})),
        _after(broker, frame(BODY, 1, b"abc")),
    ]


def a_method_where_a_header_is_due(broker: Broker) -> Record:
    publish = method_frame(1, spec.Basic.Publish(routing_key="q"))
    return [
        _after(broker, publish, publish),
        _after(broker, publish, frame(BODY, 1, b"abc")),
        _after(broker, publish, frame(HEADER, 1, b"\0\x32\0\0" + bytes(8) + b"\0\0")),
    ]


def a_method_where_a_body_is_due(broker: Broker) -> Record:
    publish = method_frame(1, spec.Basic.Publish(routing_key="q"))
    head = content_frames(1, b"abc", {})[: 7 + 14 + 1]
    return _after(broker, publish, head, method_frame(1, spec.Basic.Qos()))


def other_channels_interleave_with_content(broker: Broker) -> Record:
    client = broker.wire().open().channel(1).channel(2)
    name = client.declare(1, exclusive=True)
    content = content_frames(1, b"abc", {"app_id": "a"})
    client.send(
        method_frame(1, spec.Basic.Publish(routing_key=name)),
        method_frame(2, spec.Basic.Qos()),
        content[:-11],
        frame(HEARTBEAT, 0, b""),
        method_frame(2, spec.Channel.Close(200, "", 0, 0)),
        content[-11:],
    )
    first, second = client.read_method(), client.read_method()
    client.send_method(1, spec.Basic.Get(queue=name, no_ack=True))
    return [first[0], as_event(first[1]), second[0], as_event(second[1]), client.read_content()[2]]


def empty_body_frames_are_passed_over(broker: Broker) -> Record:
    client = broker.wire().open().channel(1)
    name = client.declare(1, exclusive=True)
    client.send(
        method_frame(1, spec.Basic.Publish(routing_key=name)),
        content_frames(1, b"abc", {})[: 7 + 14 + 1],
        frame(BODY, 1, b""),
        frame(BODY, 1, b"a"),
        frame(BODY, 1, b""),
        frame(BODY, 1, b"bc"),
    )
    client.send_method(1, spec.Basic.Get(queue=name, no_ack=True))
    return client.read_content()[2]


# ---- channels ---------------------------------------------------------------------------------------------


def channel_numbers_may_exceed_the_limit_but_not_their_count(broker: Broker) -> Record:
    client = broker.wire().open(channel_max=2)
    client.channel(60000).channel(7)
    client.send_method(8, spec.Channel.Open())
    return _until_closed(client)


def a_channel_number_is_free_after_close(broker: Broker) -> Record:
    peer = broker.peer()
    first = peer.close_channel()
    peer.send(method_frame(1, spec.Channel.Open()))
    return [first, peer.link.answer(1, spec.Channel.OpenOk), peer.qos(1)]


def frames_on_a_closing_channel_are_dropped(broker: Broker) -> Record:
    """What was pipelined behind an error has no effect and no answer."""
    peer = broker.peer()
    later = broker.own("q.later")
    peer.cast(spec.Queue.Declare(queue="q.none", passive=True))
    peer.cast(spec.Queue.Declare(queue=later, exclusive=True))
    error = peer.link.answer(1, None)
    peer.send(method_frame(1, spec.Channel.CloseOk()), method_frame(1, spec.Channel.Open()))
    opened = peer.link.answer(1, spec.Channel.OpenOk)
    return [error, opened, peer.passive(later)]


def what_was_pipelined_before_an_error_takes_effect(broker: Broker) -> Record:
    peer = broker.peer()
    name = peer.queue(broker.own("q.before"))
    peer.publish("", name, b"1")
    return [peer.exchange("", "direct"), peer.wait_ready(name, 1)]


def flow_can_be_turned_on_but_not_off(broker: Broker) -> Record:
    peer = broker.peer()
    return [
        peer.rpc(spec.Channel.Flow(active=True), spec.Channel.FlowOk),
        peer.rpc(spec.Channel.Flow(active=False), spec.Channel.FlowOk),
    ]


def access_request_is_granted(broker: Broker) -> Record:
    client = broker.wire().open().channel(1)
    client.send(frame(METHOD, 1, struct.pack(">HH", 30, 10) + short_string("/data") + b"\x1f"))
    return client.read_frame()


def a_soft_error_leaves_other_channels_alone(broker: Broker) -> Record:
    first = broker.peer()
    second = first.beside(2)
    return [first.passive("none"), second.qos(5), second.queue("", exclusive=True)]


def a_table_with_every_type_in_consume_arguments(broker: Broker) -> Record:
    peer = broker.peer()
    name = peer.queue("", exclusive=True)
    table = {
        each.tag: each
        for each in (
            Typed("t", True),
            Typed("b", -1),
            Typed("B", 200),
            Typed("s", -300),
            Typed("u", 60000),
            Typed("I", -70000),
            Typed("i", 4000000000),
            Typed("l", -5000000000),
            Typed("f", 1.5),
            Typed("d", 2.5),
            Typed("D", (2, 314)),
            Typed("S", "s"),
            Typed("x", b"\x00\x01"),
            Typed("T", 1600000000),
            Typed("V", None),
            Typed("A", [1, "a", None]),
            Typed("F", {"inner": 1}),
        )
    }
    return peer.consume(name, "t", table)
