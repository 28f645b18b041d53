"""What a scenario may ask of a broker: connections, HTTP, commands, and things that are gone afterwards.

State: what the running scenario opened and made, undone in reverse order by `finish`.
Callers: scenarios; built by the runner, one for RabbitMQ and one for BurrowMQ.
Invariants: both brokers are given the same calls; answers are made comparable only in `made_comparable`. What belongs to
the whole node (virtual hosts, users, global parameters) has a name of this scenario's own (`own`): others run beside it,
and RabbitMQ closes the connections of a user or virtual host that was deleted some time after it said so.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import socket
import subprocess
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pika

from tests.differential.peer import DEADLINE_S, Link, Peer, wait_for
from tests.support.wire_client import WireClient

COMMAND_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one broker is."""

    product: str
    amqp_port: int
    http_port: int
    command: Sequence[str]
    environment: Mapping[str, str] | None = None
    restart: Callable[[], object] | None = None
    """Stop the broker cleanly and start it again; None where others are at work."""


class Broker:
    """One of the two, for one scenario."""

    def __init__(self, place: Place, scenario: str = "") -> None:
        self.place = place
        self.mark = mark_of(scenario)
        self._made: set[tuple[str, str]] = set()
        self._links: list[Link] = []
        self._undo = contextlib.ExitStack()

    # ---- AMQP -------------------------------------------------------------------------------------------

    def link(self, **options: Any) -> Link:
        """Open a connection; it may have been refused (`refusal`)."""
        link = Link(self.place.amqp_port, **options)
        self._links.append(link)
        return link

    def peer(self, **options: Any) -> Peer:
        """Return channel 1 of a new connection."""
        # What is in another virtual host goes with it; queues of that name in / are somebody else's.
        made = self._made if options.get("vhost", "/") == "/" else set()
        return Peer(self.link(**options), 1, made)

    def wire(self) -> WireClient:
        """Return a bare socket, nothing sent yet."""
        client = WireClient("127.0.0.1", self.place.amqp_port)
        self._undo.callback(client.socket.close)
        return client

    def pika(self, **options: Any) -> pika.BlockingConnection:
        """Open a connection with pika."""
        parameters = pika.ConnectionParameters("127.0.0.1", self.place.amqp_port, **options)
        connection = pika.BlockingConnection(parameters)
        self._undo.callback(_close_quietly, connection)
        return connection

    # ---- management ----------------------------------------------------------------------------------------

    def http(
        self,
        verb: str,
        path: str,
        body: Any = None,
        *,
        user: str = "guest",
        password: str = "guest",
    ) -> tuple[int, Any]:
        """Return status and decoded body of one request below /api."""
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        status, _, text = self.raw_http(
            verb,
            f"/api/{path}",
            {"Authorization": f"Basic {token}", "Content-Type": "application/json"},
            body if isinstance(body, str | None) else json.dumps(body),
        )
        try:
            return status, json.loads(text) if text else None
        except json.JSONDecodeError:
            return status, text

    def raw_http(
        self, verb: str, path: str, headers: Mapping[str, str], data: str | None = None
    ) -> tuple[int, Mapping[str, str], str]:
        """Return status, headers and body of one request as it is."""
        client = http.client.HTTPConnection("127.0.0.1", self.place.http_port, timeout=30)
        try:
            client.request(verb, path, data, dict(headers))
            answer = client.getresponse()
            return answer.status, answer.headers, answer.read().decode("utf-8", "replace")
        finally:
            client.close()

    def fields(self, path: str, *names: str) -> dict[str, Any]:
        """Return some fields of an object; a field that is not there is "absent"."""
        status, found = self.http("GET", path)
        if status != 200 or not isinstance(found, dict):
            return {"status": status, "body": found}
        return {name: found.get(name, "absent") for name in names}

    def wait_http(
        self, path: str, is_enough: Callable[[Any], bool], timeout_s: float = DEADLINE_S
    ) -> Any:
        """Ask for an object until it is enough: statistics come with a delay."""
        return wait_for(lambda: self.http("GET", path)[1], is_enough, timeout_s)

    def wait_connected(self, key: str, value: str) -> None:
        """Wait until a connection of this user or virtual host is listed: RabbitMQ counts it late as well."""
        self.wait_http("connections", lambda rows: any(row.get(key) == value for row in rows))

    def wait_gone(self, path: str) -> int:
        """Ask until an object is gone and return the last status; a queue is not used by being asked for like this."""
        return int(wait_for(lambda: self.http("GET", path)[0], lambda status: status == 404))

    def ctl(self, *words: str) -> dict[str, Any]:
        """Run a command; its status and what it printed."""
        done = subprocess.run(
            [*self.place.command, *words],
            env=None if self.place.environment is None else dict(self.place.environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_TIMEOUT_S,
        )
        error = done.stderr.replace("rabbitmqctl", "burrowctl")
        return {"status": done.returncode, "output": done.stdout, "error": error}

    def restart(self) -> None:
        """Stop the broker cleanly and start it again, all connections with it."""
        assert self.place.restart is not None, "only on nodes apart"
        self.place.restart()

    # ---- made for a scenario, gone after it ------------------------------------------------------------------

    def policy(
        self,
        name: str,
        pattern: str,
        definition: Mapping[str, Any],
        *,
        operator: bool = False,
        **more: Any,
    ) -> tuple[int, Any]:
        """Set a policy on the vhost /; `apply_to` and `priority` as options."""
        kind = "operator-policies" if operator else "policies"
        path = f"{kind}/%2F/{quote(name, '')}"
        body = {"pattern": pattern, "definition": definition}
        body |= {key.replace("_", "-"): value for key, value in more.items()}
        self._undo.callback(self.http, "DELETE", path)
        return self.http("PUT", path, body)

    def clear_policy(self, name: str, *, operator: bool = False) -> tuple[int, Any]:
        """Clear a policy of the vhost /."""
        kind = "operator-policies" if operator else "policies"
        return self.http("DELETE", f"{kind}/%2F/{quote(name, '')}")

    def own(self, word: str) -> str:
        """Return this scenario's own name for something; in what is compared it is the word alone."""
        return word + self.mark

    def vhost(self, word: str, **metadata: Any) -> str:
        """Make a virtual host; return its name."""
        name = self.own(word)
        self.http("PUT", f"vhosts/{name}", metadata)
        self._undo.callback(self.http, "DELETE", f"vhosts/{name}")
        return name

    def inside(self, word: str) -> tuple[str, Peer]:
        """Make a virtual host; return its name and a channel in it."""
        name = self.vhost(word)
        self.permit("guest", ".*", ".*", ".*", name)
        return name, self.peer(vhost=name)

    def user(self, word: str, tags: str = "", permissions: Sequence[str] | None = None) -> str:
        """Make a user; return the name, which is the password too. Permissions (configure, write, read) are on /."""
        name = self.own(word)
        self.http("PUT", f"users/{name}", {"password": name, "tags": tags})
        self._undo.callback(self.http, "DELETE", f"users/{name}")
        if permissions is not None:
            self.permit(name, *permissions)
        return name

    def permit(self, user: str, configure: str, write: str, read: str, vhost: str = "/") -> None:
        """Grant permissions."""
        body = {"configure": configure, "write": write, "read": read}
        self.http("PUT", f"permissions/{quote(vhost, '')}/{user}", body)

    def also(self, undo: Callable[..., Any], *arguments: Any) -> None:
        """Call this after the scenario."""
        self._undo.callback(undo, *arguments)

    def forget(self, kind: str, name: str) -> None:
        """Delete this queue or exchange after the scenario (made by other means than a peer)."""
        self._made.add((kind, name))

    def finish(self) -> None:
        """Close what is open and delete what was made."""
        for link in self._links:
            link.close()
        self._undo.close()
        if self._made:
            cleaner = Peer(Link(self.place.amqp_port), 1, set())
            for kind, name in sorted(self._made):
                (cleaner.delete if kind == "queue" else cleaner.delete_exchange)(name)
            cleaner.link.close()


def _close_quietly(connection: pika.BlockingConnection) -> None:
    with contextlib.suppress(pika.exceptions.AMQPError, OSError):
        connection.close()


_NAMES = (
    (re.compile(r"amq\.gen-[A-Za-z0-9_-]{22}"), "amq.gen-*"),
    (re.compile(r"amq\.ctag-[A-Za-z0-9_-]{22}"), "amq.ctag-*"),
    (re.compile(r"amq\.rabbitmq\.reply-to\.[A-Za-z0-9+/=_.-]+"), "amq.rabbitmq.reply-to.*"),
    (re.compile(r"127\.0\.0\.1:\d{4,5}"), "127.0.0.1:<port>"),
    (re.compile(r"<[\w@.-]+\.\d+\.\d+\.\d+>|<\d+\.\d+\.\d+>"), "<pid>"),
    (re.compile(rf"\b(?:rabbit|n\d+)@(?:localhost|{re.escape(socket.gethostname())})"), "<node>"),
)


def mark_of(scenario: str) -> str:
    """Return what makes a name a scenario's own."""
    return f"-{zlib.crc32(scenario.encode()):08x}"


def made_comparable(record: Any, mark: str = "") -> Any:
    """Replace what no two brokers can have in common: made-up names, ports, process ids, the present time.

    The scenario's mark goes too, so that the table of differences has the words of the scenario.
    """
    match record:
        case dict():
            return {
                key.replace(mark, "") if isinstance(key, str) else key: made_comparable(value, mark)
                for key, value in record.items()
            }
        case list() | tuple():
            return [made_comparable(value, mark) for value in record]
        case bytes():
            return made_comparable(record.decode("utf-8", "backslashreplace"), mark)
        case str():
            record = record.replace(mark, "")
            for pattern, name in _NAMES:
                record = pattern.sub(name, record)
            return _without_time(record)
    return record


def _without_time(text: str) -> str:
    tag, _, value = text.partition(":")
    if tag == "T" and value.isdigit() and abs(int(value) - time.time()) < 600:
        return "T:<now>"
    return text
