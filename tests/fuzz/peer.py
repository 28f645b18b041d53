"""A peer that sends nonsense: frames made by the grammar, then damaged, to a server connection.

Everything comes from one seed, which a failure prints. ``python -m tests.fuzz.peer 100000`` runs that many
frames outside pytest; BURROWMQ_PURE=1 chooses the interpreted codec there as everywhere.
"""

from __future__ import annotations

import random
import struct
import sys
from itertools import pairwise

from pamqp import commands

from burrowmq.protocol import codec, errors, events
from burrowmq.protocol.codec import AckRun, Message, PublishRun
from burrowmq.protocol.connection.server import ProtocolOptions, ServerConnection
from tests.support.amqp_frames import (
    PROTOCOL_HEADER,
    content,
    method,
    publish,
    raw_frame,
    start_ok,
    tune_ok,
)

HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
OPEN = method(0, commands.Connection.Open())
OPTIONS = ProtocolOptions(max_message_size=1 << 20)
ALLOWED = (
    PublishRun,
    AckRun,
    events.LoginAttempt,
    events.OpenRequested,
    events.MethodReceived,
    events.ChannelOpened,
    events.ChannelClosed,
    events.ChannelFailed,
    events.ConnectionCloseReceived,
    events.Disconnect,
    errors.AmqpError,
)
BUFFER_LIMIT = 131072 + 8 + 65536


class Peer:
    """One seeded source of sessions; counts the frames that it has sent."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.frames = 0
        self.seen: dict[str, int] = {}
        # How much of a session is nonsense: the gentle ones get far enough for states to matter.
        self.wildness = 1.0

    def session(self) -> None:
        """One connection from its first octet to its end, or to a hundred frames."""
        chance = self.random
        connection = ServerConnection(OPTIONS)
        self.wildness = chance.choice([0.01, 0.05, 0.3, 1.0])
        how_far = chance.choice(["header", "start", "tune", "open", "run", "run", "run", "run"])
        octets = [PROTOCOL_HEADER] if chance.random() > 0.02 else [chance.randbytes(8)]
        for step, frame in (("start", start_ok()), ("tune", tune_ok()), ("open", OPEN)):
            if how_far == step:
                break
            octets.append(frame)
        if how_far == "run":
            octets += [method(number, commands.Channel.Open()) for number in (1, 2, 3)]
        for one in octets:
            if not self.deliver(connection, one):
                return
        for _ in range(chance.randrange(1, 100)):
            if not self.deliver(connection, self.damaged(self.frame())):
                return

    def frame(self) -> bytes:
        """One or a few frames."""
        self.frames += 1
        return self.wild() if self.random.random() < self.wildness else self.gentle()

    def gentle(self) -> bytes:
        """What a client sends."""
        chance = self.random
        channel = chance.choice([1, 2, 3])
        kind = chance.randrange(8)
        if kind < 3:
            data = chance.randbytes(chance.choice([0, 5, 500, 5000, 40000]))
            return publish(channel, data) * chance.choice([1, 1, 3])
        if kind == 3:
            command = method(channel, commands.Basic.Publish(routing_key="q"))
            data = chance.randbytes(chance.choice([10, 33000, 131072, 1_100_000]))
            pieces = [data[at : at + 60000] for at in range(0, len(data), 60000)]
            header = content(channel, data)[0]
            return command + header + b"".join(raw_frame(3, channel, one) for one in pieces)
        if kind == 4:
            return codec.encode_ack(channel, chance.randrange(100), chance.random() < 0.3)
        if kind == 5:
            closing = method(channel, commands.Channel.CloseOk())
            return method(channel, commands.Channel.Close(200, "", 0, 0)) + (
                b"" if chance.random() < 0.5 else closing
            )
        if kind == 6:
            return method(channel, commands.Queue.Declare(queue="q", arguments={"x-expires": 5}))
        return method(channel, commands.Basic.Get(queue="q"))

    def wild(self) -> bytes:
        """What the grammar allows, or nearly."""
        chance = self.random
        channel = chance.choice([0, 1, 1, 1, 2, 3, 4, 65535])
        kind = chance.randrange(10)
        if kind < 3:
            return publish(max(channel, 1), chance.randbytes(chance.choice([0, 5, 500, 40000])))
        if kind == 3:
            return b"".join(content(channel, chance.randbytes(100), None, [chance.randrange(100)]))
        if kind == 4:
            index = chance.choice(sorted(commands.INDEX_MAPPING))
            arguments = chance.randbytes(chance.randrange(30))
            return raw_frame(1, channel, struct.pack(">I", index) + arguments)
        if kind == 5:
            tag, bits = chance.getrandbits(chance.choice([3, 64])), chance.randrange(4)
            return raw_frame(1, channel, struct.pack(">HHQB", 60, 80, tag, bits))
        if kind == 6:
            flags = chance.getrandbits(16)
            size = chance.choice([0, 10, 2**63, 2**64 - 1, 32768, 2_000_000])
            payload = struct.pack(">HHQH", 60, 0, size, flags) + chance.randbytes(20)
            return raw_frame(2, channel, payload)
        if kind == 7:
            return raw_frame(3, channel, chance.randbytes(chance.choice([0, 1, 10, 4096, 100000])))
        if kind == 8:
            return self.declare(channel)
        return chance.choice(
            [
                HEARTBEAT,
                method(channel, commands.Channel.Open()),
                method(channel, commands.Channel.Close(200, "", 0, 0)),
                method(channel, commands.Channel.CloseOk()),
                method(0, commands.Connection.Close(200, "", 0, 0)),
                raw_frame(chance.randrange(256), channel, b"x"),
            ]
        )

    def declare(self, channel: int) -> bytes:
        """queue.declare with a table that is nested, long or broken."""
        chance = self.random
        table = b""
        for _ in range(chance.choice([0, 1, 3, 15, 16, 40])):
            table = b"\x01kF" + struct.pack(">I", len(table)) + table
        table += b"\x01kV" * chance.choice([0, 1, 1000, 1025])
        table += chance.choice([b"", b"\x01kz", b"\xff", b"\x01kS\xff\xff\xff\xff", b"\x01kT"])
        arguments = b"\x00\x00\x01q\x02" + struct.pack(">I", len(table)) + table
        return raw_frame(1, channel, b"\x00\x32\x00\x0a" + arguments)

    def damaged(self, octets: bytes) -> bytes:
        """The octets, one time in three with something changed, lost, doubled or added."""
        chance = self.random
        if chance.random() > self.wildness / 3 or not octets:
            return octets
        place = chance.randrange(min(len(octets), chance.choice([8, 40, len(octets)])))
        what = chance.randrange(5)
        if what < 2:
            return octets[:place] + bytes((chance.randrange(256),)) + octets[place + 1 :]
        if what == 2:
            return octets[:place] + octets[place + 1 :]
        if what == 3:
            return octets[:place] + octets[place:] * 2
        return octets[:place] + chance.randbytes(chance.randrange(9)) + octets[place:]

    def deliver(self, connection: ServerConnection, octets: bytes) -> bool:
        """Feed octets, in one to four pieces, and answer; whether the connection goes on."""
        chance = self.random
        cuts = sorted(chance.randrange(len(octets) + 1) for _ in range(chance.choice([0, 0, 1, 3])))
        bounds = [0, *cuts, len(octets)]
        for start, end in pairwise(bounds):
            pending = connection.receive_data(octets[start:end])
            while pending:
                goes_on = [self.answer(connection, event) for event in pending]
                if not all(goes_on):
                    return False
                pending = connection.receive_data(b"")
        assert connection._codec.buffered <= BUFFER_LIMIT
        assert len(connection._held) <= 1 << 20
        assert sum(map(len, connection.out)) < 1 << 16
        connection.take_out()
        return True

    def answer(self, connection: ServerConnection, event: object) -> bool:
        """Do what a session does; whether the connection goes on."""
        assert isinstance(event, ALLOWED), event
        name = type(event).__name__
        self.seen[name] = self.seen.get(name, 0) + 1
        if isinstance(event, events.LoginAttempt):
            connection.accept_login()
        elif isinstance(event, events.OpenRequested):
            connection.accept_open()
        elif isinstance(event, events.ChannelClosed) and event.by_client:
            connection.channel_close_ok(event.channel)
            self.reopen(connection, event.channel)
        elif isinstance(event, events.ChannelFailed):
            connection.close_channel(event.channel, event.error)
            self.reopen(connection, event.channel)
        elif isinstance(event, events.MethodReceived) and self.random.random() < 0.1:
            connection.close_channel(event.channel, errors.NotFound("no"))
            self.reopen(connection, event.channel)
        elif isinstance(event, events.ConnectionCloseReceived):
            connection.connection_close_ok()
            return False
        elif isinstance(event, errors.AmqpError):
            assert len(event.reply_text.encode("utf-8", "surrogateescape")) <= 255
            connection.close_with(event)
            return self.random.random() < 0.1
        elif isinstance(event, PublishRun):
            self.check_run(event)
        return not isinstance(event, events.Disconnect)

    def reopen(self, connection: ServerConnection, channel: int) -> None:
        """Mostly open a channel again, so that the session has something to go on with."""
        if self.random.random() < 0.9:
            again = method(channel, commands.Channel.CloseOk()) * (
                channel in connection._channels._channels
            )
            connection.receive_data(again + method(channel, commands.Channel.Open()))

    def check_run(self, run: PublishRun) -> None:
        """A run must hold together and go out again."""
        assert run.messages
        assert run.size == sum(message.size for message in run.messages)
        octets = codec.encode_deliver(9, b"c", 1, False, run.messages, 4096)
        assert len(octets) > sum(len(message.raw) for message in run.messages)
        for message in run.messages:
            assert isinstance(message, Message)
            assert run.is_mixed or message.address == run.address
        assert run.address == run.messages[0].address


def run(seed: int, frames: int) -> Peer:
    """Sessions until that many frames were sent."""
    peer = Peer(seed)
    while peer.frames < frames:
        peer.session()
    return peer


def main() -> int:
    """Run as a program: number of frames, then the seed."""
    frames = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    sys.stderr.write(f"codec {codec.NAME}, seed {seed}\n")
    peer = run(seed, frames)
    sys.stderr.write(f"{peer.frames} frames: {peer.seen}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
