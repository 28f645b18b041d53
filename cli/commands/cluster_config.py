"""cluster_config: configuration files for nats-servers that keep quorum queues and streams, and for front-ends.

Owns no state but the files that it writes. They say what the promises of docs/quorum-queues.md need, and what a server
does not do by itself: each write is synced before a majority has it, routes and clients have to know a password. Asks
no node. A file that is there is never replaced without --force.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter
from typing import NamedTuple

from burrowmq.cli.errors import DATAERR, IOERR, OK, SOFTWARE, CliError, bad_option, failure
from burrowmq.cli.invocation import Invocation

SIZES = (1, 3, 5)
CLIENT_PORT = 4222
ROUTE_PORT = 6222
STORE = "/var/lib/nats"
USER = "burrowmq"
WORD = "letters, digits, '-', '.' and '_'"
FRONT_END = "burrowmq-cluster.conf"
REPLICAS = 3
"""Of a queue that does not say otherwise, where there are so many servers."""

SERVER_FILE = """\
# nats-server {name} of {count} that keep BurrowMQ's quorum queues and streams. Made by burrowctl cluster_config.
# Start it with: nats-server --config {name}.conf
server_name: "{name}"
listen: "{host}:{client_port}"
# The largest message of a quorum queue, with its properties.
max_payload: 8MB
jetstream {{
  store_dir: "{store}/{name}"
  # A confirm means that a majority has it on disk. With the default, two minutes, a power cut loses confirmed messages.
  sync_interval: always
}}
cluster {{
  name: "burrowmq"
  listen: "{host}:{route_port}"
  authorization {{ user: "route", password: "{route_password}" }}
  routes: [{routes}]
}}
authorization {{ user: "{user}", password: "{password}" }}
"""

FRONT_END_FILE = """\
## The servers that keep quorum queues and streams. Made by burrowctl cluster_config.
## Belongs into each front-end's rabbitmq.conf, or beside it in conf.d.
cluster.urls = {urls}
cluster.user = {user}
cluster.password = {password}
cluster.replicas = {replicas}
"""


class Server(NamedTuple):
    """Where one of them listens."""

    name: str
    host: str
    client_port: int
    route_port: int


def cluster_config(invocation: Invocation) -> int:
    """cluster_config [--force] [--client-port N] [--route-port N] [--store DIR] [--user U] DIRECTORY [NAME=]HOST ..."""
    directory, *hosts = invocation.args
    files = _files(invocation, _servers(invocation, hosts))
    directory = os.path.abspath(directory)
    try:
        os.makedirs(directory, exist_ok=True)
        if "force" not in invocation.flags:
            _check_free(directory, list(files))
        for name, text in files.items():
            _write(os.path.join(directory, name), text)
    except OSError as error:
        raise failure(f"{error.filename}: {error.strerror}", IOERR) from error
    for name in files:
        invocation.say(os.path.join(directory, name))
    invocation.say(
        "They hold passwords, and only you can read them. Copy each server's file to its machine, and start"
        f" nats-server 2.15 there; put the lines of {FRONT_END} into each front-end's rabbitmq.conf;"
        " `burrowctl cluster_status` says who is there."
    )
    return OK


def _servers(invocation: Invocation, hosts: list[str]) -> list[Server]:
    """Raises: CliError for a number of them that makes no majority, for names and ports that clash or are none."""
    if len(hosts) not in SIZES:
        raise failure(
            f"1, 3 or 5 servers keep a quorum queue, not {len(hosts)}:"
            " of an even number a majority is no smaller than of one more",
            DATAERR,
        )
    client_port = _port(invocation, "client-port", CLIENT_PORT)
    route_port = _port(invocation, "route-port", ROUTE_PORT)
    servers: list[Server] = []
    seen: Counter[str] = Counter()
    for number, text in enumerate(hosts, start=1):
        name, _, host = text.rpartition("=")
        _check_word(host)
        nth = seen[host]
        seen[host] += 1
        server = Server(
            _check_word(name or f"n{number}"), host, client_port + nth, route_port + nth
        )
        servers.append(server)
    files = {f"{server.name}.conf" for server in servers}
    if len(files) < len(servers) or FRONT_END in files:
        raise failure(
            f"each server needs a name of its own, and none may be {FRONT_END.removesuffix('.conf')}",
            DATAERR,
        )
    if max(seen.values()) > abs(client_port - route_port):
        raise failure("the ports of clients and of routes are too near to each other", DATAERR)
    if max(client_port, route_port) + max(seen.values()) - 1 > 65535:
        raise failure("a port is at most 65535", DATAERR)
    return servers


def _port(invocation: Invocation, option: str, default: int) -> int:
    text = invocation.values.get(option, str(default))
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 65535:
        raise bad_option(option, text, "a port is a number from 1 to 65535")
    return int(text)


def _is_word(text: str) -> bool:
    """Whether a name or a host means the same in both kinds of file, in a URL and in a path."""
    return bool(text) and all(each.isascii() and (each.isalnum() or each in "-._") for each in text)


def _check_word(text: str) -> str:
    if not _is_word(text):
        raise failure(f"{text or 'nothing'}: a name or host has {WORD}", DATAERR)
    return text


def _files(invocation: Invocation, servers: list[Server]) -> dict[str, str]:
    """Texts by file name."""
    user = invocation.values.get("user", USER)
    if not _is_word(user):
        raise bad_option("user", user, f"a name has {WORD}")
    store = os.path.abspath(invocation.values.get("store", STORE))
    if '"' in store or "\\" in store or not store.isprintable():
        raise bad_option("store", store, "no quotes, backslashes and line ends")
    password, route_password = secrets.token_hex(20), secrets.token_hex(20)
    files = {}
    for server in servers:
        routes = ", ".join(
            f'"nats://route:{route_password}@{other.host}:{other.route_port}"'
            for other in servers
            if other is not server
        )
        files[f"{server.name}.conf"] = SERVER_FILE.format(
            **server._asdict(),
            count=len(servers),
            store=store,
            routes=routes,
            user=user,
            password=password,
            route_password=route_password,
        )
    urls = ", ".join(f"nats://{server.host}:{server.client_port}" for server in servers)
    replicas = min(len(servers), REPLICAS)
    files[FRONT_END] = FRONT_END_FILE.format(
        urls=urls, user=user, password=password, replicas=replicas
    )
    return files


def _check_free(directory: str, names: list[str]) -> None:
    """Raises: CliError 70 when one of the files is there."""
    taken = [path for name in names if os.path.lexists(path := os.path.join(directory, name))]
    if taken:
        raise CliError(
            SOFTWARE,
            f"Error:\n{', '.join(taken)}: there already; nothing was changed. --force replaces them.",
        )


def _write(path: str, text: str) -> None:
    """In one step, readable by its owner only."""
    new = f"{path}.new"
    with open(
        os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600),
        "w",
        encoding="utf-8",
    ) as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
