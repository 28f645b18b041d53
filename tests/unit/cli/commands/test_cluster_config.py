"""Configuration files for nats-servers: what they say, who may read them, what is refused.

`tests.cluster.test_cluster_config` starts servers from them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.served import ctl


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_three_servers_sync_always_and_know_each_other_and_the_front_end_knows_them(
    tmp_path: Path,
) -> None:
    output = ctl("cluster_config", str(tmp_path), "10.0.0.1", "east=10.0.0.2", "west.example.com")
    assert output.code == 0, output.err
    files = ["n1.conf", "east.conf", "n3.conf", "burrowmq-cluster.conf"]
    assert output.out.splitlines()[:4] == [str(tmp_path / name) for name in files]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    east = text(tmp_path / "east.conf")
    assert "sync_interval: always" in east
    assert 'server_name: "east"\nlisten: "10.0.0.2:4222"' in east
    assert 'store_dir: "/var/lib/nats/east"' in east
    assert re.findall(r"nats://route:\w{40}@([^\"]+)", east) == [
        "10.0.0.1:6222",
        "west.example.com:6222",
    ]
    front_end = text(tmp_path / "burrowmq-cluster.conf")
    (password,) = re.findall(r"cluster.password = (\w{40})\n", front_end)
    urls = "nats://10.0.0.1:4222, nats://10.0.0.2:4222, nats://west.example.com:4222"
    assert f"cluster.urls = {urls}\ncluster.user = burrowmq\n" in front_end
    assert front_end.endswith("cluster.replicas = 3\n")
    for name in files[:3]:
        assert f'user: "burrowmq", password: "{password}"' in text(tmp_path / name)
        assert text(tmp_path / name).count(password) == 1, "routes have a password of their own"


@pytest.mark.parametrize(("count", "replicas"), [(1, 1), (5, 3)])
def test_replicas_are_as_many_as_there_are_servers_and_three_at_most(
    tmp_path: Path, count: int, replicas: int
) -> None:
    assert ctl("cluster_config", str(tmp_path), *["localhost"] * count).code == 0
    front_end = text(tmp_path / "burrowmq-cluster.conf")
    ports = [f"nats://localhost:{4222 + nth}" for nth in range(count)]
    assert f"cluster.urls = {', '.join(ports)}\n" in front_end
    assert f"cluster.replicas = {replicas}\n" in front_end


def test_what_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    (tmp_path / "n1.conf").write_text("somebody's")
    (tmp_path / "n1.conf").chmod(0o644)
    output = ctl("cluster_config", str(tmp_path), "a")
    assert (output.code, os.listdir(tmp_path)) == (70, ["n1.conf"])
    assert f"{tmp_path}/n1.conf: there already; nothing was changed" in output.err
    assert ctl("cluster_config", "--force", "--user", "mq", str(tmp_path), "a").code == 0
    assert 'user: "mq"' in text(tmp_path / "n1.conf")
    assert (tmp_path / "n1.conf").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a", "b"], 65, "1, 3 or 5 servers keep a quorum queue, not 2"),
        (["a", "x=b", "x=c"], 65, "each server needs a name of its own"),
        (["burrowmq-cluster=a"], 65, "each server needs a name of its own, and none may be burrowmq-cluster"),
        (['a"b'], 65, "a name or host has letters"),
        (["x="], 65, "nothing: a name or host has letters"),
        (["../x=a"], 65, "a name or host has letters"),
        (["--user", "a b", "a"], 64, "--user : a b (a name has letters, digits"),
        (["--store", '/x"y', "a"], 64, '--store : /x"y (no quotes, backslashes and line ends)'),
        (["--client-port", "0", "a"], 64, "--client-port : 0 (a port is a number from 1 to 65535)"),
        (["--route-port", "x", "a"], 64, "--route-port : x (a port is a number"),
        (["--route-port", "4223", "a", "a", "a"], 65, "too near to each other"),
        (["--client-port", "65534", "a", "a", "a"], 65, "a port is at most 65535"),
    ],
)  # fmt: skip
def test_what_no_server_would_take_is_refused_before_anything_is_written(
    tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    options = words[:2] if words[0].startswith("--") else []
    output = ctl("cluster_config", *options, str(tmp_path / "new"), *words[len(options) :])
    assert (output.code, (tmp_path / "new").exists()) == (code, False)
    assert said in output.err
