"""One blocking connection with one channel: the handshake and everything that has a reply.

State: the transport, what the broker said of itself, whether it blocks publishers, and the frames that
came while a reply was awaited. Made by `connect`; used by one thread. Consumer and Publisher share it.

Invariants: every wait ends after `timeout_s` and names its step; a close from the broker raises with
its code and text wherever it is found; after an error that says closed or lost nothing is sent any
more. Heartbeats are off unless the address asks for them, since nothing runs between two calls: then
they are sent while waiting, and a peer that is silent for two of them is lost. TCP keepalive is always
on. Nothing reconnects by itself: what an unfinished step meant is for the caller to decide.

Source: AMQP 0-9-1 section 2.2; RabbitMQ's extensions connection.blocked and authentication failure.
"""

from __future__ import annotations

import contextlib
import platform
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Self

from pyspark_amqp.wire import framing as f
from pyspark_amqp.wire.address import Address, parse_addresses
from pyspark_amqp.wire.errors import (
    BadFrame,
    ChannelClosed,
    ConnectFailed,
    ConnectionClosed,
    ConnectionLost,
    LoginRefused,
    StepTimeout,
    WireError,
)
from pyspark_amqp.wire.table import FieldTable, decode_table, encode_table
from pyspark_amqp.wire.transport import Transport

TIMEOUT_S: Final = 30.0
_CLOSE_TIMEOUT_S: Final = 5.0
_ACCESS_REFUSED, _NOT_ALLOWED = 403, 530


def connect(
    address: str | Address | Sequence[Address], *, timeout_s: float = TIMEOUT_S
) -> Connection:
    """Connect to the first of the addresses that answers; a refused login is not tried elsewhere.

    Raises: BadAddress, ConnectFailed, LoginRefused; of a broker that greets and then hangs, or goes, what it did.
    """
    if isinstance(address, Address):
        address = [address]
    candidates = parse_addresses(address) if isinstance(address, str) else list(address)
    failures: list[WireError] = []
    for candidate in candidates:
        try:
            return Connection(candidate, timeout_s)
        except (ConnectFailed, ConnectionLost, StepTimeout) as error:
            failures.append(error)
    if len(failures) == 1:
        raise failures[0]
    place = ", ".join(failure.place for failure in failures)
    reasons = "; ".join(f"{failure.place}: {failure.reason}" for failure in failures)
    raise ConnectFailed(place, "connecting to any of them", reasons) from failures[-1]


class Connection:
    """An open connection with channel 1 open on it."""

    def __init__(self, address: Address, timeout_s: float = TIMEOUT_S) -> None:
        self.place = address.place
        self.timeout_s = timeout_s
        self.frame_max = f.FRAME_MAX
        self.server_properties: FieldTable = {}
        self.blocked_reason: str | None = None
        self.is_open = True
        self.on_frame: Callable[[f.Frame], bool] | None = None
        """Is offered frames of channel 1 that are no awaited reply (deliveries, confirms); True if it took one."""
        self._heartbeat_s = 0
        self._waiting: list[f.Frame] = []
        password = address.find_password()
        self.transport = Transport(address)
        try:
            self._shake_hands(address, password)
        except BaseException:
            self._drop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- handshake --------------------------------------------------------------------------------

    def _shake_hands(self, address: Address, password: str) -> None:
        timeout_s = address.connect_timeout_s
        self.transport.send(f.PROTOCOL_HEADER, timeout_s, "greeting")
        start = self._first_frame(timeout_s)
        self.server_properties = _server_properties(start.payload)
        self._send_start_ok(address, password)
        step = f"logging in as '{address.user}'"
        try:
            tune = self._reply(f.CONNECTION_TUNE, step, 0)
        except ConnectionClosed as error:
            raise LoginRefused(self.place, step, error.reason) from error
        except ConnectionLost as error:
            # RabbitMQ does so with clients that do not understand a refusal; other brokers may do so with all.
            reason = f"{error.reason} (wrong user or password?)"
            raise LoginRefused(self.place, step, reason) from error
        with self.parsing(step):
            self._agree(tune.payload, address.heartbeat_s)
        step = f"opening virtual host '{address.vhost}'"
        arguments = self._checked(step, lambda: f.shortstr(address.vhost) + b"\x00\x00")
        self.send(f.method(f.CONNECTION_OPEN, arguments, 0), step)
        try:
            self._reply(f.CONNECTION_OPEN_OK, step, 0)
        except ConnectionClosed as error:
            if error.reply_code in {_ACCESS_REFUSED, _NOT_ALLOWED}:
                raise LoginRefused(self.place, step, error.reason) from error
            raise
        self.call(f.CHANNEL_OPEN, b"\x00", f.CHANNEL_OPEN_OK)

    def _first_frame(self, timeout_s: float) -> f.Frame:
        """Return connection.start; a peer that sends anything else does not speak AMQP 0-9-1."""
        step = "greeting"
        try:
            found = self.next_frame(time.monotonic() + timeout_s, step)
        except (BadFrame, ConnectionLost) as error:
            reason = f"no AMQP 0-9-1 there ({error.reason})"
            raise ConnectFailed(self.place, step, reason) from error
        if found is None:
            raise ConnectFailed(self.place, step, f"no answer in {timeout_s:g} s")
        if found.method != f.CONNECTION_START:
            raise ConnectFailed(self.place, step, "no AMQP 0-9-1 there")
        return found

    def _send_start_ok(self, address: Address, password: str) -> None:
        capabilities: FieldTable = {
            "authentication_failure_close": True,
            "basic.nack": True,
            "connection.blocked": True,
            "consumer_cancel_notify": True,
            "publisher_confirms": True,
        }
        properties: FieldTable = {
            "product": "pyspark_amqp",
            "platform": f"Python {platform.python_version()}",
            "connection_name": address.connection_name,
            "capabilities": capabilities,
        }
        response = b"\x00" + address.user.encode() + b"\x00" + password.encode()
        arguments = (
            encode_table(properties)
            + f.shortstr("PLAIN")
            + f.longstr(response)
            + f.shortstr("en_US")
        )
        self.send(f.method(f.CONNECTION_START_OK, arguments, 0), "logging in")

    def _agree(self, payload: bytes, wanted_heartbeat_s: int) -> None:
        frame_max = f.U32.unpack_from(payload, 6)[0]
        self.frame_max = min(frame_max or f.FRAME_MAX, f.FRAME_MAX)
        self._heartbeat_s = wanted_heartbeat_s
        arguments = b"\x00\x01" + f.U32.pack(self.frame_max)
        arguments += wanted_heartbeat_s.to_bytes(2, "big")
        self.send(f.method(f.CONNECTION_TUNE_OK, arguments, 0), "tuning")

    @property
    def has_waiting(self) -> bool:
        """Whether frames came before those that are still octets."""
        return bool(self._waiting)

    # ---- sending and waiting --------------------------------------------------------------------------

    def send(self, octets: bytes, step: str, timeout_s: float | None = None) -> None:
        """Send whole frames; the time limit (by default the connection's) runs while the peer takes nothing.

        Raises: ConnectionLost, StepTimeout, and what a close that arrived meanwhile says.
        """
        if not self.is_open:
            raise ConnectionLost(self.place, step, "the connection is closed")
        try:
            self.transport.send(octets, self.timeout_s if timeout_s is None else timeout_s, step)
        except ConnectionLost:
            self._tell_why_closed(step)
            self._drop()
            raise
        except StepTimeout:
            self._drop()  # half a frame may be on its way
            raise

    def call(self, ids: f.MethodId, arguments: bytes, reply: f.MethodId, what: str = "") -> bytes:
        """Send a method on channel 1 and return the payload of its reply, after the four id octets.

        Raises: ChannelClosed, ConnectionClosed, ConnectionLost, StepTimeout.
        """
        step = f"{f.NAMES[ids]} '{what}'" if what else f.NAMES[ids]
        self.send(f.method(ids, arguments), step)
        return self._reply(reply, step).payload[4:]

    def next_frame(self, deadline: float, step: str) -> f.Frame | None:
        """Return the next frame that is the caller's business; None when none came in time.

        Heartbeats, blocked and unblocked are dealt with here; a close raises.
        """
        if self._waiting:
            return self._waiting.pop(0)
        while True:
            try:
                taken = f.take_frame(self.transport.data, self.transport.pos)
            except f.Malformed as error:
                self._drop()
                raise BadFrame(self.place, step, str(error)) from error
            if taken is None:
                if not self.fill(deadline, step):
                    return None
                continue
            found, self.transport.pos = taken
            if found.channel == 0 and self._is_housekeeping(found, step):
                continue
            if found.method == f.CHANNEL_CLOSE:
                self._raise_channel_closed(found.payload, step)
            if found.method == f.CHANNEL_FLOW:
                self.send(f.method(f.CHANNEL_FLOW_OK, found.payload[4:5]), step)
                continue
            return found

    def fill(self, deadline: float, step: str) -> bool:
        """Receive something; False when nothing came by the deadline. Keeps heartbeats going.

        Raises: ConnectionLost.
        """
        if not self.is_open:
            raise ConnectionLost(self.place, step, "the connection is closed")
        while True:
            until = deadline
            if self._heartbeat_s:
                until = min(deadline, self._beat_if_due(step))
            try:
                if self.transport.fill(until, step):
                    return True
            except ConnectionLost:
                self._drop()
                raise
            now = time.monotonic()
            # Judge only after reading: if the caller paused for long, heartbeats wait to be read.
            if self._heartbeat_s and now >= self.transport.heard_at_s + 2 * self._heartbeat_s:
                self._drop()
                reason = f"silent for two heartbeats of {self._heartbeat_s} s"
                raise ConnectionLost(self.place, step, reason)
            if now >= deadline:
                return False

    @contextlib.contextmanager
    def parsing(self, step: str) -> Iterator[None]:
        """Turn what goes wrong with a peer's malformed arguments into BadFrame, and hang up."""
        try:
            yield
        except (f.Malformed, struct.error, IndexError) as error:
            self._drop()
            raise BadFrame(self.place, step, f"malformed arguments ({error})") from error

    def reply_timeout(self, step: str, waited_s: float) -> StepTimeout:
        """Return the error for an answer that did not come, with the likely reason."""
        reason = f"no answer in {waited_s:g} s"
        if self.blocked_reason is not None:
            reason += f"; the broker blocks publishers: {self.blocked_reason}"
        return StepTimeout(self.place, step, reason)

    def _reply(self, ids: f.MethodId, step: str, channel: int = f.CHANNEL) -> f.Frame:
        deadline = time.monotonic() + self.timeout_s
        kept, self._waiting = self._waiting, []
        while (found := self.next_frame(deadline, step)) is not None:
            if found.method == ids and found.channel == channel:
                self._waiting = kept + self._waiting
                return found
            if self.on_frame is None or not self.on_frame(found):
                kept.append(found)
        self._drop()  # a late answer would be taken for that of the next step
        raise self.reply_timeout(step, self.timeout_s)

    def _beat_if_due(self, step: str) -> float:
        """Send a heartbeat after half an interval of silence of ours; return when the next is due."""
        if time.monotonic() >= self.transport.spoke_at_s + self._heartbeat_s / 2:
            self.send(f.HEARTBEAT_FRAME, step)
        return self.transport.spoke_at_s + self._heartbeat_s / 2

    def _is_housekeeping(self, found: f.Frame, step: str) -> bool:
        """Deal with what concerns the whole connection; False: it is an awaited reply."""
        ids = found.method
        if found.type == f.HEARTBEAT or ids == f.CONNECTION_UNBLOCKED:
            self.blocked_reason = None if ids == f.CONNECTION_UNBLOCKED else self.blocked_reason
            return True
        if ids == f.CONNECTION_BLOCKED:
            with self.parsing(step):
                self.blocked_reason = f.read_shortstr(found.payload, 4)[0] or "no reason given"
            return True
        if ids == f.CONNECTION_CLOSE:
            code, text = _close_reason(found.payload)
            self._answer_close(f.method(f.CONNECTION_CLOSE_OK, channel=0), step)
            self._drop()
            raise ConnectionClosed(self.place, step, code, text)
        return False

    def _raise_channel_closed(self, payload: bytes, step: str) -> None:
        code, text = _close_reason(payload)
        self._answer_close(f.method(f.CHANNEL_CLOSE_OK), step)
        self.close()  # the channel is all that the connection was for
        raise ChannelClosed(self.place, step, code, text)

    def _answer_close(self, octets: bytes, step: str) -> None:
        """Say that a close was understood; who has hung up since then has said why all the same."""
        try:
            self.transport.send(octets, self.timeout_s, step)
        except (ConnectionLost, StepTimeout):
            self._drop()

    def _tell_why_closed(self, step: str) -> None:
        """After a failed send: raise what the broker said before it hung up, if it did."""
        self._heartbeat_s = 0  # nothing more can be sent
        try:
            while self.next_frame(time.monotonic(), step) is not None:
                continue
        except (ConnectionLost, BadFrame):
            return

    def _checked(self, step: str, build: Callable[[], bytes]) -> bytes:
        try:
            return build()
        except ValueError as error:
            raise BadFrame(self.place, step, str(error)) from error

    def _drop(self) -> None:
        if self.is_open:
            self.is_open = False
            self.transport.close()

    def close(self) -> None:
        """Say goodbye and close; unacknowledged messages go back to their queues. Never raises."""
        if not self.is_open:
            return
        step = "closing"
        self.on_frame = None
        try:
            arguments = b"\x00\xc8" + f.shortstr("done") + b"\x00\x00\x00\x00"
            self.send(f.method(f.CONNECTION_CLOSE, arguments, 0), step)
            deadline = time.monotonic() + min(self.timeout_s, _CLOSE_TIMEOUT_S)
            while (found := self.next_frame(deadline, step)) is not None:
                if found.method == f.CONNECTION_CLOSE_OK:
                    break
        except (ConnectionLost, ConnectionClosed, ChannelClosed, StepTimeout, BadFrame):
            return
        finally:
            self._drop()


def _close_reason(payload: bytes) -> tuple[int, str]:
    try:
        return int.from_bytes(payload[4:6], "big"), f.read_shortstr(payload, 6)[0]
    except f.Malformed:
        return 0, "(unreadable close)"


def _server_properties(payload: bytes) -> FieldTable:
    try:
        size = f.U32.unpack_from(payload, 6)[0]
        return decode_table(payload[6 : 10 + size])
    except (ValueError, struct.error):
        return {}
