"""Private RabbitMQ nodes of the Debian package: own ports, own directories, no plugins, own epmd, all on loopback.

Owns no state. A system node is neither used nor touched. The node is stopped by its process id; the epmd that it started is
found by the port in its environment and stopped by process id too.
"""

import os
import re
import signal
import subprocess
from pathlib import Path

from bench.peers.base import Launch, Node, Setting, certificate, free_ports
from bench.procfs import command_name

_SCRIPTS = Path("/usr/lib/rabbitmq/bin")


def stop_epmd(epmd_port: int) -> None:
    """End the port mapper that a node has started on this port."""
    marker = f"ERL_EPMD_PORT={epmd_port}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or command_name(int(entry.name)) != "epmd":
            continue
        try:
            if marker in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGTERM)
        except OSError:
            continue


class RabbitMQ:
    """The reference broker."""

    @property
    def name(self) -> str:
        return "rabbitmq"

    @property
    def title(self) -> str:
        return "RabbitMQ"

    def version(self) -> str | None:
        if not (_SCRIPTS / "rabbitmq-server").exists():
            return None
        done = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"],
            capture_output=True,
            text=True,
            check=False,
        )
        found = re.match(r"[\d.]+", done.stdout)
        return found.group(0).rstrip(".") if found else "unknown"

    def durability(self, setting: Setting) -> str:
        return "confirm after write, fsync on idle"

    def node(self, directory: Path, setting: Setting) -> Node:
        port, distribution, epmd, tls_port = free_ports(4)
        directory.mkdir(parents=True, exist_ok=True)
        settings = [f"listeners.tcp.1 = 127.0.0.1:{port}"]
        if setting.is_tls:
            found, key = certificate(directory)
            settings += [
                f"listeners.ssl.1 = 127.0.0.1:{tls_port}",
                "ssl_options.verify = verify_none",
            ]
            settings += [f"ssl_options.certfile = {found}", f"ssl_options.keyfile = {key}"]
        (directory / "rabbitmq.conf").write_text("\n".join([*settings, ""]))
        (directory / "plugins").write_text("[].\n")
        environment = {
            "HOME": str(directory),
            "RABBITMQ_NODENAME": f"bench{port}@localhost",
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(directory / "data"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_DIST_PORT": str(distribution),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(epmd),
        }
        launch = Launch(
            command=[str(_SCRIPTS / "rabbitmq-server")],
            environment=environment,
            directory=directory,
            data_directory=directory / "data",
            port=port,
            tls_port=tls_port,
            control=[str(_SCRIPTS / "rabbitmqctl"), "-q"],
            broker_command_name="beam.smp",
            after_stop=lambda: stop_epmd(epmd),
        )
        return Node(peer=self.name, setting=setting, launch=launch)
