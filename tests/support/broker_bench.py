"""The broker's core without sockets, threads or files: sessions, channels, queues and the real turn on a loop run by hand.

State: one loop, one engine in memory, one virtual host and its clients. `Client` is both ends' wire: what it sends
goes straight into its session, what the session writes is cut into frames and decoded with pika's tables, which are
independent of ours. Callers: unit tests of session, channel, methods and the turn.
Invariants: nothing happens behind the test's back: turns end in `run`, the disk answers in `commit`, time moves in
`advance`.
"""

from __future__ import annotations

import heapq
import itertools
import struct
from collections.abc import Callable
from typing import Any, cast

from pika import spec

from burrowmq.broker.channel.reply import ReplyTargets
from burrowmq.broker.machine.alarms import Alarms
from burrowmq.broker.peer.wire import Peer
from burrowmq.broker.queue.context import QueueContext, QueueOptions
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import QueueDeclaration, Settings
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.session.admission import Admission
from burrowmq.broker.session.session import Session, SessionContext
from burrowmq.broker.turn.turn import Turn
from burrowmq.broker.vhost.republish import Republisher
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.protocol.connection.handshake import ProtocolOptions
from burrowmq.protocol.connection.server import ServerConnection
from tests.support.memory_log import MemoryEngine
from tests.support.topology import CountingEntropy, KeptDefinitions, make_auth
from tests.support.wire_client import METHOD, PROTOCOL_HEADER, method_bytes


class ManualLoop:
    """The two calls of an event loop that the turn makes."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.ready: list[Callable[[], object]] = []
        self.callbacks_run = 0
        self._timers: list[tuple[float, int, ManualTimer]] = []
        self._count = itertools.count()

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Run at the next `run`."""
        self.ready.append(callback)

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> ManualTimer:
        """Run when time has moved so far; a delay of 0 is the next pass."""
        timer = ManualTimer(callback)
        heapq.heappush(self._timers, (self.now_s + delay_s, next(self._count), timer))
        return timer

    def run(self) -> None:
        """Run what is ready until nothing is."""
        while self.ready or (self._timers and self._timers[0][0] <= self.now_s):
            self.run_once()

    def run_once(self) -> None:
        """One pass: due timers, then what was ready before it began."""
        while self._timers and self._timers[0][0] <= self.now_s:
            timer = heapq.heappop(self._timers)[2]
            if timer.callback is not None:
                self.ready.append(timer.callback)
        ready, self.ready = self.ready, []
        for callback in ready:
            self.callbacks_run += 1
            callback()

    def advance(self, delta_s: float) -> None:
        """Let time pass."""
        until = self.now_s + delta_s
        while self._timers and self._timers[0][0] <= until:
            self.now_s = max(self.now_s, self._timers[0][0])
            self.run()
        self.now_s = until
        self.run()


class ManualTimer:
    """A pending call."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        """Forget it."""
        self.callback = None


class BenchEngine(MemoryEngine):
    """A memory engine with epochs: what is handed over stays in flight until the test commits it."""

    def __init__(self, *, answers_later: bool = False) -> None:
        super().__init__(answers_later=answers_later)
        self.definitions = KeptDefinitions()
        self.on_committed: Callable[[int], None] = lambda _: None
        self.in_flight: int | None = None
        self.hand_overs = 0
        self._is_due = False

    def require_sync(self) -> None:
        """Somebody waits for the batch that is being collected."""
        super().require_sync()
        self._is_due = True

    def hand_over(self) -> None:
        """The end of a turn: the batch goes to the disk, if it is free."""
        self.hand_overs += 1
        if self._is_due and self.in_flight is None:
            self.in_flight, self._is_due = self.epoch, False
            self.epoch += 1

    def commit(self) -> None:
        """The disk has synced what was in flight."""
        epoch, self.in_flight = self.in_flight, None
        assert epoch is not None, "nothing was handed over"
        self.on_committed(epoch)


class RecordingObserver:
    """Remembers every event as (name, arguments)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self.events.append((name, arguments))

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of each event of that name."""
        return [arguments for found, arguments in self.events if found == name]


class BrokerBench:
    """One virtual host, its world, and clients on demand."""

    def __init__(
        self, *, default_mode: str = "bounded", answers_later: bool = False, **limits: Any
    ) -> None:
        self.loop = ManualLoop()
        self.engine = BenchEngine(answers_later=answers_later)
        self.turn = Turn(cast("Any", self.loop), self.engine.hand_over)
        self.engine.on_committed = self.turn.on_committed
        self.metrics = NodeMetrics()
        self.observer = RecordingObserver()
        self.entropy = CountingEntropy()
        self.auth = make_auth()
        self.default_mode = default_mode
        self.vhost = Vhost("/", cast("Any", self.engine), self._make_queue, self.entropy)
        self.republisher = Republisher(
            self.vhost, self.turn, self.metrics, cast("Any", self.observer)
        )
        replies = ReplyTargets(self.entropy)
        self.vhost.direct_reply = replies.find
        self.sessions: set[Session] = set()
        self.alarms = Alarms(cast("Any", self.observer), self._on_alarm)
        connection_max = limits.pop("connection_max", None)
        self.context = SessionContext(
            scheduler=self.turn,
            engine=cast("Any", self.engine),
            metrics=self.metrics,
            entropy=self.entropy,
            observer=cast("Any", self.observer),
            auth=self.auth,
            admission=Admission(
                self.auth,
                {"/": self.vhost},
                self.sessions,
                connection_max,
                self.metrics,
                cast("Any", self.observer),
            ),
            alarms=self.alarms,
            replies=lambda _: replies,
            on_lost=self.sessions.discard,
            **limits,
        )

    def _make_queue(self, vhost: Vhost, declaration: QueueDeclaration, settings: Settings) -> Queue:
        return Queue(
            declaration.name,
            settings,
            QueueContext(
                vhost_name=vhost.name,
                scheduler=self.turn,
                engine=cast("Any", self.engine),
                metrics=self.metrics,
                options=QueueOptions(default_mode=self.default_mode),
                republish=self.republisher,
                on_unused=vhost.delete_queue,
            ),
            durable=declaration.durable,
            auto_delete=declaration.auto_delete,
            exclusive_owner=declaration.owner,
            arguments=declaration.arguments,
        )

    def _on_alarm(self, is_blocked: bool) -> None:
        if not is_blocked:
            for session in list(self.sessions):
                session.unblock()

    def socket(self) -> Client:
        """A connection that has sent nothing yet."""
        return Client(self)

    def connect(self, *channels: int, **capabilities: bool) -> Client:
        """An open connection with these channels open."""
        client = self.socket()
        client.open(capabilities)
        for channel in channels:
            client.call(channel, spec.Channel.Open())
        return client

    def run(self) -> None:
        """Let turns end until nothing moves; reads are answered, commits are not."""
        self.loop.run()
        while self.engine.reads and not self.engine.answers_later:
            self.engine.answer_reads()
            self.loop.run()

    def commit(self) -> None:
        """End the turn, let the disk finish, end the turn that follows."""
        self.run()
        self.engine.commit()
        self.run()


class Client:
    """The peer of one session, and the session's wire."""

    def __init__(self, bench: BrokerBench) -> None:
        self.bench = bench
        self.written: list[bytes] = []
        self.is_stuck = False
        self.pauses: set[str] = set()
        self.looked_at: list[float] = []
        self.close_after_s: float | None = None
        peer = Peer(
            host="127.0.0.1", port=40000, local_host="127.0.0.1", local_port=5672, is_loopback=True
        )
        self.session = Session(bench.context, ServerConnection(ProtocolOptions()), peer)
        self.session.wire = self
        bench.sessions.add(self.session)
        self._unread = b""

    # -- Wire ---------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """One write."""
        data = self.session.connection.take_out()
        if data:
            self.written.append(data)
            self._unread += data
        self.session.drained(is_paused=self.is_stuck)

    def pause_reading(self, reason: str) -> None:
        """Remember why."""
        self.pauses.add(reason)

    def resume_reading(self, reason: str) -> None:
        """Forget one reason."""
        self.pauses.discard(reason)

    def heartbeat_due(self, now: float) -> None:
        """Remember when it was asked."""
        self.looked_at.append(now)

    def close_after(self, delay_s: float) -> None:
        """Remember when the socket would be closed."""
        self.close_after_s = delay_s

    # -- the peer -----------------------------------------------------------------------------------------------

    def send(self, *parts: bytes) -> None:
        """Send as one read, and let the turn end."""
        self.session.receive(b"".join(parts))
        self.bench.run()

    def call(self, channel: int, *methods: Any) -> list[tuple[int, Any]]:
        """Send methods as one read and return what came back."""
        self.send(*[method_bytes(channel, method) for method in methods])
        return self.read()

    def open(self, capabilities: dict[str, bool] | None = None) -> None:
        """Go through the handshake."""
        properties = {"capabilities": capabilities or {}}
        self.send(PROTOCOL_HEADER)
        self.call(
            0,
            spec.Connection.StartOk(
                client_properties=properties,
                mechanism="PLAIN",
                response="\0guest\0guest",
                locale="en_US",
            ),
        )
        self.call(0, spec.Connection.TuneOk(2047, 131072, 0))
        found = self.call(0, spec.Connection.Open(virtual_host="/"))
        assert [type(method).__name__ for _, method in found] == ["OpenOk"], found

    def lose(self, reason: str = "") -> None:
        """The socket is gone."""
        self.session.wire = None
        self.session.lost(reason)
        self.bench.run()

    def read(self) -> list[tuple[int, Any]]:
        """(channel, method) of everything since the last read; a method with content has `body` and `raw_header`."""
        found: list[tuple[int, Any]] = []
        data, self._unread = self._unread, b""
        offset = 0
        while offset < len(data):
            kind, channel, size = struct.unpack_from(">BHI", data, offset)
            payload = data[offset + 7 : offset + 7 + size]
            assert data[offset + 7 + size] == 0xCE
            offset += size + 8
            if kind == METHOD:
                (index,) = struct.unpack_from(">I", payload)
                method = spec.methods[index]()
                method.decode(payload, 4)
                found.append((channel, method))
            elif kind == 2:
                found[-1][1].raw_header = payload
                found[-1][1].body = b""
            elif kind == 3:
                found[-1][1].body += payload
        return found

    def names(self) -> list[str]:
        """Names of the methods since the last read."""
        return [method.NAME for _, method in self.read()]
