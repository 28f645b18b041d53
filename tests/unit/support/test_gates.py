"""Gates: what passes, what waits and what breaks."""

from __future__ import annotations

import contextlib
import gc
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.gates import Gates, State
from tests.support.patience import patient
from tests.support.ports import free_port

SHORT_S = 0.1


@dataclass
class Pair:
    """Both ends of a connection through the gate from `here` to `there`."""

    gates: Gates
    port: int
    caller: socket.socket
    called: socket.socket


@pytest.fixture
def pair() -> Iterator[Pair]:
    gates = Gates()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = gates.add("here", "there", listener.getsockname()[1])
        caller = socket.create_connection(("127.0.0.1", port), patient(5))
        called, _ = listener.accept()
        called.settimeout(patient(5))
        with caller, called:
            yield Pair(gates, port, caller, called)
        gates.close()


def gets_nothing(end: socket.socket) -> bool:
    end.settimeout(SHORT_S)
    with contextlib.suppress(TimeoutError):
        return not end.recv(100)
    end.settimeout(patient(5))
    return True


def test_what_is_said_passes_both_ways(pair: Pair) -> None:
    octets = bytes(range(256)) * 20_000
    threading.Thread(target=pair.caller.sendall, args=(octets,)).start()
    found = b""
    while len(found) < len(octets):
        found += pair.called.recv(1 << 20)
    assert found == octets
    pair.called.sendall(b"back")
    assert pair.caller.recv(100) == b"back"


@pytest.mark.parametrize("state", [State.SILENT, State.NOTHING_THERE])
def test_what_a_silent_gate_was_given_passes_when_it_opens(pair: Pair, state: State) -> None:
    pair.gates.set("there", "here", state)
    pair.caller.sendall(b"later")
    assert gets_nothing(pair.called)
    pair.gates.open()
    assert pair.called.recv(100) == b"later"


def test_one_direction_may_be_silent_and_the_other_is_not(pair: Pair) -> None:
    pair.gates.silence("there", "here")
    pair.called.sendall(b"answer")
    pair.caller.sendall(b"question")
    assert pair.called.recv(100) == b"question"
    assert gets_nothing(pair.caller)
    pair.gates.open()
    pair.gates.silence("here", "there")
    assert pair.caller.recv(100) == b"answer"
    pair.caller.sendall(b"more")
    assert gets_nothing(pair.called)


def test_a_reset_breaks_what_there_is_and_what_comes(pair: Pair) -> None:
    pair.gates.set("here", "there", State.RESET)
    for end in (pair.caller, pair.called):
        with pytest.raises(ConnectionResetError):
            end.recv(100)
    with pytest.raises(OSError, match=r"reset|pipe|refused"):
        late = socket.create_connection(("127.0.0.1", pair.port), patient(5))
        with late:
            late.recv(100)
            late.sendall(b"x")
            late.recv(100)


def test_who_calls_where_nobody_listens_is_cut_off() -> None:
    gates = Gates()
    port = gates.add("here", "there", free_port())
    with (
        pytest.raises(ConnectionResetError),  # by whichever call is late enough
        socket.create_connection(("127.0.0.1", port), patient(5)) as caller,
    ):
        caller.recv(100)
    gates.close()
    gc.collect()  # what was left open is a warning, which is an error
