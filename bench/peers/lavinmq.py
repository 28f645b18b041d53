"""Private LavinMQ nodes, when a `lavinmq` binary is on the path.

Owns no state. LavinMQ prints no line like RabbitMQ's when it is ready, so a shell writes it after the port answers.
"""

import shutil
import subprocess
from pathlib import Path

from bench.peers.base import READY_LINE, Launch, Node, Setting, certificate, free_ports

# bash: wait until the port accepts, say so, then be the broker's parent until it ends.
_SCRIPT = (
    '"$@" & broker=$!; trap "kill $broker" TERM; '
    "until (exec 3<>/dev/tcp/127.0.0.1/$PORT) 2>/dev/null; do sleep 0.02; done; "
    f"echo '{READY_LINE}'; wait $broker; wait $broker"
)


class LavinMQ:
    """A fast broker in Crystal, for orientation; nothing has to be reached beside it."""

    @property
    def name(self) -> str:
        return "lavinmq"

    @property
    def title(self) -> str:
        return "LavinMQ"

    def version(self) -> str | None:
        binary = shutil.which("lavinmq")
        if binary is None:
            return None
        done = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False)
        return done.stdout.strip() or "unknown"

    def durability(self, setting: Setting) -> str:
        return "its default"

    def node(self, directory: Path, setting: Setting) -> Node:
        port, management, tls_port = free_ports(3)
        data = directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        broker = [shutil.which("lavinmq") or "lavinmq", "-D", str(data), "--bind=127.0.0.1"]
        broker += [f"--amqp-port={port}", f"--http-port={management}"]
        if setting.is_tls:
            found, key = certificate(directory)
            broker += [f"--amqps-port={tls_port}", f"--cert={found}", f"--key={key}"]
        launch = Launch(
            command=["bash", "-c", _SCRIPT, "lavinmq", *broker],
            environment={"PORT": str(port)},
            directory=directory,
            data_directory=data,
            port=port,
            tls_port=tls_port,
            control=["lavinmqctl", f"--uri=http://guest:guest@127.0.0.1:{management}"],
            broker_command_name="lavinmq",
        )
        return Node(peer=self.name, setting=setting, launch=launch)
