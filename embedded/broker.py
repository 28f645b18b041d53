"""`burrowmq.Broker`: a whole broker for a test suite or a small program, started in milliseconds.

    with burrowmq.Broker() as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))

State: the settings, the directory, and the run that is on, if one is. Start, stop, restart and kill may be called from
any thread, one at a time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Self
from urllib.parse import quote

from burrowmq.embedded.directory import Directory
from burrowmq.embedded.errors import BrokerError
from burrowmq.embedded.in_thread import InThread
from burrowmq.embedded.settings import HOST, settings


class Broker:
    """A broker in this process, in a thread of its own; started by `start` or by `with`.

    `data_dir`: where its files lie, and stay; without one they lie in memory where that can be had, and go with
    the broker. `port`: where it listens on 127.0.0.1, 0 for one that is free. `config`: keys of rabbitmq.conf with
    their values; neither that file nor the environment is read. Raises: BrokerError.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        port: int = 0,
        config: Mapping[str, object] | None = None,
    ) -> None:
        self._directory = Directory(data_dir)
        self._run: InThread | None = None
        self._port = port
        self._has_ended = False
        try:
            self._settings = settings(self._directory.path, port, config or {})
            self._settings.loaded()
        except BaseException:
            self._directory.remove()
            raise

    # -- where it is --------------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """Where it listens. Raises BrokerError while it does not run."""
        self._running()
        return self._port

    @property
    def data_dir(self) -> str:
        """Where its files lie."""
        return self._directory.path

    @property
    def user(self) -> str:
        """Who may do everything: "embedded", unless the configuration names one (`default_user`)."""
        return self._settings.user

    @property
    def password(self) -> str:
        """Theirs; random, unless the configuration has one (`default_pass`)."""
        return self._settings.password

    @property
    def url(self) -> str:
        """Address of the virtual host "/" for an AMQP client. Raises BrokerError while it does not run."""
        user, password = quote(self.user, safe=""), quote(self.password, safe="")
        return f"amqp://{user}:{password}@{HOST}:{self.port}/%2F"

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped or killed since."""
        return self._run is not None

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it; a port that the system chose stays the same from then on. Raises BrokerError."""
        if self._has_ended:
            raise BrokerError(
                "the broker was stopped: make another one; restart() goes on with the same one"
            )
        if self._run is not None:
            raise BrokerError("the broker runs already")
        run = InThread(self._settings)
        self._port = run.start()
        self._settings = self._settings._replace(port=self._port)
        self._run = run
        return self

    def stop(self) -> None:
        """Stop it cleanly, and remove its directory if that is its own; harmless when it does not run.

        Raises: BrokerError, when the store could not be closed.
        """
        run, self._run = self._run, None
        self._has_ended = True
        try:
            if run is not None and not run.stop():
                raise BrokerError("the broker's store could not be closed cleanly")
        finally:
            self._directory.remove()

    def restart(self) -> None:
        """Stop it cleanly and start it again, on the same port and directory. Raises BrokerError."""
        self._running().stop()
        self._again()

    def kill(self) -> None:
        """End it as if its process were killed: connections break, what was not committed is lost.

        `start` has it again, on the same port and directory, as after a crash. Raises BrokerError while it does not
        run.
        """
        run = self._running()
        self._run = None
        run.kill()

    def _again(self) -> None:
        self._run = None
        self.start()

    def _running(self) -> InThread:
        if self._run is None:
            raise BrokerError(
                "the broker does not run: call start(), or use it in a with statement"
            )
        return self._run

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
