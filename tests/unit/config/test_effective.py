"""burrowmq.config.effective: what a node runs with, and where each value comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.config.effective import Effective, is_secret
from burrowmq.config.load import load


def test_each_key_has_its_source(tmp_path: Path) -> None:
    file = tmp_path / "rabbitmq.conf"
    file.write_text("heartbeat = 3\nlisteners.tcp.here = 127.0.0.1:1\nranch_connection_max = 5\n")
    environ = {"RABBITMQ_DEFAULT_PASS": "hush", "RABBITMQ_NODE_PORT": "5700"}
    rows = {
        row.key: row for row in load(str(file), environ, [("frame_max", "8kb")], None).effective
    }
    assert rows["heartbeat"] == Effective("heartbeat", "3", f"{file}:1")
    assert rows["listeners.tcp.here"].source == f"{file}:2"
    assert rows["ranch_connection_max"].remark
    assert rows["default_pass"] == Effective("default_pass", "(hidden)", "RABBITMQ_DEFAULT_PASS")
    assert rows["RABBITMQ_NODE_PORT"].value == "5700"  # it makes a listener where no key does
    assert rows["frame_max"] == Effective("frame_max", "8kb", "--set")
    assert rows["channel_max"] == Effective("channel_max", "2047", "default")
    assert list(rows) == sorted(rows)


@pytest.mark.parametrize(
    ("key", "is_hidden"),
    [
        ("default_pass", True),
        ("ssl_options.password", True),
        ("management.oauth_client_secret", True),
        ("ssl_options.key.RSAPrivateKey", True),
        ("cluster_formation.aws.secret_key", True),
        ("password_hashing_module", False),
        ("default_user", False),
    ],
)
def test_secrets_are_known_by_their_names(key: str, is_hidden: bool) -> None:
    assert is_secret(key) is is_hidden
