"""The management server's listening sockets, bound before aiohttp is loaded.

Loading aiohttp takes longer than the rest of a start. The sockets are therefore bound and listening before the node
says that it is ready; who connects in the first moments waits in the backlog until `management.server`, which is loaded
meanwhile, takes the sockets over. State: the sockets until then.

Called by `broker.__main__` and `embedded.http_api`. Invariant: imports nothing heavy.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Sequence

from burrowmq.broker.node.server_process import ServerProcess
from burrowmq.broker.sockets import listener
from burrowmq.management import settings

BACKLOG = 128
UNREAD_MS = 60_000
"""How long a client may take nothing of an answer: nobody else would ever end its connection, which is a descriptor and
some MB, and takes no password."""


class CannotOpen(OSError):
    """An address could not be bound."""


class BoundSockets:
    """Bound sockets: burrowctl's, the HTTP API's, Prometheus', and the last two with TLS."""

    def __init__(self) -> None:
        self.control: socket.socket | None = None
        # Of its file, taken as it is made: who removes it, or moves the directory, ends no start.
        self.control_identity = (0, 0, 0)
        self.api: list[socket.socket] = []
        self.prometheus: list[socket.socket] = []
        self.secure_api: list[socket.socket] = []
        self.secure_prometheus: list[socket.socket] = []

    def close(self) -> None:
        """Let go of the sockets that nobody took over."""
        secure = (*self.secure_api, *self.secure_prometheus)
        for sock in (*self.api, *self.prometheus, *secure, *filter(None, [self.control])):
            sock.close()


def check_alone(process: ServerProcess) -> None:
    """Find out whether another node answers burrowctl here. Raises CannotOpen.

    To be asked with the lock on the data directory: who answers all the same is a node whose application is stopped,
    which nobody could reach any more once its socket's file is another's.
    """
    config = process.config
    path = settings.control_socket(config)
    if path and _is_answered(path):
        raise CannotOpen(
            f"another node has data directory {config.data_dir}, and answers at {path}: its application is stopped;"
            " start that with burrowctl start_app, end the node with burrowctl shutdown, or choose another directory"
            " with --data-dir"
        )


def _is_answered(path: str) -> bool:
    try:
        directory = os.open(os.path.dirname(path), os.O_RDONLY)
    except OSError:
        return False  # what is in the way is told by who binds
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.setblocking(False)
            sock.connect(settings.bindable(path, directory))
    except BlockingIOError:
        return True  # it listens, and has more callers than it has taken
    except OSError:
        return False
    finally:
        os.close(directory)
    return True


def bind(process: ServerProcess) -> BoundSockets:
    """Bind what the configuration names. Raises OSError, with the address, when one is taken."""
    config, bound = process.config, BoundSockets()
    try:
        path = settings.control_socket(config)
        if path:
            bound.control, bound.control_identity = _control(path)
        _bind_all(settings.management_addresses(config), bound.api)
        _bind_all(settings.prometheus_addresses(config), bound.prometheus)
        _bind_all(settings.tls_addresses(config.management), bound.secure_api)
        _bind_all(settings.tls_addresses(config.prometheus), bound.secure_prometheus)
    except OSError:
        bound.close()
        raise
    return bound


def bind_api(bound: BoundSockets, host: str, port: int) -> socket.socket:
    """Bind the HTTP API alone, without burrowctl's socket; gives its socket. Raises OSError, with the address."""
    _bind_all([(host, port)], bound.api)
    return bound.api[0]


def identity_of(path: str) -> tuple[int, int, int]:
    """Of a socket's file: its time is that of its creation, which a change of mode or owner leaves alone."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _control(path: str) -> tuple[socket.socket, tuple[int, int, int]]:
    try:
        return _bind_control(path)
    except OSError as error:
        way = "look at that disk, and at what is in its way"
        text = f"burrowctl's socket {path} cannot be made: {error.strerror}; {way}"
        raise CannotOpen(text) from error


def _bind_control(path: str) -> tuple[socket.socket, tuple[int, int, int]]:
    """A socket in the data directory that only its owner can open, and its file's identity."""
    # What is there was left by a node that was killed: the data directory is locked by us, and nobody answered there.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory = os.open(os.path.dirname(path), os.O_RDONLY)
    # The socket is made under the umask: nobody else can connect between bind and chmod.
    before = os.umask(0o177)
    try:
        sock.bind(settings.bindable(path, directory))
        identity = identity_of(path)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    finally:
        os.umask(before)
        os.close(directory)
    return sock, identity


def _bind_all(addresses: Sequence[settings.Address], sockets: list[socket.socket]) -> None:
    # Accepted sockets have the time limit from these, and the kernel sees to it.
    options = listener.SocketOptions(backlog=BACKLOG, user_timeout_ms=UNREAD_MS)
    try:
        sockets += listener.bind_all(addresses, options)
    except listener.CannotListen as error:
        way = listener.way_out(error.__cause__, "management.tcp.port or prometheus.tcp.port")
        raise CannotOpen(f"{error}; {way}") from error.__cause__
