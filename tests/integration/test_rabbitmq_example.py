"""A node that is given RabbitMQ 3.13.7's own example file with every line on.

The machine's part of the lines is put in: addresses and ports that are free here, files that exist.
"""

from __future__ import annotations

import json
import socket
import ssl
from pathlib import Path

import pika
import pytest

from tests.support.broker_process import ROOT, BrokerProcess
from tests.support.certificates import Authority, Leaf, distinguished
from tests.support.ports import free_port

EXAMPLE = ROOT / "tests" / "data" / "config" / "rabbitmq-example.txt"


def example() -> list[tuple[str, str]]:
    """Return key and value of each line; a key's lines stand in their order, the last one counts."""
    rows = [line.split(" | ") for line in EXAMPLE.read_text().splitlines() if line[0] != "#"]
    return [(key, value) for key, *values in rows for value in values]


def loopback(value: str) -> str:
    """Return the listener's address on this machine, with a free port."""
    host = "::1" if value.startswith("::1:") and has_ipv6_loopback() else "127.0.0.1"
    return f"{host}:{free_port()}"


def has_ipv6_loopback() -> bool:
    """Say whether something may listen on ::1 here."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def here(folder: Path, authority: Authority) -> dict[str, str]:
    """Write the files that the example speaks of; return the end of a key -> path."""
    server = authority.issue_server()
    definitions = folder / "definitions.json"
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    definitions.write_text(
        json.dumps(
            {
                "vhosts": [{"name": "/"}],
                "users": [{"name": "guest", "password": "example", "tags": []}],
                "permissions": [{"user": "guest", "vhost": "/", **everything}],
            }
        )
    )
    (folder / "motd").write_text("Welcome to the node of the example\n")
    (folder / "log").mkdir()
    return {
        "cacertfile": str(authority.file),
        "certfile": str(server.certificate),
        "keyfile": str(server.key),
        "load_definitions": str(definitions),
        "motd_file": str(folder / "motd"),
        "dir": str(folder / "log"),
        "http_log_dir": str(folder / "log"),
    }


def put_in(key: str, value: str, files: dict[str, str]) -> str:
    """Return the value that the line has on this machine."""
    if key.startswith("listeners.") and value != "none":
        return loopback(value)
    if key in {"management.tcp.port", "management.ssl.port"}:
        return str(free_port())
    is_path = "/" in value or key == "log.dir"
    return files.get(key.rpartition(".")[2], value) if is_path else value


@pytest.mark.slow
def test_the_example_file_with_every_line_on_starts_the_node(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files = here(tmp_path, authority)
    lines = [(key, put_in(key, value, files)) for key, value in example()]
    assert len(lines) == 283
    conf = tmp_path / "rabbitmq.conf"
    conf.write_text("".join(f"{key} = {value}\n" for key, value in lines))
    console = {"log.console": "true", "log.console.level": "info"}  # the last line turns it off
    environment = {"RABBITMQ_CONFIG_FILE": str(conf)}
    node = BrokerProcess(tmp_path / "data", console, environment)
    node.start()
    try:
        rows = node.ctl("environment").splitlines()
        found = {row.partition(" = ")[0]: row for row in rows if "  # " in row}
        assert {key for key, _ in lines} <= found.keys()
        idle = {key for key, row in found.items() if "; no effect: " in row}
        log = node.log_of_this_start()
        named = {key for key in found if f": {key} has no effect here: " in log}
        named |= {key for key, value in lines if f": {key} = {value} has no effect here: " in log}
        assert named == idle
        guest = authority.issue("guest", distinguished(common_name="guest"))
        port = int(dict(lines)["listeners.ssl.default"].rpartition(":")[2])
        with encrypted(authority, guest, port) as connection:
            channel = connection.channel()
            name = channel.queue_declare("q").method.queue
            channel.basic_publish("", name, b"by the example")
            assert channel.basic_get(name, auto_ack=True)[2] == b"by the example"
    finally:
        node.close()


def encrypted(authority: Authority, leaf: Leaf, port: int) -> pika.BlockingConnection:
    """Return a connection that logs in by its certificate; only that and AMQPLAIN are left by the example."""
    context = ssl.create_default_context(cafile=str(authority.file))
    context.load_cert_chain(leaf.certificate, leaf.key)
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            "localhost",
            port,
            credentials=pika.credentials.ExternalCredentials(),
            ssl_options=pika.SSLOptions(context, "localhost"),
        )
    )
