"""The image's entry point: RabbitMQ's variables that it refuses, and what it starts as whom."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .queries import ROOT

SHELL = "/bin/sh"


def enter(folder: Path, user: int, *words: str, **environment: str) -> tuple[int, str, str]:
    """Run the entry point as that user would; programs of the image are scripts that say what they were given."""
    for name, text in (
        ("id", f"echo {user}"),
        ("burrowmq-server", 'echo "server $*"; echo "a log line" >&2'),
        ("setpriv", 'echo "setpriv $1"; shift 3; exec "$@"'),
        ("find", 'echo "find $1"'),
    ):
        program = folder / name
        program.write_text(f"#!{SHELL}\n{text}\n")
        program.chmod(0o755)
    done = subprocess.run(
        [SHELL, str(ROOT / "image" / "entrypoint.sh"), *words],
        env={"PATH": f"{folder}:/usr/bin:/bin", "BURROWMQ_DATA_DIR": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_server_runs_as_rabbitmq_and_logs_to_standard_output(tmp_path: Path) -> None:
    code, out, err = enter(tmp_path, 0, "rabbitmq-server", "--set", "heartbeat=3")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines == [
        "find /var/lib/rabbitmq",
        "setpriv --reuid=rabbitmq",
        "server --set heartbeat=3",
        "a log line",
    ]


def test_another_user_owns_the_volume_already(tmp_path: Path) -> None:
    assert enter(tmp_path, 999, "burrowmq-server")[1] == "server \na log line\n"
    assert enter(tmp_path, 999, "echo", "hello") == (0, "hello\n", "")


@pytest.mark.parametrize(
    "name",
    ["RABBITMQ_VM_MEMORY_HIGH_WATERMARK", "RABBITMQ_DEFAULT_PASS_FILE", "RABBITMQ_SSL_CERTFILE"],
)
def test_variables_that_the_official_image_refuses(tmp_path: Path, name: str) -> None:
    code, out, err = enter(tmp_path, 0, "rabbitmq-server", **{name: "x"})
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {name} is set but deprecated\n")
    assert "mount /etc/rabbitmq/rabbitmq.conf" in err
