"""One connection: login, vhost, channels, and the single place where errors become closes.

A session takes the events of its `ServerConnection` in order, finds the channel and calls the handler. Handlers
raise, and the `_on_...` method that called them gives what was raised to `_guard`, which stamps the failing method's
ids and closes the channel (soft errors) or the connection (hard ones). Anything else that is raised is a bug: logged,
answered with 541. What fails on channel 0 (login, connection.open, a channel too many) is answered where it is found,
because each of these has a close of its own.

State owned: identity, the channel table, the blocked flag and what waits behind it. Sockets are the transport's, seen
through `Wire`; who may come in is `broker.session.admission`'s, input of held channels `broker.session.held`'s
business.

Longer than most modules because every event of a connection ends here: one place for errors needs one class.

Source: RabbitMQ's rabbit_reader.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.methods import HANDLERS, unknown
from burrowmq.broker.channel.methods.basic import settle
from burrowmq.broker.channel.methods.publish import publish
from burrowmq.broker.channel.reply import ReplyTargets
from burrowmq.broker.machine.alarms import Alarms
from burrowmq.broker.peer.wire import Peer, Wire
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.rules.auth import Auth, LoginRefused, User
from burrowmq.broker.rules.rights import Rights
from burrowmq.broker.session.admission import Admission
from burrowmq.broker.session.demands import Demands
from burrowmq.broker.session.held import ChannelEvent, HeldInput
from burrowmq.broker.turn.clock import Entropy, Scheduler, Timer
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.protocol.codec import AckRun, PublishRun
from burrowmq.protocol.connection.server import ServerConnection
from burrowmq.protocol.errors import (
    AmqpError,
    ConnectionForced,
    InternalError,
    SoftError,
)
from burrowmq.protocol.events import (
    ChannelClosed,
    ChannelFailed,
    ChannelOpened,
    ConnectionCloseReceived,
    Disconnect,
    Event,
    LoginAttempt,
    MethodReceived,
    OpenRequested,
)
from burrowmq.protocol.methods import Basic, Connection, Method, method_name
from burrowmq.records import NamedTuple, dataclass
from burrowmq.storage.engine import Engine

SILENT_CLOSE_S = 3.0
EXCLUSIVE_AT_ONCE = 200
"""Exclusive queues that are deleted in one turn when their connection ends; more would stall everybody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """What all sessions of a node share."""

    scheduler: Scheduler
    engine: Engine
    metrics: NodeMetrics
    entropy: Entropy
    observer: Observer
    auth: Auth
    admission: Admission
    alarms: Alarms
    replies: Callable[[Vhost], ReplyTargets]
    on_lost: Callable[[Session], None]
    """The session's socket is gone, and with it the session."""
    on_opened: Callable[[Session], None] = lambda _: None
    """It has entered its virtual host; what is negotiated is negotiated."""
    consumer_max_per_channel: int | None = None
    write_budget_bytes: int = 1 << 20
    confirms_cover_acks: bool = True


class Entered(NamedTuple):
    """What connection.open has entered: the virtual host, who waits for direct replies in it, what the user may do."""

    vhost: Vhost
    replies: ReplyTargets
    rights: Rights


class Session:
    """The broker's side of one client connection."""

    def __init__(self, context: SessionContext, connection: ServerConnection, peer: Peer) -> None:
        self.context = context
        self.connection = connection
        self.peer = peer
        self.name = peer.name
        self.scheduler = context.scheduler
        self.engine = context.engine
        self.metrics = context.metrics
        self.entropy = context.entropy
        self.consumer_max = context.consumer_max_per_channel
        self.wire: Wire | None = None
        self.channels: dict[int, Channel] = {}
        self.user = User(name="")
        self.entered: Entered | None = None  # by connection.open, before any channel
        self.vhost_name = ""  # empty until then
        self.auth_mechanism = ""
        self.is_open = False
        self.is_ended = False
        self.is_dirty = False
        self.is_congested = False
        self.is_blocked = False
        self._was_told_blocked = False
        self.is_publisher = False
        self.pending_bytes = 0
        # Levels whose acks the next confirm covers, as the store calls them; None: no confirm covers any.
        self.settled: set[int] | None = None
        self._demands = Demands()
        self.connected_at_ms = context.scheduler.wall_ms()
        self._was_answered = self._has_failed = self._is_closing = False
        self._held = HeldInput()
        self._unread: list[Event] = []
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
        self._take(self.connection.receive_data(data))
        if self._was_answered:
            # A client that did not wait for tune or open-ok may have sent more.
            self._was_answered = False
            self.receive(b"")
        if self.connection.out:
            self.scheduler.output_dirty(self)

    def receive_in_place(self, count: int) -> None:
        """`receive` for octets that were written to where they belong (`ServerConnection.room`)."""
        if events := self.connection.receive_in_place(count):  # else there is more to come first
            self._take(events)
            self.receive(b"")

    def _take(self, events: list[Event]) -> None:
        """Handle events in order; under an alarm the first publish and all behind it wait, as if still unread."""
        handlers = self._handlers
        alarms = self.context.alarms.active
        for event in events:
            if alarms and (self.is_blocked or event.__class__ is PublishRun):
                self._unread.append(event)
                if not self.is_blocked:
                    self.block()
                continue
            handler = handlers.get(event.__class__)
            if handler is not None:
                handler(event)
            else:
                assert isinstance(event, AmqpError)
                self.fail(event)
            if self.is_ended or self._has_failed:
                break  # what was read together with it is of no interest any more

    def _on_publish(self, run: PublishRun) -> None:
        channel = self.channels[run.channel]
        if channel.is_held or channel.is_closed:
            self._defer(channel, run)
            return
        self.is_publisher = True
        try:
            publish(channel, run)
        except Exception as error:  # noqa: BLE001 - whatever it is, `_guard` answers
            self.guard(channel, error, 60, 40)
        self.scheduler.touch()  # a turn has to end: what was staged is handed over there
        if self.context.alarms.behind and self.wire is not None and self.is_publisher:
            for reason in self.context.alarms.behind:
                self.wire.pause_reading(reason)

    def intercept(self, take: Callable[[Channel, PublishRun], PublishRun | None]) -> None:
        """Have each run of publishes go through `take` first: what that gives back is published."""

        def on_publish(run: PublishRun) -> None:
            channel = self.channels[run.channel]
            left: PublishRun | None = run
            if not (channel.is_held or channel.is_closed):
                left = take(channel, run)
            if left is not None:
                self._on_publish(left)

        self._handlers[PublishRun] = on_publish

    def _on_acks(self, run: AckRun) -> None:
        channel = self.channels[run.channel]
        if channel.is_held or channel.is_closed:
            self._defer(channel, run)
            return
        try:
            settle(channel, run)
        except Exception as error:  # noqa: BLE001 - as above
            self.guard(channel, error, 60, run.method)

    def _on_method(self, event: MethodReceived) -> None:
        channel = self.channels[event.channel]
        if channel.is_held or channel.is_closed:
            self._defer(channel, event)
            return
        method = event.method
        handler = HANDLERS.get(method.name, unknown)
        try:
            handler(channel, method)
        except Exception as error:  # noqa: BLE001 - as above
            self.guard(channel, error, *method.ids)

    def guard(self, channel: Channel, error: Exception, class_id: int, method_id: int) -> None:
        """Turn what a handler raised into the close that the peer gets."""
        if not isinstance(error, AmqpError):
            self.context.observer.bug_found(self.name, error)
            error = InternalError()
        error.class_id, error.method_id = class_id, method_id
        if isinstance(error, SoftError):
            self.fail_channel(channel, error)
        else:
            self.fail(error)

    def fail_channel(self, channel: Channel, error: AmqpError) -> None:
        """Close a channel because of an error."""
        self.context.observer.channel_failed(
            self.name,
            channel.number,
            int(error.reply_code),
            error.reply_text,
            method_name(error.class_id, error.method_id),
            self.user.name,
        )
        self._end_channel(channel)
        self.connection.close_channel(channel.number, error, error.class_id, error.method_id)
        if self._is_closing:
            self.scheduler.call_later(0, self._close_when_quiet)
        self.scheduler.output_dirty(self)

    def fail(self, error: AmqpError) -> None:
        """Close the connection because of an error."""
        self.context.observer.connection_failed(
            self.name, int(error.reply_code), error.reply_text, self.user.name
        )
        self._end_channels()
        self.is_ended = self.is_blocked = self.is_publisher = False  # close-ok must be read
        self._has_failed = True
        self._unread.clear()
        if self.wire is not None:
            for reason in ("alarm", "backlog", "cluster", "held"):
                self.wire.resume_reading(reason)
        self.connection.close_with(error)
        self.scheduler.output_dirty(self)
        self._close_after(self.connection.close_timeout_s)

    # -- held channels ------------------------------------------------------------------------------------------

    def _defer(self, channel: Channel, event: ChannelEvent) -> None:
        if channel.is_closed:
            return  # it failed earlier in what was read together; RabbitMQ drops what follows too
        self._held.defer(channel.number, event)
        if self._held.is_full and self.wire is not None:
            self.wire.pause_reading("held")

    def release(self, channel: Channel) -> None:
        """The channel is no longer held: handle the input that waited, until it is held again."""
        while not channel.is_held and not self.is_ended:
            event = self._held.pop(channel.number)
            if event is None:
                break
            if channel.is_closed and not isinstance(event, ChannelClosed):
                continue
            self._handlers[event.__class__](event)
        if not self._held.is_full and self.wire is not None:
            self.wire.resume_reading("held")
        if self._is_closing:
            self._close_when_quiet()
        if self.connection.out:
            self.scheduler.output_dirty(self)

    def when_committed(self, callback: Callable[[], None]) -> Timer:
        """Run `callback` when all that was staged so far is durable."""
        self.engine.require_sync()
        return self.scheduler.when_committed(self.engine.epoch, callback)

    def remember_acks(self) -> None:
        """A channel confirms its publishes from now on: each covers what was acked before, where that is wanted."""
        if self.settled is None and self.context.confirms_cover_acks:
            self.settled = set()

    def demand_acks(self) -> None:
        """What was acked so far is written with the commit that collects."""
        if self.settled:
            self.engine.require_acks(self.settled)
            self._demands.note(self.engine.epoch, self.settled)
            self.settled.clear()

    def note_refused(self, epoch: int, queues: AbstractSet[str], acks_of: AbstractSet[int]) -> None:
        """The disk has refused what the commit `epoch` has for these queues, and the acks of some."""
        refused = self._demands.refused(epoch, acks_of)
        channels = list(self.channels.values())
        is_due = bool(refused)
        told = [each.note_refused(epoch, queues, are_acks_refused=is_due) for each in channels]
        is_waiting = any(each.waits_for(self.engine.epoch) for each in channels if refused)
        again = self._demands.due_again(epoch, refused, is_nacked=any(told), is_waiting=is_waiting)
        if again and is_waiting:  # what came behind those that wait is due with others
            self.engine.require_acks(again)
            self._demands.note_again(self.engine.epoch, again)
        elif self.settled is not None:
            self.settled |= again

    # -- output -------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Queue bytes for this turn's write."""
        self.connection.out.append(data)
        self.pending_bytes += len(data)
        if self.pending_bytes > self.context.write_budget_bytes:
            self.is_congested = True
        if not self.is_dirty:
            self.scheduler.output_dirty(self)

    def write_parts(self, parts: list[bytes]) -> None:
        """Queue octets that are large: nobody joins them."""
        self.connection.out += parts[:-1]
        self.pending_bytes += sum(map(len, parts[:-1]))
        self.write(parts[-1])

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
                channel.drained()

    def cancel_notice(self, channel: int, tag: str, *, is_durable: bool) -> None:
        """Send basic.cancel if the client announced that it understands it.

        After the delete-ok, should the client itself have deleted the queue: that reply leaves in this turn, or waits
        for the disk.
        """
        if not self.connection.has_capability("consumer_cancel_notify"):
            return

        holder = self.channels[channel]

        def notify() -> None:
            # Another channel of that number, another consumer of that tag: the client knows, and it is not theirs.
            if self.channels.get(channel) is holder and tag not in holder.consumers:
                self.send(channel, Basic.Cancel(consumer_tag=tag, nowait=True))

        def wait() -> None:
            self.when_committed(notify)

        self.scheduler.call_later(0, wait if is_durable else notify)

    # -- login and open -----------------------------------------------------------------------------------------

    def _on_login(self, event: LoginAttempt) -> None:
        self.auth_mechanism = event.mechanism
        try:
            self.user = self.context.admission.log_in(event, self.peer)
        except LoginRefused:
            self._refuse_login_after(self.context.auth.refusal_delay_s)
        except AmqpError:
            self.is_ended = True
            self._close_after(SILENT_CLOSE_S)
        else:
            self.connection.accept_login()
            self._was_answered = True
        self.scheduler.output_dirty(self)

    def _refuse_login_after(self, delay_s: float) -> None:
        """Refuse the login; until then the connection reads nothing that the client may have sent along."""
        if delay_s:
            self.scheduler.call_later(delay_s, lambda: self._refuse_login(delay_s))
        else:
            self._refuse_login(0.0)

    def _refuse_login(self, waited_s: float) -> None:
        if self.is_ended:
            return
        delay_s = self.connection.refuse_login().delay_s
        if self.connection.state != "closing":
            # The client is told nothing: the silence lasts as long as RabbitMQ's in all.
            delay_s = max(0.0, delay_s - waited_s)
        self._close_after(delay_s)
        self.scheduler.output_dirty(self)

    def _on_open(self, event: OpenRequested) -> None:
        try:
            vhost = self.context.admission.enter(self.user, event.vhost)
        except AmqpError as error:
            error.class_id, error.method_id = 10, 40
            self.fail(error)
            return
        rights = Rights(self.context.auth, self.user, vhost.name)
        self.entered = Entered(vhost, self.context.replies(vhost), rights)
        self.vhost_name = vhost.name
        self.connection.accept_open()
        self._was_answered = True
        self.is_open = True
        self.context.on_opened(self)
        self.metrics.connections_opened += 1
        properties = self.connection.client_properties
        self.context.observer.connection_authenticated(
            self.name, self.user.name, vhost.name, str(properties.get("connection_name", ""))
        )

    @property
    def vhost(self) -> Vhost | None:
        """The virtual host that it has entered."""
        return None if self.entered is None else self.entered.vhost

    # -- channels -----------------------------------------------------------------------------------------------

    def _on_channel_opened(self, event: ChannelOpened) -> None:
        try:
            self.context.admission.open_channel(self.user)
        except AmqpError as error:
            self.fail(error)  # with ids 0, as RabbitMQ: it is not the method that is wrong
            return
        assert self.entered is not None, "ServerConnection opens no channel before connection.open"
        self.connection.accept_channel(event.channel)
        self.channels[event.channel] = Channel(event.channel, self, *self.entered)
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
        if channel is not None and channel.is_held:
            self._defer(channel, event)
        elif channel is not None and not channel.is_closed:
            self.guard(channel, event.error, event.error.class_id, event.error.method_id)

    def _end_channel(self, channel: Channel) -> None:
        if not channel.is_closed:
            channel.close()
            self.metrics.channels_closed += 1
            if self.entered is not None:
                self.entered.vhost.past.add_channel(channel.metrics)

    def _end_channels(self) -> None:
        self.is_ended = True
        for channel in list(self.channels.values()):
            self._end_channel(channel)
        self.channels.clear()
        if self.entered is not None:
            vhost = self.entered.vhost
            self._delete_exclusive(vhost, vhost.exclusive_queues(self))

    def _delete_exclusive(self, vhost: Vhost, queues: list[QueuePort]) -> None:
        """Delete the connection's own queues, the last declared first: a chunk now, the rest in later turns."""
        for queue in queues[-EXCLUSIVE_AT_ONCE:]:
            vhost.delete_queue(queue)
        del queues[-EXCLUSIVE_AT_ONCE:]
        self.scheduler.touch()
        if queues:
            self.scheduler.call_later(0, lambda: self._delete_exclusive(vhost, queues))

    # -- alarms and the end -------------------------------------------------------------------------------------

    def block(self) -> None:
        """An alarm is on and this connection publishes: stop reading it."""
        self.is_blocked = self.is_publisher = True
        if self.wire is not None:
            self.wire.pause_reading("alarm")
        self._say_blocked()

    def tell_blocked(self) -> None:
        """What the client waits for comes no sooner than an alarm ends: say so; it is still read until it publishes."""
        is_alive = self.is_open and not (self.is_ended or self._has_failed)
        if is_alive and any(channel.is_waiting for channel in self.channels.values()):
            self._say_blocked()

    def _say_blocked(self) -> None:
        if not self._was_told_blocked and self.connection.has_capability("connection.blocked"):
            self._was_told_blocked = True
            self.send(0, Connection.Blocked(reason=self.context.alarms.reason))

    def unblock(self) -> None:
        """All alarms are off: tell the client, and handle what waited."""
        if self._was_told_blocked:
            self._was_told_blocked = False
            if not (self.is_ended or self._has_failed):
                self.send(0, Connection.Unblocked())
        if not self.is_blocked:
            return
        self.is_blocked = False
        waiting, self._unread = self._unread, []
        if not (self.is_ended or self._has_failed):
            self._take(waiting)
        if self.connection.out:
            self.scheduler.output_dirty(self)  # the connection itself answers some of it
        if self.wire is not None:
            self.wire.resume_reading("alarm")

    def cancel_consumers(self) -> None:
        """Tell a client that understands it that its consumers end: their queues go together with the connection."""
        if self.connection.has_capability("consumer_cancel_notify"):
            for channel in self.channels.values():
                for tag in channel.consumers:
                    self.send(channel.number, Basic.Cancel(consumer_tag=tag, nowait=True))

    def force_close(self, text: str) -> None:
        """Close from our side: an operator's command, the node stops, the vhost or user is gone."""
        if not (self.is_ended or self._has_failed):
            self.fail(ConnectionForced(text))

    def store_failed(self) -> None:
        """Close because the store has failed: in RabbitMQ's words the virtual host is down."""
        if not (self.is_ended or self._has_failed):
            self.fail(InternalError(f"vhost '{self.vhost_name}' is down" if self.is_open else ""))

    def _on_close(self, event: ConnectionCloseReceived) -> None:
        self._is_closing = True
        self._close_when_quiet()

    def _close_when_quiet(self) -> None:
        """Answer connection.close once no channel is held: what the client sent before it takes effect."""
        if self.is_ended or self._has_failed:
            return
        if any(channel.is_held and not channel.is_closed for channel in self.channels.values()):
            return
        self._is_closing = False
        self._end_channels()
        self.connection.connection_close_ok()
        self.scheduler.output_dirty(self)
        self._close_after(SILENT_CLOSE_S)

    def _on_disconnect(self, event: Disconnect) -> None:
        if not self.is_ended:
            self._end_channels()
        if event.reason:
            self.context.observer.connection_failed(self.name, 0, event.reason, self.user.name)
        self._close_after(event.delay_s)

    def _close_after(self, delay_s: float) -> None:
        if self.wire is not None:
            self.wire.close_after(delay_s)

    def lost(self, reason: str) -> None:
        """The socket is gone."""
        self.context.on_lost(self)
        if not self.is_ended:
            self._end_channels()
        if self.is_open:
            self.is_open = False
            self.metrics.connections_closed += 1
            if self.entered is not None and self.wire is not None:
                self.entered.vhost.past.add_octets(self.wire.bytes_received, self.wire.bytes_sent)
            self.context.observer.connection_closed(
                self.name, self.user.name, self.vhost_name, reason
            )
        self._handlers.clear()  # they refer to this, which would stay until the collector comes by
