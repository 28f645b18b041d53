"""TCP proxies on loopback that are cut as cables are: with a reset, or without a word, both ways or one way.

    a gate     a port of its own before another port, named by who connects and who is connected to
    open       passes on what comes
    reset      its connections break, new ones do so at once
    silent     nothing passes, nothing breaks: what was sent waits, new connections wait for an answer; when the gate opens
               again, all of it goes on
    one way    silent for what comes from one side only

State: one thread, which owns all sockets; a gate's state is set from any thread, and holds when `set` returns. Callers:
tests of partitions. Invariant: what a silent gate was given is passed on later, in its order, or never.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
from dataclasses import dataclass, field
from enum import Enum

from tests.support.ports import free_port

_RESET = struct.pack("ii", 1, 0)
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_CHUNK = 1 << 18


class State(Enum):
    """What a gate does."""

    OPEN = "open"
    RESET = "reset"
    SILENT = "silent"
    NOTHING_THERE = "nothing there"
    """What who has connected says does not arrive."""
    NOTHING_BACK = "nothing back"
    """What it is answered does not."""


class _End:
    """A socket of a connection; `pending` is what it is to be sent."""

    def __init__(self, gate: Gate, own: socket.socket, *, is_caller: bool) -> None:
        self.gate = gate
        self.socket = own
        self.is_caller = is_caller
        self.peer: _End = self
        self.pending = b""
        self.mask = 0

    def wanted(self) -> int:
        """Events that it is to be told of."""
        state = self.gate.state
        if state is State.SILENT:
            return 0
        silent = State.NOTHING_THERE if self.is_caller else State.NOTHING_BACK
        deaf = State.NOTHING_BACK if self.is_caller else State.NOTHING_THERE
        mask = _READ if state is not silent and not self.peer.pending else 0
        return mask | (_WRITE if self.pending and state is not deaf else 0)


@dataclass(eq=False)
class Gate:
    """One way: from whom to whom, and where it leads."""

    source: str
    target: str
    port: int
    target_port: int
    listener: socket.socket
    state: State = State.OPEN
    ends: set[_End] = field(default_factory=set)


class Gates:
    """All of them, and the thread that serves them."""

    def __init__(self) -> None:
        self._gates: list[Gate] = []
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._wakes, self._wake = socket.socketpair()
        self._wakes.setblocking(False)
        self._selector.register(self._wakes, _READ)
        self._is_over = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def add(self, source: str, target: str, target_port: int) -> int:
        """The port at which `source` reaches `target`."""
        port = free_port()
        listener = socket.create_server(("127.0.0.1", port))
        listener.setblocking(False)
        gate = Gate(source, target, port, target_port, listener)
        with self._lock:
            self._gates.append(gate)
            self._selector.register(listener, _READ, gate)
        self._wake.send(b"w")
        return port

    def set(self, one: str, other: str, state: State, *, is_directed: bool = False) -> None:
        """Between these two, whoever has connected; `is_directed`: only where `one` has."""
        with self._lock:
            for gate in self._gates:
                names = (gate.source, gate.target)
                if names == (one, other) or (names == (other, one) and not is_directed):
                    self._set(gate, state)
        self._wake.send(b"w")

    def silence(self, one: str, other: str) -> None:
        """What `one` sends to `other` does not arrive, whoever has connected."""
        self.set(one, other, State.NOTHING_THERE, is_directed=True)
        self.set(other, one, State.NOTHING_BACK, is_directed=True)

    def open(self) -> None:
        """All of them."""
        with self._lock:
            for gate in self._gates:
                self._set(gate, State.OPEN)
        self._wake.send(b"w")

    def close(self) -> None:
        """End the thread, and with it everything."""
        self._is_over = True
        self._wake.send(b"w")
        self._thread.join()
        for gate in self._gates:
            gate.listener.close()
            for end in gate.ends:
                end.socket.close()
        self._selector.close()
        for each in (self._wake, self._wakes):
            each.close()

    # -- the thread's, or under the lock ------------------------------------------------------------------------------

    def _set(self, gate: Gate, state: State) -> None:
        gate.state = state
        for end in list(gate.ends):
            if state is State.RESET:
                self._end(end)
            else:
                self._look(end)

    def _look(self, end: _End) -> None:
        mask = end.wanted()
        if mask == end.mask:
            return
        if not end.mask:
            self._selector.register(end.socket, mask, end)
        elif not mask:
            self._selector.unregister(end.socket)
        else:
            self._selector.modify(end.socket, mask, end)
        end.mask = mask

    def _serve(self) -> None:
        while not self._is_over:
            found = self._selector.select()
            with self._lock:
                for key, events in found:
                    if isinstance(key.data, Gate):
                        self._accept(key.data)
                    elif isinstance(key.data, _End):
                        self._move(key.data, events)
                    else:
                        with contextlib.suppress(BlockingIOError):
                            self._wakes.recv(4096)

    def _accept(self, gate: Gate) -> None:
        try:
            caller, _ = gate.listener.accept()
        except OSError:
            return
        caller.setblocking(False)
        if gate.state is State.RESET:
            _break(caller)
            return
        called = socket.socket()
        try:
            called.settimeout(1.0)  # on loopback: refused at once, or there
            called.connect(("127.0.0.1", gate.target_port))
        except OSError:
            for each in (caller, called):
                _break(each)
            return
        called.setblocking(False)
        for each in (caller, called):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ends = _End(gate, caller, is_caller=True), _End(gate, called, is_caller=False)
        ends[0].peer, ends[1].peer = ends[1], ends[0]
        gate.ends.update(ends)
        for end in ends:
            self._look(end)

    def _move(self, end: _End, events: int) -> None:
        if end not in end.gate.ends or not events & end.wanted():
            return  # it was ended, or cut, by an event before this one
        try:
            if events & _WRITE and end.pending:
                end.pending = end.pending[end.socket.send(end.pending) :]
            if events & _READ:
                data = end.socket.recv(_CHUNK)
                if not data:
                    self._end(end)
                    return
                end.peer.pending = data
                with contextlib.suppress(BlockingIOError):
                    end.peer.pending = data[end.peer.socket.send(data) :]
        except BlockingIOError:
            pass
        except OSError:
            self._end(end)
            return
        for each in (end, end.peer):
            self._look(each)

    def _end(self, end: _End) -> None:
        """Both ends, with a reset."""
        for each in (end, end.peer):
            if each.mask:
                self._selector.unregister(each.socket)
                each.mask = 0
            each.gate.ends.discard(each)
            _break(each.socket)


def _break(own: socket.socket) -> None:
    with contextlib.suppress(OSError):
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    own.close()
