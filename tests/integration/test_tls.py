"""TLS on a real broker process with real clients: logins, certificates, the wrong port, management, refusal to start."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import aio_pika
import pika
import pytest

from tests.support.black_box import eventually
from tests.support.broker_process import ROOT, BrokerProcess
from tests.support.secure_node import BOB, SecureNode

pytestmark = [pytest.mark.slow]
BIG = b"x" * 3_000_000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureNode]:
    found = SecureNode(tmp_path_factory.mktemp("tls") / "node")
    yield found
    assert found.process.stop() == 0
    assert "Traceback" not in found.process.log_of_this_start()


def test_messages_through_both_versions(node: SecureNode) -> None:
    for newest in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        connection = node.connect(newest=newest)
        channel = connection.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        for body in (b"", b"small", BIG):
            channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2))
            assert channel.basic_get(queue, auto_ack=True)[2] == body
        rows = json.loads(
            node.process.ctl(
                "list_connections",
                "ssl",
                "ssl_protocol",
                "ssl_cipher",
                "auth_mechanism",
                "--formatter",
                "json",
            )
        )
        version = "tlsv1.2" if newest == ssl.TLSVersion.TLSv1_2 else "tlsv1.3"
        assert version in {row["ssl_protocol"] for row in rows}
        connection.close()


async def _aio_pika(url: str) -> None:
    connection = await aio_pika.connect(url)
    channel = await connection.channel()
    queue = await channel.declare_queue("", exclusive=True)
    await channel.default_exchange.publish(aio_pika.Message(BIG), queue.name)
    found = await queue.get(timeout=10)
    assert found.body == BIG
    await connection.close()


def test_another_client(node: SecureNode) -> None:
    import asyncio

    url = f"amqps://guest:guest@localhost:{node.port}/?cafile={node.authority.file}"
    asyncio.run(_aio_pika(url))


def test_a_certificate_logs_in(node: SecureNode) -> None:
    connection = node.connect(node.bob, external=True)
    rows = json.loads(
        node.process.ctl(
            "list_connections",
            "user",
            "auth_mechanism",
            "peer_cert_subject",
            "peer_cert_issuer",
            "--formatter",
            "json",
        )
    )
    expected = {
        "user": BOB,
        "auth_mechanism": "EXTERNAL",
        "peer_cert_subject": BOB,
        "peer_cert_issuer": "CN=Test CA",
    }
    assert expected in rows
    connection.close()


def test_nobody_logs_in_without_one(node: SecureNode) -> None:
    with pytest.raises(pika.exceptions.ProbableAuthenticationError, match="EXTERNAL"):
        node.connect(external=True)
    assert "connection peer presented no TLS" in node.process.log_of_this_start()


def test_a_certificate_of_another_authority_is_no_certificate(node: SecureNode) -> None:
    with pytest.raises((pika.exceptions.AMQPConnectionError, ssl.SSLError, OSError)):
        node.connect(node.mallory, external=True)
    eventually(lambda: "TLS handshake failed" in node.process.log_of_this_start())


def test_external_is_not_offered_without_tls(node: SecureNode) -> None:
    parameters = pika.ConnectionParameters(
        "127.0.0.1", node.process.amqp_port, credentials=pika.credentials.ExternalCredentials()
    )
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        pika.BlockingConnection(parameters)
    pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.process.amqp_port)).close()


def read_all(sock: socket.socket) -> bytes:
    """What comes until the other side ends it; a reset is an end."""
    found = b""
    try:
        while data := sock.recv(4096):
            found += data
    except ConnectionError:
        pass
    return found


def test_a_plain_client_on_the_tls_port_and_the_other_way_round(node: SecureNode) -> None:
    with socket.create_connection(("127.0.0.1", node.port), timeout=10) as sock:
        sock.sendall(b"AMQP\0\0\x09\x01")
        assert b"AMQP" not in read_all(sock)
    with socket.create_connection(("127.0.0.1", node.process.amqp_port), timeout=10) as sock:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            node.context().wrap_socket(sock, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", node.port), timeout=10) as sock:
        assert read_all(sock) == b""  # silent: closed after ssl_handshake_timeout
    node.connect().close()


def test_a_stalled_consumer_holds_the_same_little_memory(node: SecureNode) -> None:
    publisher, consumer = node.connect(), node.connect()
    sender, receiver = publisher.channel(), consumer.channel()
    sender.queue_declare("stalled")
    receiver.basic_consume("stalled", lambda *_: None, auto_ack=True)
    before = node.process.rss_bytes()
    for _ in range(40):
        sender.basic_publish("", "stalled", BIG)
    publisher.close()
    assert node.process.rss_bytes() - before < 100_000_000
    consumer._impl._transport._sock.close()
    cleaner = node.connect()
    cleaner.channel().queue_delete("stalled")
    cleaner.close()


def test_management_and_metrics(node: SecureNode) -> None:
    context = node.context()
    request = urllib.request.Request(
        f"https://localhost:{node.https}/api/overview",
        headers={"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="},
    )
    with urllib.request.urlopen(request, context=context, timeout=10) as answer:
        overview = json.load(answer)
    protocols = {row["protocol"] for row in overview["listeners"]}
    assert {"amqp", "amqp/ssl", "http", "https", "http/prometheus", "https/prometheus"} == protocols
    with urllib.request.urlopen(
        f"https://localhost:{node.metrics}/metrics", context=context, timeout=10
    ) as answer:
        assert b"rabbitmq_build_info" in answer.read()
    assert "amqp/ssl" in node.process.ctl("listeners")
    assert "Successfully connected" in node.process.ctl("check_port_connectivity")


def test_a_bad_file_ends_the_start_with_its_line(
    own_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    conf = tmp_path / "rabbitmq.conf"
    conf.write_text("listeners.ssl.1 = 5671\nssl_options.certfile = /missing.pem\n")
    done = subprocess.run(
        [sys.executable, "-m", "burrowmq.broker", "--config", str(conf), "--data-dir", str(tmp_path / "d")],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 78
    assert "rabbitmq.conf:2: ssl_options.certfile: file /missing.pem does not exist" in done.stderr


def test_a_shovel_moves_in_and_out_over_tls(node: SecureNode) -> None:
    """Its link checks the certificate; small messages and one of many frames keep their order."""
    connection = node.connect()
    channel = connection.channel()
    channel.confirm_delivery()
    for queue in ("there", "back"):
        channel.queue_declare(queue, durable=True)
    bodies = [b"%d" % number for number in range(200)] + [BIG]
    for body in bodies:
        channel.basic_publish("", "there", body)
    secured = (
        f"amqps://guest:guest@127.0.0.1:{node.port}"
        f"?cacertfile={node.authority.file}&verify=verify_peer"
    )

    def has_all(queue: str) -> bool:
        found = channel.queue_declare(queue, passive=True).method.message_count
        return bool(found == len(bodies))

    for source, destination, queues in (
        (secured, "amqp://", ("there", "back")),
        ("amqp://", secured, ("back", "there")),
    ):
        definition = {
            "src-uri": source,
            "src-queue": queues[0],
            "dest-uri": destination,
            "dest-queue": queues[1],
            "src-delete-after": "queue-length",
        }
        node.process.ctl("set_parameter", "shovel", f"to {queues[1]}", json.dumps(definition))
        eventually(lambda to=queues[1]: has_all(to))
    assert [channel.basic_get("there", auto_ack=True)[2] for _ in bodies] == bodies
    connection.close()
