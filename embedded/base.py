"""What both kinds of embedded broker have in common: where it is, who may come in, what time it is, whether it runs.

State: the directory, the settings, the clock's hands, whether the broker has ended. `Broker` and `ServedBroker` own the
run itself. In a child of a fork there is no broker, and what is the parent's stays: only the process that made one may
use it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from burrowmq.embedded.clock import Hands
from burrowmq.embedded.directory import Directory
from burrowmq.embedded.errors import BrokerError
from burrowmq.embedded.kept_ports import KeptPorts
from burrowmq.embedded.settings import HOST, Ports, Settings, settings

NOT_RUNNING = "the broker does not run: call start(), or use it in a with statement"
STOPPED = "the broker does not run any more: it was stopped, and is to be made anew"
OTHER_PROCESS = (
    "the broker is in the process that started it; here, in a child that was forked, there is none"
)


def _quoted(part: str) -> str:
    """As a part of an address."""
    from urllib.parse import quote  # noqa: PLC0415 - who needs the address has a client that has loaded it

    return quote(part, safe="")


class BaseBroker:
    """What is known of a broker, whether it runs or not."""

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None,
        port: int,
        config: Mapping[str, object] | None,
        clock: str,
        management: bool,
    ) -> None:
        self._hands = Hands(clock)
        self._pid = os.getpid()
        self._is_running = False
        self._has_ended = False
        self._kept = KeptPorts(HOST)
        self._directory = Directory(data_dir)
        try:
            found = settings(
                self._directory.path, port, {} if config is None else config, has_api=management
            )
            self._settings = found._replace(is_own_directory=self._directory.is_own)
        except BaseException:
            self._directory.remove()
            raise

    @property
    def port(self) -> int:
        """Where it listens. Raises BrokerError while it does not run."""
        self._check_running()
        return self._settings.port

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
        """Where an AMQP client goes, in "/" or the configuration's `default_vhost`.

        Raises BrokerError while it does not run.
        """
        return self.url_of(self._settings.vhost)

    def url_of(self, vhost: str) -> str:
        """Address of a virtual host. Raises BrokerError while it does not run."""
        return f"amqp://{self._login()}@{HOST}:{self.port}/{_quoted(vhost)}"

    @property
    def management_url(self) -> str:
        """Where the HTTP API and the UI are, with user and password. Raises BrokerError without management=True."""
        self._check_running()
        if not self._settings.has_api:
            raise BrokerError("the broker has no HTTP API: make it with management=True")
        return f"http://{self._login()}@{HOST}:{self._settings.api_port}"

    def _login(self) -> str:
        return f"{_quoted(self.user)}:{_quoted(self.password)}"

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped or killed since; in a forked child it never does."""
        return self._is_running and self._pid == os.getpid()

    def _next_run(self) -> Settings:
        """What to start with. Raises BrokerError when it cannot be started now."""
        if self._pid != os.getpid():
            raise BrokerError(OTHER_PROCESS)
        if self._has_ended:
            raise BrokerError(
                "the broker was stopped: make another one; restart() goes on with the same one"
            )
        if self._is_running:
            raise BrokerError("the broker runs already")
        return self._settings._replace(now_ms=self._hands.now_ms)

    def _started(self, ports: Ports) -> None:
        port, api_port = ports
        self._settings = self._settings._replace(port=port, api_port=api_port)
        self._is_running = True
        self._kept.release()

    def _keep_ports(self) -> None:
        """It has ended, and is to be started again."""
        self._kept.keep((self._settings.port, self._settings.api_port))

    def _check_running(self) -> None:
        __tracebackhide__ = True
        if self._pid != os.getpid():
            raise BrokerError(OTHER_PROCESS)
        if not self._is_running:
            raise BrokerError(STOPPED if self._has_ended else NOT_RUNNING)
