"""BurrowMQ nodes of this checkout, compiled or interpreted (`BURROWMQ_PURE=1`).

Owns no state. Statistics, management and Prometheus listeners are on, as by default. `version()` asks the chooser of
the codec which one it loads, so that no row of an interpreted node can pass for a compiled one.
"""

import os
import subprocess
import sys
from pathlib import Path

from bench.peers.base import Launch, Node, Setting, certificate, free_ports

_ROOT = Path(__file__).resolve().parents[2]
_ASK = (
    "import importlib.metadata as m\n"
    "try: import burrowmq.protocol.codec as c\n"
    "except ModuleNotFoundError: import protocol.codec as c\n"  # a checkout from before the one package
    "try: v = m.version('burrowmq')\n"
    "except m.PackageNotFoundError: v = 'checkout'\n"
    "print(v, c.NAME)"
)


def _command(name: str) -> Path:
    beside = Path(sys.executable).parent / name
    return beside if beside.exists() else _ROOT / ".venv" / "bin" / name


class BurrowMQ:
    """This project's broker in one of its two speeds."""

    def __init__(self, *, is_interpreted: bool, name: str, root: Path = _ROOT) -> None:
        self._is_interpreted = is_interpreted
        self._name = name
        self._root = root

    @property
    def name(self) -> str:
        return self._name

    @property
    def title(self) -> str:
        return f"BurrowMQ ({'interpreted' if self._is_interpreted else 'compiled'})"

    def _environment(self) -> dict[str, str]:
        environment = {"BURROWMQ_PURE": "1"} if self._is_interpreted else {"BURROWMQ_PURE": ""}
        if self._root != _ROOT:  # another checkout, run with this one's dependencies
            environment["PYTHONPATH"] = str(self._root)
        return environment

    def _server(self) -> list[str]:
        if self._root == _ROOT:
            return [str(_command("burrowmq-server"))]
        package = "burrowmq" if (self._root / "burrowmq").is_dir() else "broker"
        return [sys.executable, "-m", package]

    def version(self) -> str | None:
        if not _command("burrowmq-server").exists():
            return None
        done = subprocess.run(
            [sys.executable, "-c", _ASK],
            env={**os.environ, **self._environment()},
            cwd=self._root,
            capture_output=True,
            text=True,
            check=False,
        )
        version, _, codec = done.stdout.strip().partition(" ")
        wanted = "interpreted" if self._is_interpreted else "compiled"
        return f"{version}, {codec} codec" if codec == wanted else None

    def durability(self, setting: Setting) -> str:
        log = ", no commit log" if setting.commit_log == "off" else ""
        awake = f", busy_wait = {setting.busy_wait}" if setting.busy_wait else ""
        return f"confirm = {setting.confirm}{log}{awake}"

    def node(self, directory: Path, setting: Setting) -> Node:
        port, management, prometheus, tls_port = free_ports(4)
        data = directory / "data"
        settings = {
            "listeners.tcp.default": f"127.0.0.1:{port}",
            "management.tcp.port": str(management),
            "prometheus.tcp.port": str(prometheus),
            "confirm": setting.confirm,
            "classic_queue.default_mode": setting.default_mode,
        }
        if setting.commit_log:
            settings["store_commit_log"] = setting.commit_log
        if setting.busy_wait:
            settings["busy_wait"] = setting.busy_wait
        if setting.scrub_period:
            settings["store_scrub_period"] = setting.scrub_period
        if setting.scrub_rate:
            settings["store_scrub_rate_limit"] = setting.scrub_rate
        if setting.is_tls:
            found, key = certificate(directory)
            settings["listeners.ssl.default"] = f"127.0.0.1:{tls_port}"
            settings["ssl_options.certfile"] = str(found)
            settings["ssl_options.keyfile"] = str(key)
        command = [*self._server(), "--data-dir", str(data)]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        launch = Launch(
            command=command,
            environment=self._environment(),
            directory=directory,
            data_directory=data,
            port=port,
            metrics_port=prometheus,
            tls_port=tls_port,
            control=[str(_command("burrowctl")), "--data-dir", str(data)],
        )
        return Node(peer=self.name, setting=setting, launch=launch)
