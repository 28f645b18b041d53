"""The management sockets, bound before the server that serves them is loaded."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from burrowmq.broker.node.server_process import ServerProcess
from burrowmq.config.schema import ManagementConfig, NodeConfig, PrometheusConfig
from burrowmq.config.units import Endpoint
from burrowmq.management import bound_sockets
from tests.support.bench.observer import RecordingObserver


def process_in(data_dir: Path, port: int = 0) -> ServerProcess:
    """A node that wants one API socket and one for metrics."""
    config = NodeConfig(
        node_name="rabbit@test",
        data_dir=str(data_dir),
        management=ManagementConfig(listeners=(Endpoint("127.0.0.1", port),)),
        prometheus=PrometheusConfig(listeners=(Endpoint("127.0.0.1", 0),)),
    )
    return ServerProcess(config=config, observer=RecordingObserver())  # type: ignore[arg-type]


def test_who_connects_before_the_server_is_loaded_waits(tmp_path: Path) -> None:
    opened = bound_sockets.bind(process_in(tmp_path))
    try:
        address = opened.api[0].getsockname()
        with socket.create_connection(address, timeout=5) as client:
            accepted, peer = opened.api[0].accept()
            assert peer == client.getsockname()
            accepted.close()
    finally:
        opened.close()


def test_the_control_socket_is_its_owners_alone(tmp_path: Path) -> None:
    opened = bound_sockets.bind(process_in(tmp_path))
    try:
        mode = os.stat(tmp_path / "control.sock").st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
    finally:
        opened.close()


def test_a_taken_port_is_named_and_nothing_stays_open(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=rf"127\.0\.0\.1:{port}"):
            bound_sockets.bind(process_in(tmp_path, port))


def test_a_control_socket_that_the_disk_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "control.sock").mkdir()
    with pytest.raises(bound_sockets.CannotOpen) as caught:
        bound_sockets.bind(process_in(tmp_path))
    assert str(caught.value) == (
        f"burrowctl's socket {tmp_path}/control.sock cannot be made: Is a directory;"
        " look at that disk, and at what is in its way"
    )


def test_the_file_is_known_though_it_goes_at_once(tmp_path: Path) -> None:
    opened = bound_sockets.bind(process_in(tmp_path))
    try:
        found = bound_sockets.identity_of(str(tmp_path / "control.sock"))
        (tmp_path / "control.sock").unlink()
        assert opened.control_identity == found
    finally:
        opened.close()


def test_what_a_killed_node_left_is_replaced(tmp_path: Path) -> None:
    bound_sockets.bind(process_in(tmp_path)).close()
    assert (tmp_path / "control.sock").exists()
    bound_sockets.bind(process_in(tmp_path)).close()


def test_a_node_that_answers_is_not_cut_off(tmp_path: Path) -> None:
    """One whose application is stopped has no lock on its data directory, and is reached by this socket only."""
    process = process_in(tmp_path)
    opened = bound_sockets.bind(process)
    try:
        with pytest.raises(bound_sockets.CannotOpen) as caught:
            bound_sockets.check_alone(process)
        assert str(caught.value) == (
            f"another node has data directory {tmp_path}, and answers at {tmp_path}/control.sock: its application is"
            " stopped; start that with burrowctl start_app, end the node with burrowctl shutdown, or choose another"
            " directory with --data-dir"
        )
        assert bound_sockets.identity_of(f"{tmp_path}/control.sock") == opened.control_identity
    finally:
        opened.close()


def test_a_node_that_is_too_busy_to_accept_answers_too(tmp_path: Path) -> None:
    with contextlib.ExitStack() as clients, socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "control.sock"))
        server.listen(0)
        client = clients.enter_context(socket.socket(socket.AF_UNIX))
        client.connect(str(tmp_path / "control.sock"))
        with pytest.raises(bound_sockets.CannotOpen, match="another node"):
            bound_sockets.check_alone(process_in(tmp_path))


def test_nobody_answers_where_a_node_was_killed_or_none_was(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    for where in (tmp_path, deep):
        process = process_in(where)
        bound_sockets.check_alone(process)
        bound_sockets.bind(process).close()
        bound_sockets.check_alone(process)
        bound_sockets.bind(process).close()
    bound_sockets.check_alone(
        ServerProcess(config=NodeConfig(node_name="n@h", data_dir=""), observer=None)
    )  # type: ignore[arg-type]


def test_binding_loads_nothing_heavy() -> None:
    code = "import sys, management.bound_sockets; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_address_of_a_family_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Socket(socket.socket):
        def __init__(self, family: int = socket.AF_INET, *rest: int, **named: int) -> None:
            if family == socket.AF_INET6:
                raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
            super().__init__(family, *rest, **named)

    monkeypatch.setattr(socket, "socket", Socket)
    opened = bound_sockets.BoundSockets()
    with pytest.raises(
        bound_sockets.CannotOpen, match=r"cannot listen on \[::1\]:15672: .* no IPv6"
    ):
        bound_sockets.bind_api(opened, "::1", 15672)
