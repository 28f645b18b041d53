"""One connection: login, vhost, channels, and the single place where errors become closes.

A session takes the events of its `ServerConnection` in order, finds the channel and calls the handler. Handlers
raise; `_guard` is the only `except`: it stamps the failing method's ids and closes the channel (soft errors) or the
connection (hard ones, and everything on channel 0). Anything else that is raised is a bug: logged, answered with 541.

State owned: identity, the channel table, input of held channels, the blocked flag. Sockets are the transport's: it is
seen through `Wire`.

Source: RabbitMQ's rabbit_reader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from broker.alarms import Alarms
from broker.auth import Auth, LoginRefused, User
from broker.channel import Channel
from broker.clock import Entropy
from broker.loop import Turn
from broker.methods import HANDLERS, basic
from broker.metrics import NodeMetrics
from broker.observer import Observer
from broker.reply import ReplyTargets
from broker.vhost import Vhost
from protocol.codec import AckRun, PublishRun
from protocol.connection import ServerConnection
from protocol.errors import (
    AmqpError,
    CommandInvalid,
    ConnectionForced,
    InternalError,
    NotAllowed,
    SoftError,
)
from protocol.events import (
    ChannelClosed,
    ChannelFailed,
    ChannelOpened,
    ConnectionCloseReceived,
    Disconnect,
    LoginAttempt,
    MethodReceived,
    OpenRequested,
)
from protocol.methods import Basic, Connection, Method
from protocol.sasl import credentials
from storage.engine import Engine

SILENT_CLOSE_S = 3.0
DEFERRED_MAX = 1000
"""Events of held channels above which the connection is not read."""


class Wire(Protocol):
    """What a session needs of its socket."""

    def flush(self) -> None:
        """Write what the connection has queued."""
        ...

    def pause_reading(self, reason: str) -> None:
        """Stop reading; reasons add up."""
        ...

    def resume_reading(self, reason: str) -> None:
        """Withdraw one reason; reading resumes when none is left."""
        ...

    def close_after(self, delay_s: float) -> None:
        """Close the socket after `delay_s` seconds, writing what is queued first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """What all sessions of a node share."""

    turn: Turn
    engine: Engine
    metrics: NodeMetrics
    entropy: Entropy
    observer: Observer
    auth: Auth
    alarms: Alarms
    vhosts: dict[str, Vhost]
    replies: Callable[[Vhost], ReplyTargets]
    sessions: set[Session]
    connection_max: int | None = None
    consumer_max_per_channel: int | None = None
    write_budget_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Both ends of the socket."""

    host: str
    port: int
    local_host: str
    local_port: int
    is_loopback: bool

    @property
    def name(self) -> str:
        """RabbitMQ's connection name."""
        return f"{self.host}:{self.port} -> {self.local_host}:{self.local_port}"


@dataclass(slots=True)
class _Held:
    events: deque[PublishRun | AckRun | MethodReceived | ChannelClosed] = field(
        default_factory=deque
    )


class Session:
    """The broker's side of one client connection."""

    def __init__(self, context: SessionContext, connection: ServerConnection, peer: Peer) -> None:
        self.context = context
        self.connection = connection
        self.peer = peer
        self.name = peer.name
        self.scheduler = context.turn
        self.engine = context.engine
        self.metrics = context.metrics
        self.entropy = context.entropy
        self.wire: Wire | None = None
        self.channels: dict[int, Channel] = {}
        self.user = User(name="")
        self.vhost: Vhost = None  # type: ignore[assignment]  # set by connection.open, before any channel
        self.replies: ReplyTargets = None  # type: ignore[assignment]  # set with the vhost
        self.auth_mechanism = ""
        self.is_open = False
        self.is_ended = False
        self.is_dirty = False
        self.is_congested = False
        self.is_blocked = False
        self.is_publisher = False
        self.pending_bytes = 0
        self.connected_at_ms = context.turn.wall_ms()
        self._was_answered = False
        self._held: dict[int, _Held] = {}
        self._deferred_count = 0
        self._handlers: dict[type, Callable[[Any], None]] = {
            PublishRun: self._on_publish,
            AckRun: self._on_acks,
            MethodReceived: self._on_method,
            ChannelOpened: self._on_channel_opened,
            ChannelClosed: self._on_channel_closed,
            ChannelFailed: self._on_channel_failed,
            LoginAttempt: self._on_login,
            OpenRequested: self._on_open,
            ConnectionCloseReceived: self._on_close,
            Disconnect: self._on_disconnect,
        }

    # -- input --------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Bytes from the socket. Whatever they stage or send is handled at the end of the turn."""
        self.scheduler.touch()
        handlers = self._handlers
        for event in self.connection.receive_data(data):
            handler = handlers.get(event.__class__)
            if handler is not None:
                handler(event)
            else:
                self.fail(event)
            if self.is_ended:
                break
        if self._was_answered:
            # A client that did not wait for tune or open-ok may have sent more.
            self._was_answered = False
            self.receive(b"")
        if self.connection.out:
            self.scheduler.output_dirty(self)

    def _on_publish(self, run: PublishRun) -> None:
        channel = self.channels[run.channel]
        if channel.is_held or channel.is_closed:
            self._defer(channel, run)
            return
        try:
            basic.publish(channel, run)
        except Exception as error:  # noqa: BLE001 - the one place; everything else propagates to it
            self._guard(channel, error, 60, 40)
        self.is_publisher = True
        self.scheduler.output_dirty(
            self
        )  # a turn has to end: what was staged is handed over there, consumers or not
        alarms = self.context.alarms
        if alarms.active and not self.is_blocked:
            self.block()
        if alarms.is_lagging and self.wire is not None:
            self.wire.pause_reading("backlog")

    def _on_acks(self, run: AckRun) -> None:
        channel = self.channels[run.channel]
        if channel.is_held or channel.is_closed:
            self._defer(channel, run)
            return
        try:
            basic.ack(channel, run.first_tag, run.last_tag, multiple=run.multiple)
        except Exception as error:  # noqa: BLE001
            self._guard(channel, error, 60, 80)

    def _on_method(self, event: MethodReceived) -> None:
        channel = self.channels[event.channel]
        if channel.is_held or channel.is_closed:
            self._defer(channel, event)
            return
        method = event.method
        handler = HANDLERS.get(method.name)
        try:
            if handler is None:
                message = "unimplemented method"
                raise CommandInvalid(message)
            handler(channel, method)
        except Exception as error:  # noqa: BLE001
            self._guard(channel, error, method.class_id, method.method_id)

    def _guard(self, channel: Channel, error: Exception, class_id: int, method_id: int) -> None:
        """Turn what a handler raised into the close that the peer gets."""
        if not isinstance(error, AmqpError):
            self.context.observer.bug_found(self.name, error)
            error = InternalError()
        error.class_id, error.method_id = class_id, method_id
        if isinstance(error, SoftError):
            self._fail_channel(channel, error)
        else:
            self.fail(error)

    def _fail_channel(self, channel: Channel, error: AmqpError) -> None:
        self.context.observer.channel_failed(
            self.name, channel.number, int(error.reply_code), error.reply_text
        )
        self._end_channel(channel)
        self.connection.close_channel(channel.number, error, error.class_id, error.method_id)
        self.scheduler.output_dirty(self)

    def fail(self, error: AmqpError) -> None:
        """Close the connection because of an error."""
        self.context.observer.connection_failed(self.name, int(error.reply_code), error.reply_text)
        self._end_channels()
        self.is_ended = False  # close-ok must still be read
        self.connection.close_with(error)
        self.scheduler.output_dirty(self)
        self._close_after(self.connection.close_timeout_s)

    # -- held channels ------------------------------------------------------------------------------------------

    def _defer(self, channel: Channel, event: Any) -> None:
        if channel.is_closed:
            return  # it failed earlier in what was read together; RabbitMQ drops what follows too
        self._held.setdefault(channel.number, _Held()).events.append(event)
        self._deferred_count += 1
        if self._deferred_count == DEFERRED_MAX and self.wire is not None:
            self.wire.pause_reading("held")

    def release(self, channel: Channel) -> None:
        """The channel is no longer held: handle the input that waited, until it is held again."""
        held = self._held.get(channel.number)
        while held is not None and held.events and not channel.is_held and not self.is_ended:
            event = held.events.popleft()
            self._deferred_count -= 1
            if channel.is_closed and not isinstance(event, ChannelClosed):
                continue
            self._handlers[event.__class__](event)
        if held is not None and not held.events:
            self._held.pop(channel.number, None)
        if self._deferred_count < DEFERRED_MAX and self.wire is not None:
            self.wire.resume_reading("held")
        if self.connection.out:
            self.scheduler.output_dirty(self)

    def when_committed(self, callback: Callable[[], None]) -> None:
        """Run `callback` when all that was staged so far is durable."""
        self.engine.require_sync()
        self.scheduler.when_committed(self.engine.epoch, callback)

    # -- output -------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Queue bytes for this turn's write."""
        self.connection.out.append(data)
        self.pending_bytes += len(data)
        if self.pending_bytes > self.context.write_budget_bytes:
            self.is_congested = True
        if not self.is_dirty:
            self.scheduler.output_dirty(self)

    def send(self, channel: int, method: Method) -> None:
        """Queue a method frame for this turn's write."""
        self.connection.send(channel, method)
        if not self.is_dirty:
            self.scheduler.output_dirty(self)

    def flush(self) -> None:
        """End-of-turn stage 4: one write."""
        if self.wire is not None:
            self.wire.flush()

    def drained(self, *, is_paused: bool) -> None:
        """The socket took what was written (or not, while paused): deliveries may go on."""
        self.pending_bytes = 0
        was_congested = self.is_congested
        self.is_congested = is_paused
        if was_congested and not is_paused:
            for channel in self.channels.values():
                channel.unblock_consumers()

    def cancel_notice(self, channel: int, tag: str, *, is_durable: bool) -> None:
        """Send basic.cancel if the client announced that it understands it.

        After the delete-ok, should the client itself have deleted the queue: that reply leaves in this turn, or waits
        for the disk.
        """
        if not self.connection.has_capability("consumer_cancel_notify"):
            return

        def notify() -> None:
            if channel in self.channels:
                self.send(channel, Basic.Cancel(consumer_tag=tag, nowait=True))

        if is_durable:
            self.scheduler.call_later(0, lambda: self.when_committed(notify))
        else:
            self.scheduler.call_later(0, notify)

    # -- login and open -----------------------------------------------------------------------------------------

    def _on_login(self, event: LoginAttempt) -> None:
        self.auth_mechanism = event.mechanism
        self.metrics.auth_attempts += 1
        try:
            given = credentials(event.mechanism, event.response)
            self.user = self.context.auth.authenticate(
                given.username, given.password, is_loopback=self.peer.is_loopback
            )
        except LoginRefused as refusal:
            self.metrics.auth_failures += 1
            self.context.observer.login_refused(self.name, event.mechanism, str(refusal))
            self._close_after(self.connection.refuse_login().delay_s)
        except AmqpError as error:
            self.metrics.auth_failures += 1
            self.context.observer.login_refused(self.name, event.mechanism, error.reply_text)
            self.is_ended = True
            self._close_after(SILENT_CLOSE_S)
        else:
            self.connection.accept_login()
            self._was_answered = True
        self.scheduler.output_dirty(self)

    def _on_open(self, event: OpenRequested) -> None:
        try:
            self._enter(event.vhost)
        except AmqpError as error:
            error.class_id, error.method_id = 10, 40
            self.fail(error)
            return
        self.connection.accept_open()
        self._was_answered = True
        self.is_open = True
        self.metrics.connections_opened += 1
        properties = self.connection.client_properties
        self.context.observer.connection_authenticated(
            self.name, self.user.name, self.vhost.name, str(properties.get("connection_name", ""))
        )

    def _enter(self, name: str) -> None:
        limit = self.context.connection_max
        if limit is not None and sum(each.is_open for each in self.context.sessions) >= limit:
            raise NotAllowed(f"connection refused: node connection limit ({limit}) is reached")
        vhost = self.context.vhosts.get(name)
        if vhost is None:
            raise NotAllowed(f"vhost {name} not found")
        if not self.context.auth.may_enter(self.user, name):
            raise NotAllowed(f"access to vhost '{name}' refused for user '{self.user.name}'")
        self.vhost = vhost
        self.replies = self.context.replies(vhost)

    @property
    def auth_generation(self) -> int:
        """Rises with every change of users and permissions."""
        return self.context.auth.generation

    def check(self, permission: Any, kind: Any, name: str) -> None:
        """Raise AccessRefused unless the user has the permission."""
        self.context.auth.check(self.user, self.vhost.name, permission, kind, name)

    def check_topic(self, permission: Any, exchange: str, routing_key: str) -> None:
        """Raise AccessRefused unless the user may use this key with the topic exchange."""
        self.context.auth.check_topic(self.user, self.vhost.name, permission, exchange, routing_key)

    # -- channels -----------------------------------------------------------------------------------------------

    def _on_channel_opened(self, event: ChannelOpened) -> None:
        self.channels[event.channel] = Channel(event.channel, self)
        self.metrics.channels_opened += 1

    def _on_channel_closed(self, event: ChannelClosed) -> None:
        channel = self.channels.get(event.channel)
        if channel is not None and channel.is_held and event.by_client:
            self._defer(channel, event)
            return
        if channel is not None:
            self._end_channel(channel)
            self.channels.pop(event.channel, None)
        if event.by_client:
            self.connection.channel_close_ok(event.channel)
            self.scheduler.output_dirty(self)

    def _on_channel_failed(self, event: ChannelFailed) -> None:
        channel = self.channels.get(event.channel)
        if channel is not None:
            self._guard(channel, event.error, event.error.class_id, event.error.method_id)

    def _end_channel(self, channel: Channel) -> None:
        if not channel.is_closed:
            channel.close()
            self.metrics.channels_closed += 1

    def _end_channels(self) -> None:
        self.is_ended = True
        for channel in list(self.channels.values()):
            self._end_channel(channel)
        self.channels.clear()
        if self.vhost is not None:
            self.vhost.delete_exclusive(self)

    # -- alarms and the end -------------------------------------------------------------------------------------

    def block(self) -> None:
        """An alarm is on and this connection publishes: stop reading it."""
        self.is_blocked = True
        if self.wire is not None:
            self.wire.pause_reading("alarm")
        if self.connection.has_capability("connection.blocked"):
            self.send(0, Connection.Blocked(reason=self.context.alarms.reason))

    def unblock(self) -> None:
        """All alarms are off."""
        if not self.is_blocked:
            return
        self.is_blocked = False
        if self.connection.has_capability("connection.blocked"):
            self.send(0, Connection.Unblocked())
        if self.wire is not None:
            self.wire.resume_reading("alarm")

    def force_close(self, text: str) -> None:
        """Close from our side: an operator's command, the node stops, the vhost or user is gone."""
        if not self.is_ended:
            self.fail(ConnectionForced(text))

    def _on_close(self, event: ConnectionCloseReceived) -> None:
        self._end_channels()
        self.connection.connection_close_ok()
        self.scheduler.output_dirty(self)
        self._close_after(SILENT_CLOSE_S)

    def _on_disconnect(self, event: Disconnect) -> None:
        if not self.is_ended:
            self._end_channels()
        if event.reason:
            self.context.observer.connection_failed(self.name, 0, event.reason)
        self._close_after(event.delay_s)

    def _close_after(self, delay_s: float) -> None:
        if self.wire is not None:
            self.wire.close_after(delay_s)

    def lost(self, reason: str) -> None:
        """The socket is gone."""
        self.context.sessions.discard(self)
        if not self.is_ended:
            self._end_channels()
        if self.is_open:
            self.is_open = False
            self.metrics.connections_closed += 1
            self.context.observer.connection_closed(
                self.name, self.user.name, self.vhost.name, reason
            )
