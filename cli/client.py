"""HTTP to the node: over its control socket, or over TCP to a URL.

State: where the node is and the timeout. One request a connection; a command makes a handful. Standard library only.
A node that cannot be reached is `CliError` 69 naming what was tried; a slow one is 75.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import time
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from burrowmq.cli.errors import TEMPFAIL, UNAVAILABLE, USAGE, CliError, bad_argument

# Above this a path does not fit a socket address and goes through an open directory.
SOCKET_PATH_LIMIT = 107
READ_BYTES = 1 << 16


def check_url(url: str, option: str = "--url") -> None:
    """Refuse a text that is no address of an HTTP API; `option` gave it. Raises: CliError 64."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good:
        shown = url.rpartition("@")[2]  # a terminal is no place for a password
        text = "Invalid options for this command:\n\n{} : {} (http://user:password@host:15672)"
        raise CliError(USAGE, text.format(option, shown))


class Refused(Exception):
    """The node said no: status, error word and reason."""

    def __init__(
        self, status: int, error: str, reason: Any, body: dict[str, Any] | None = None
    ) -> None:
        super().__init__(f"{status} {error}: {reason}")
        self.status = status
        self.body = body or {}
        self.error = error
        self.reason = reason if isinstance(reason, str) else json.dumps(reason)


class Unreachable(CliError):
    """No node answers there."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(UNAVAILABLE, text)
        self.reason = reason


class NoNode(Exception):
    """Something answers HTTP there, and not as a node does."""


class NotRunning(Exception):
    """A node answers, and its application is stopped."""


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect, through the directory when the path is too long for an address."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        path, directory = self._path, -1
        if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
            directory = os.open(os.path.dirname(path), os.O_RDONLY)
            path = f"/proc/self/fd/{directory}/{os.path.basename(path)}"
        try:
            self.sock.connect(path)
        finally:
            if directory >= 0:
                os.close(directory)


class NodeClient:
    """Where the node is and how to ask it."""

    def __init__(
        self, *, url: str, data_dir: str, timeout_s: float | None, node_option: str
    ) -> None:
        self.url = url
        self.socket_path = os.path.join(data_dir, "control.sock")
        self.timeout_s = timeout_s
        self.node_option = node_option
        self._process: dict[str, Any] = {}

    @property
    def where(self) -> str:
        """The address in words, without a password."""
        if not self.url:
            return f"control socket {os.path.abspath(self.socket_path)}"
        parts = urlsplit(self.url)
        host = _host(self.url)
        shown = f"[{host}]" if ":" in host else host
        return f"{parts.scheme}://{shown}:{parts.port or _default_port(parts.scheme)}"

    @property
    def addressed(self) -> str:
        """The name of the node that the command is for: that of -n, else RabbitMQ's default on this machine."""
        return self.node_option or "rabbit@" + socket.gethostname().partition(".")[0]

    @property
    def node_name(self) -> str:
        """The name of the node that answers."""
        return str(self.process["node"])

    @property
    def process(self) -> dict[str, Any]:
        """What the node's process said first about itself: node, pid, state, version and more."""
        if not self._process:
            self._process = self._asked()
        return self._process

    def _asked(self) -> dict[str, Any]:
        try:
            found = self.get("/api/burrowmq/process")
        except Refused as refused:
            if refused.status != 404:
                raise
            found = None
        if not isinstance(found, dict) or not {"node", "state"} <= found.keys():
            raise self.unreachable(NoNode("is no node of BurrowMQ"))
        return found

    @property
    def failure(self) -> str:
        """Why the node's store has failed and its process ends, in a sentence; empty when it has not."""
        reason = self.process.get("failure")
        return f"the store of node {self.node_name} has failed: {reason}" if reason else ""

    def check_application(self) -> None:
        """Find out whether the application runs. Raises: NotRunning, CliError 69 when its store has failed."""
        if self.failure:
            raise CliError(UNAVAILABLE, f"Error:\n{self.failure}")
        if self.process["state"] != "running":
            raise NotRunning

    def get(self, path: str) -> Any:
        """GET a JSON document."""
        return self.request("GET", path)

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Any:
        """One request; the JSON of the reply, None for an empty one.

        Raises: NotRunning, Refused, Unreachable, CliError 75.
        """
        connection = self._connection()
        sent = dict(headers or {})
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        sent.update(self._authorization())
        deadline_s = None if self.timeout_s is None else time.monotonic() + self.timeout_s
        try:
            self._look_up()
            connection.request(method, path, body=data, headers=sent)
            response = connection.getresponse()
            raw, status = self._read(connection, response, deadline_s), response.status
        except TimeoutError as error:
            raise CliError(
                TEMPFAIL, f"Error: no answer from {self.where} within {self.timeout_s} seconds"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise self.unreachable(error) from error
        finally:
            connection.close()
        return self._decoded(status, raw)

    @staticmethod
    def _read(
        connection: http.client.HTTPConnection,
        response: http.client.HTTPResponse,
        deadline_s: float | None,
    ) -> bytes:
        """The whole body, within what is left of the time: a socket's timeout begins anew with every octet."""
        if deadline_s is None or connection.sock is None:
            return response.read()
        sock, parts = connection.sock, []
        while True:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            sock.settimeout(left_s)
            part = response.read1(READ_BYTES)
            if not part:
                break
            parts.append(part)
        if response.length:
            raise http.client.IncompleteRead(b"".join(parts), response.length)
        return b"".join(parts)

    def _decoded(self, status: int, raw: bytes) -> Any:
        try:
            value = json.loads(raw) if raw else None
        except ValueError:
            value = None
        if status < 400:
            if status >= 300:
                raise self.unreachable(NoNode(f"sends elsewhere (HTTP {status})"))
            if raw and value is None and raw.strip() != b"null":
                raise self.unreachable(NoNode("is no node of BurrowMQ"))
            return value
        if isinstance(value, dict):
            if status == 503 and value.get("error") == "not_running":
                raise NotRunning
            raise Refused(status, str(value.get("error", "")), value.get("reason", value), value)
        raise Refused(status, "", raw.decode("utf-8", "replace") or f"HTTP {status}")

    def unreachable(self, error: Exception) -> Unreachable:
        """The error that says what was tried."""
        reason = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
        if isinstance(error, NoNode):
            reason = f"what answers there {error}: is it the management port?"
        elif isinstance(error, http.client.BadStatusLine):
            reason = "what answers there does not speak HTTP: is it the management port?"
        way = (
            "Is the node running? --data-dir DIR (or BURROWMQ_DATA_DIR) names its data directory,\n"
            "--url http://user:password@host:port (or BURROWMQ_MANAGEMENT_URL) its management listener."
        )
        if getattr(error, "reason", "") == "WRONG_VERSION_NUMBER":  # of an ssl.SSLError
            reason = "what answers there does not speak TLS: write http://"
        elif hasattr(error, "verify_message"):
            reason = f"its certificate is not trusted: {error.verify_message}"
            way = (
                "The environment variable SSL_CERT_FILE=FILE names a file of authorities to trust."
            )
        return Unreachable(
            reason,
            f"Error: unable to perform an operation on node '{self.addressed}'."
            " Please see diagnostics information and suggestions below.\n\n"
            "DIAGNOSTICS\n===========\n\n"
            f"attempted to contact: {self.where}\n"
            f" * {reason}\n\n{way}",
        )

    def _connection(self) -> http.client.HTTPConnection:
        if not self.url:
            return _UnixConnection(self.socket_path, self.timeout_s)
        parts = urlsplit(self.url)
        host, port = _host(self.url), parts.port or _default_port(parts.scheme)
        if parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self.timeout_s)
        return http.client.HTTPConnection(host, port, timeout=self.timeout_s)

    def _look_up(self) -> None:
        """Find the host within the time that there is; a resolver that does not answer takes longer, and no ^C.

        Raises: OSError.
        """
        if not self.url:
            return
        # Here: the control socket needs none.
        from threading import Event, Thread

        host, is_answered, faults = _host(self.url), Event(), list[OSError]()

        def ask() -> None:
            try:
                socket.getaddrinfo(host, None)
            except OSError as error:
                faults.append(error)
            except UnicodeError:
                faults.append(OSError(0, f"no host can be called {host}"))
            is_answered.set()

        Thread(target=ask, daemon=True).start()
        if not is_answered.wait(self.timeout_s):
            raise TimeoutError
        for fault in faults:
            raise fault

    def _authorization(self) -> dict[str, str]:
        if not self.url:
            return {}
        parts = urlsplit(self.url)
        user, password = unquote(parts.username or "guest"), unquote(parts.password or "guest")
        token = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        return {"Authorization": f"Basic {token}"}


def segment(name: str) -> str:
    """A name as one path segment. Raises: CliError 65 for an empty one: the path would mean something else."""
    if not name:
        raise bad_argument("Bad argument: a name cannot be an empty string")
    return quote(name, safe="")


def _host(url: str) -> str:
    """Name the host of a URL; an address of a link has its interface there, behind an escaped percent sign."""
    return unquote(urlsplit(url).hostname or "127.0.0.1")


def _default_port(scheme: str) -> int:
    return 15671 if scheme == "https" else 15672
