"""A node in a process of its own, which does as it is told over a socket pair and ends when that closes.

The child is a new interpreter, not a fork, so that it has none of the caller's threads, loops or patched modules; it
runs the node as `in_thread` does. Questions have numbers: any thread may ask, and each has its answer as soon as it is
there (`wait_for` may take long). Of the threads that wait for an answer one reads, and hands others theirs. State: the
child, our end of the pair, the answers that nobody has taken yet. What goes wrong there comes back as the BrokerError
that it is. `kill` is SIGKILL.

The child's session is its own: what a terminal sends on Ctrl-C goes to the caller, who stops it.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any, cast

from burrowmq.embedded.errors import BrokerError
from burrowmq.embedded.in_thread import ENDED, InThread
from burrowmq.embedded.pipe import Pipe
from burrowmq.embedded.settings import Ports, Settings

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(sys.modules["burrowmq"].__file__ or "")))
CODE = (
    "import sys; sys.argv[2] in sys.path or sys.path.append(sys.argv[2]);"
    " from burrowmq.embedded.in_process import serve; serve(int(sys.argv[1]))"
)
END_S = 30.0
"""How long a child may take to end once it was told; one that does not is killed."""


class InProcess:
    """One run of a node, from its start to its end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._child: subprocess.Popen[bytes] | None = None
        self._pipe: Pipe | None = None
        self._numbers = itertools.count(1)
        # Of these: the answers that are there, by number, who is to have one, whether somebody reads.
        self._change = threading.Condition()
        self._answers: dict[int, tuple[bool, Any]] = {}
        self._asking: set[int] = set()
        self._is_read = False

    def start(self) -> Ports:
        """Start it; gives its ports. Raises BrokerError, and leaves nothing then."""
        ours, theirs = socket.socketpair()
        try:
            self._child = subprocess.Popen(  # noqa: S603 - see above
                [sys.executable, "-P", "-c", CODE, str(theirs.fileno()), ROOT],
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
        self._pipe = Pipe(ours)
        try:
            return cast("Ports", self.ask("start", self._settings))
        except BaseException:
            self.kill()
            raise

    def ask(self, name: str, *arguments: object) -> object:
        """Have the child call a command of the node, and give what it gives. Raises BrokerError."""
        __tracebackhide__ = True
        pipe, number = self._pipe, next(self._numbers)
        if pipe is None:
            raise BrokerError(ENDED)
        self._asking.add(number)
        try:
            pipe.send((number, name, tuple(map(_plain, arguments))))
            is_error, answer = self._answer(pipe, number)
        except (EOFError, OSError) as error:
            raise BrokerError(f"the broker's process has ended{self._status()}") from error
        finally:
            self._asking.discard(number)
            self._answers.pop(number, None)
        if is_error:
            raise BrokerError(answer)
        return answer

    def _answer(self, pipe: Pipe, number: int) -> tuple[bool, Any]:
        """Wait for an answer: somebody else may read it. Raises EOFError or OSError."""
        while True:
            with self._change:
                while self._is_read and number not in self._answers:
                    if not self._change.wait(pipe.patience_s):
                        raise TimeoutError
                if number in self._answers:
                    return self._answers[number]
                self._is_read = True
            try:
                found, is_error, answer = cast("tuple[int, bool, Any]", pipe.receive())
                if found in self._asking:  # who asked may have given up
                    self._answers[found] = is_error, answer
            finally:
                with self._change:
                    self._is_read = False
                    self._change.notify_all()

    def _status(self) -> str:
        try:
            status = None if self._child is None else self._child.wait(1)
        except subprocess.TimeoutExpired:
            return ""
        return f" with status {status}"

    def stop(self) -> bool:
        """Stop it cleanly; False when the store could not be closed so, or the process had ended already or hangs."""
        until = time.monotonic() + END_S
        if self._pipe is not None:
            self._pipe.wait_no_longer(END_S)
        try:
            return self.ask("stop") is True
        except BrokerError:
            return False
        finally:
            self._end(max(0.0, until - time.monotonic()))

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
            self._pipe.forget()


def _plain(argument: object) -> object:
    """A text as nothing but that: the child cannot load a suite's own kind of it (an enum of names, say)."""
    return str.__str__(argument) if isinstance(argument, str) else argument


def serve(descriptor: int) -> None:
    """What the child does: answer, and stop cleanly when who asked is gone."""
    end = socket.socket(fileno=descriptor)
    end.setblocking(True)  # gevent's are not
    pipe, child = Pipe(end), _Child()

    def answer(number: int, name: str, arguments: tuple[Any, ...]) -> None:
        try:
            found = number, False, child.do(name, arguments)
        except BrokerError as error:
            found = number, True, str(error)
        except Exception as error:  # noqa: BLE001 - without an answer who asked would wait for ever
            found = number, True, f"{type(error).__name__}: {error}"
        with suppress(OSError):  # who asked is gone
            pipe.send(found)

    while True:
        try:
            number, name, arguments = cast("tuple[int, str, tuple[Any, ...]]", pipe.receive())
        except (EOFError, OSError):
            break
        if name in ("start", "stop"):
            answer(number, name, arguments)
        else:  # it may take long, and others ask meanwhile
            threading.Thread(target=answer, args=(number, name, arguments), daemon=True).start()
        if name == "stop":
            break
    child.end()
    pipe.close()


class _Child:
    """The node of a process that has nothing else."""

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._run: InThread | None = None

    def do(self, name: str, arguments: tuple[Any, ...]) -> object:
        """Start, stop, or ask the node. Raises BrokerError."""
        if name == "start":
            (self._settings,) = arguments
            starting = InThread(self._settings)
            ports = starting.start()
            self._run = starting
            return ports
        run = self._run
        if run is None:  # it was stopped while this question was on its way
            raise BrokerError(ENDED)
        if name != "stop":
            return run.ask(name, *arguments)
        self._run = None
        return run.stop()

    def end(self) -> None:
        """Nobody is there any more to tell this to stop: do so, and remove the directory if it was only lent."""
        if self._run is not None and self._settings is not None:
            self._run.stop()
            if self._settings.is_own_directory:
                shutil.rmtree(self._settings.data_dir, ignore_errors=True)
