"""A process that has loaded the node's modules, and becomes a node by a fork as often as it is asked.

Loading is nearly all that a start costs: 0.4 of 0.5 s of a processor, some hundred times in a run of the tests. What is
forked is a process like any other, with its own id, session, files and environment: it recovers, serves, logs, ends by
itself or is killed as one that was started from nothing.

The fork is made by a process that runs nothing but this module (`serve`), with one thread, no loop and no open file.
`Prepared` is its owner's side, `Forked` one node there, with those methods of `subprocess.Popen` that tests use.

State: the prepared process and the nodes it made. They end with their owner, by the kernel's hand
(`tests.support.die_with_parent`). Callers: `tests.support.broker_process`.
Invariants: a node inherits three files and no others. What a variable of the environment may change while modules load
is not changed later: `Prepared.fits` says whether this process's environment is still the one that it was made in.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from tests.support.die_with_parent import die_with, dying

ROOT = Path(__file__).resolve().parents[2]
# The second is what a node loads while it runs already.
MODULES = ("burrowmq.broker.__main__", "burrowmq.management.server")
LONGEST = 1 << 17
# pytest names each test in it.
OF_NO_CONSEQUENCE = {"PYTEST_CURRENT_TEST"}


class Forked:
    """A node that was forked, as its owner sees it; closes its descriptors with its end."""

    def __init__(self, pid: int, pid_fd: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._pid_fd = pid_fd
        self._status = status

    def poll(self) -> int | None:
        """Return the exit status, None while it runs."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raises: subprocess.TimeoutExpired."""
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def send_signal(self, sig: int) -> None:
        """Send a signal; to a process that has ended, nothing."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pid_fd, sig)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            # Nothing comes where the prepared process has been killed, and all of its own with it.
            self.returncode = int(os.read(self._status, 16) or -signal.SIGKILL)
            self._close()
        return self.returncode

    def _close(self) -> None:
        for descriptor in (self._pid_fd, self._status):
            os.close(descriptor)

    def __del__(self) -> None:
        if self.returncode is None:
            self._close()


class Prepared:
    """The owner's side: the process, and the socket it is asked on."""

    def __init__(self, python: str) -> None:
        self._owner = os.getpid()
        self._environment = _environment()
        self._ask, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                dying([python, "-m", __name__, str(theirs.fileno())]),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        atexit.register(self._close)

    def fits(self) -> bool:
        """Say whether what it would fork is what this process would start, as far as it can be known here."""
        return (
            self._owner == os.getpid()
            and self._environment == _environment()
            and self._process.poll() is None
        )

    def start(
        self, argv: Sequence[str], folder: Path, environment: Mapping[str, str], log: int
    ) -> Forked:
        """Fork a node that writes its standard output and error to the file."""
        asked = json.dumps([list(argv), str(folder), dict(environment)]).encode()
        ours, theirs = os.pipe()
        try:
            socket.send_fds(self._ask, [asked], [log, theirs])
        finally:
            os.close(theirs)
        told, (pid_fd,), _, _ = socket.recv_fds(self._ask, 16, 1)
        return Forked(int(told), pid_fd, ours)

    def _close(self) -> None:
        self._ask.close()
        if self._owner == os.getpid():
            self._process.wait()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in OF_NO_CONSEQUENCE}


_prepared: dict[str, Prepared] = {}


def prepared(python: str) -> Prepared | None:
    """Return this process's own for an interpreter, None where it cannot be had.

    What the kernel kills with the thread that started it has to be started by one that lasts. An environment that was
    changed for a test is another one; so the real program is started there.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    if python not in _prepared:
        _prepared[python] = Prepared(python)
    found = _prepared[python]
    return found if found.fits() else None


# -- the prepared process -------------------------------------------------------------------------------------


def serve(asked_on: socket.socket) -> None:
    """Load, then fork a node per request and tell its owner how it ended, until the owner is gone."""
    for module in MODULES:
        import_module(module)
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()  # or the first collection of each node would copy every page
    own = os.getpid()
    with selectors.DefaultSelector() as waiting:
        waiting.register(asked_on, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.fileobj is not asked_on:
                    waiting.unregister(key.fileobj)
                    _tell_end(*key.data)
                    continue
                asked, descriptors, _, _ = socket.recv_fds(asked_on, LONGEST, 2)
                if not asked:
                    return
                log, status = descriptors
                pid = os.fork()
                if not pid:
                    # Now: when the node ends they would close whatever file of its own has their numbers by then.
                    waiting.close()
                    asked_on.close()
                    become(own, log, *json.loads(asked))
                os.close(log)
                pid_fd = os.pidfd_open(pid)
                waiting.register(pid_fd, selectors.EVENT_READ, (pid, pid_fd, status))
                socket.send_fds(asked_on, [str(pid).encode()], [pid_fd])


def _tell_end(pid: int, pid_fd: int, status: int) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(BrokenPipeError):  # nobody wants to know
        os.write(status, str(code).encode())
    os.close(status)
    os.close(pid_fd)


def become(
    parent: int, log: int, argv: Sequence[str], folder: str, environment: Mapping[str, str]
) -> NoReturn:
    """Be the node that `python -m burrowmq.broker` with these arguments is."""
    die_with(parent)
    os.setsid()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = argv
    sys.exit(import_module(MODULES[0]).main())


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
