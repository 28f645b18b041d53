"""A broker process with TLS on every listener, and an authority that issues certificates for its clients.

State: the process, which its test kills, and files below the directory given.
"""

from __future__ import annotations

import ssl
from pathlib import Path

import pika

from tests.support.broker_process import BrokerProcess
from tests.support.certificates import Authority, Leaf, distinguished
from tests.support.ports import free_port

BOB = "CN=bob,O=client"


class SecureNode:
    """A broker with TLS on every listener, its authority, and clients' contexts."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.authority = Authority(directory)
        self.server = self.authority.issue_server()
        self.bob = self.authority.issue(
            "bob", distinguished(organization_name="client", common_name="bob")
        )
        (directory / "strangers").mkdir()
        self.mallory = Authority(directory / "strangers").issue(
            "mallory", distinguished(organization_name="client", common_name="bob")
        )
        self.port, self.https, self.metrics = free_port(), free_port(), free_port()
        files = {"certfile": self.server.certificate, "keyfile": self.server.key}
        settings = {
            "listeners.ssl.default": f"127.0.0.1:{self.port}",
            "ssl_options.cacertfile": str(self.authority.file),
            "ssl_options.verify": "verify_peer",
            "management.ssl.port": str(self.https),
            "prometheus.ssl.port": str(self.metrics),
            "auth_mechanisms.1": "PLAIN",
            "auth_mechanisms.2": "AMQPLAIN",
            "auth_mechanisms.3": "EXTERNAL",
            "ssl_handshake_timeout": "1000",
            **{
                f"{prefix}.{key}": str(value)
                for prefix in ("ssl_options", "management.ssl", "prometheus.ssl")
                for key, value in files.items()
            },
        }
        self.process = BrokerProcess(directory / "data", settings)
        self.process.start()
        self.process.ctl("add_user", BOB, "never used")
        self.process.ctl("set_permissions", BOB, ".*", ".*", ".*")

    def context(self, leaf: Leaf | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.file))
        if leaf is not None:
            context.load_cert_chain(leaf.certificate, leaf.key)
        return context

    def connect(
        self,
        leaf: Leaf | None = None,
        *,
        external: bool = False,
        newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    ) -> pika.BlockingConnection:
        context = self.context(leaf)
        context.maximum_version = newest
        who = (
            pika.credentials.ExternalCredentials()
            if external
            else pika.PlainCredentials("guest", "guest")
        )
        options = pika.SSLOptions(context, "localhost")
        return pika.BlockingConnection(
            pika.ConnectionParameters(
                "127.0.0.1", self.port, ssl_options=options, credentials=who, heartbeat=0
            )
        )
