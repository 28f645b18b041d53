"""Brokers for the client's tests: a BurrowMQ process always, RabbitMQ where Debian's is installed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyspark_amqp.wire import Connection, connect, declare_queue
from tests.support.broker_process import BrokerProcess, external_target


@pytest.fixture(scope="session")
def broker_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a broker: the one under test, or a fresh process of ours."""
    outside = external_target()
    if outside is not None:
        yield outside.url
        return
    node = BrokerProcess(tmp_path_factory.mktemp("node") / "data")
    node.start()
    yield node.url
    assert node.stop() == 0


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Yield a process of ours, whatever broker is under test: one whose management port is known."""
    node = BrokerProcess(tmp_path_factory.mktemp("node") / "data")
    node.start()
    yield node
    assert node.stop() == 0


@pytest.fixture
def connection(broker_url: str) -> Iterator[Connection]:
    """Yield an open connection."""
    with connect(broker_url, timeout_s=15) as opened:
        yield opened


@pytest.fixture
def queue(broker_url: str) -> str:
    """Return a durable queue of its own."""
    name = f"spark.{uuid.uuid4().hex[:12]}"
    with connect(broker_url) as opened:
        declare_queue(opened, name)
    return name


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with cert.pem and key.pem for localhost, signed by itself."""
    import shutil
    import subprocess

    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
        ],
        check=True,
        capture_output=True,
    )
    return folder
