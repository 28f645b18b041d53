"""A node in a process of its own, which does as it is told over a socket pair and ends when that closes.

The child is a new interpreter, not a fork, so that it has none of the caller's threads, loops or patched modules; it
runs the node as `in_thread` does. State: the child and our end of the pair. One question at a time, by whatever thread.
What goes wrong there comes back as the BrokerError that it is. `kill` is SIGKILL.

The child's session is its own: what a terminal sends on Ctrl-C goes to the caller, who stops it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

from burrowmq.embedded.errors import BrokerError
from burrowmq.embedded.in_thread import InThread
from burrowmq.embedded.settings import Settings

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(sys.modules["burrowmq"].__file__ or "")))
CODE = (
    "import sys; sys.argv[2] in sys.path or sys.path.append(sys.argv[2]);"
    " from burrowmq.embedded.in_process import serve; serve(int(sys.argv[1]))"
)
END_S = 30.0
"""How long a child may take to end once it was told."""


class InProcess:
    """One run of a node, from its start to its end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._asking = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    def start(self) -> int:
        """Start it; gives the port. Raises BrokerError, and leaves nothing then."""
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            os.set_blocking(end.fileno(), True)  # gevent's are not
        try:
            self._child = subprocess.Popen(  # noqa: S603 - see above
                [sys.executable, "-c", CODE, str(theirs.fileno()), ROOT],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise BrokerError(f"no process can be started for the broker: {error}") from error
        finally:
            theirs.close()
        self._pipe = Connection(ours.detach())
        try:
            port = self.ask("start", self._settings)
        except BaseException:
            self.kill()
            raise
        assert isinstance(port, int)
        return port

    def ask(self, name: str, *arguments: object) -> object:
        """Have the child call a command of the node, and give what it gives. Raises BrokerError."""
        __tracebackhide__ = True
        with self._asking:
            assert self._pipe is not None, "it runs"
            try:
                self._pipe.send((name, arguments))
                is_error, answer = self._pipe.recv()
            except (EOFError, OSError) as error:
                raise BrokerError(f"the broker's process has ended{self._status()}") from error
        if is_error:
            raise BrokerError(answer)
        return answer

    def _status(self) -> str:
        try:
            status = None if self._child is None else self._child.wait(1)
        except subprocess.TimeoutExpired:
            return ""
        return f" with status {status}"

    def stop(self) -> bool:
        """Stop it cleanly; False when the store could not be closed so, or the process had ended already."""
        try:
            return self.ask("stop") is True
        except BrokerError:
            return False
        finally:
            self._end(END_S)

    def kill(self) -> None:
        """Kill the process."""
        if self._child is not None:
            self._child.send_signal(signal.SIGKILL)
        self._end(END_S)

    def _end(self, patience_s: float) -> None:
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            pipe.close()
        if self._child is not None:
            try:
                self._child.wait(patience_s)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()

    def forget(self) -> None:
        """In a forked child: close our end of the pair, whose end is to tell the broker of the parent's."""
        if self._pipe is not None:
            self._pipe.close()


def serve(descriptor: int) -> None:
    """What the child does: one command after the other, and a clean stop when who asked is gone."""
    pipe = Connection(descriptor)
    child = _Child()
    while True:
        try:
            name, arguments = pipe.recv()
        except (EOFError, OSError):
            break
        try:
            answer = False, child.do(name, arguments)
        except BrokerError as error:
            answer = True, str(error)
        try:
            pipe.send(answer)
        except OSError:
            break  # who asked is gone
        if name == "stop":
            break
    child.end()


class _Child:
    """The node of a process that has nothing else."""

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._run: InThread | None = None

    def do(self, name: str, arguments: tuple[Any, ...]) -> object:
        """Start, stop, or ask the node. Raises BrokerError."""
        if name == "start":
            (self._settings,) = arguments
            run = InThread(self._settings)
            port = run.start()
            self._run = run
            return port
        assert self._run is not None, "start comes first"
        if name != "stop":
            return self._run.ask(name, *arguments)
        ending, self._run = self._run, None
        return ending.stop()

    def end(self) -> None:
        """Nobody is there any more to tell this to stop: do so, and remove the directory if it was only lent."""
        if self._run is not None and self._settings is not None:
            self._run.stop()
            if self._settings.is_own_directory:
                shutil.rmtree(self._settings.data_dir, ignore_errors=True)
