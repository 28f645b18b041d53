"""What an operator changes at run time: texts, exit codes, effects."""

from __future__ import annotations

import socket

import pytest

from burrowmq.broker.rules.passwords import SHA256, fits
from tests.support.served import Served


def test_the_memory_watermark(served: Served) -> None:
    limits = served.node.monitor.limits
    output = served.ctl("set_vm_memory_high_watermark", "0.5")
    assert output.out == "Setting memory threshold on rabbit@test to 0.5 ...\n"
    assert limits.memory_bytes == 500_000_000
    output = served.ctl("set_vm_memory_high_watermark", "absolute", "2GB")
    assert output.out == "Setting memory threshold on rabbit@test to 2GB bytes ...\n"
    assert limits.memory_bytes == 2_000_000_000
    assert served.ctl("set_vm_memory_high_watermark", "absolute", "2GiB").code == 0
    assert limits.memory_bytes == 2 << 30


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("1.5",), 65, "Bad argument: The threshold should be a fraction between 0.0 and 1.0"),
        (("-1",), 65, "Bad argument: The threshold should be a fraction between 0.0 and 1.0"),
        (("x",), 65, "Bad argument."),
        (("nan",), 65, "Bad argument."),
        (("absolute", "2XB"), 65, "Bad argument: Invalid units."),
        (("absolute", "5.5GB"), 65, "Bad argument."),
        (("absolute",), 64, "not enough arguments."),
        ((), 64, "not enough arguments."),
    ],
)
def test_a_watermark_that_cannot_be(
    served: Served, arguments: tuple[str, ...], code: int, reason: str
) -> None:
    output = served.ctl("set_vm_memory_high_watermark", *arguments)
    assert output.code == code
    assert output.err.startswith(f"Error (argument validation): {reason}\nArguments given:\n\t")
    assert " ".join(["set_vm_memory_high_watermark", *arguments]) in output.err


def test_the_disk_limit(served: Served) -> None:
    limits = served.node.monitor.limits
    output = served.ctl("set_disk_free_limit", "100MB")
    assert output.out == "Setting disk free limit on rabbit@test to 100MB bytes ...\n"
    assert limits.disk_free_bytes == 100_000_000
    output = served.ctl("set_disk_free_limit", "mem_relative", "1.0")
    assert output.out == "Setting disk free limit on rabbit@test to 1.0 times the total RAM ...\n"
    assert limits.disk_free_bytes == 1_000_000_000
    for bad in (("1.5XB",), ("mem_relative", "x"), ("mem_relative", "-1"), ("1", "2")):
        assert served.ctl("set_disk_free_limit", *bad).code == 65
    assert served.ctl("set_disk_free_limit", "mem_relative").code == 64


def test_the_log_level(served: Served) -> None:
    assert served.ctl("set_log_level", "debug").out == 'Setting log level to "debug" ...\n'
    assert served.bench.observer.named("set_level") == [("debug",)]
    output = served.ctl("set_log_level", "foo")
    assert (output.code, output.err) == (
        69,
        "Error:\nlevel foo is not supported. Try one of debug, info, warning, error, critical, none\n",
    )


def test_the_clusters_name(served: Served) -> None:
    assert served.ctl("set_cluster_name", "c").out == "Setting cluster name to c ...\n"
    assert served.node.cluster_name == "c"


def test_a_hash(served: Served) -> None:
    banner, hashed = served.ctl("hash_password", "foo").out.splitlines()
    assert banner == "Will hash password foo"
    assert fits(hashed, SHA256, "foo")
    hashed = served.ctl("-q", "hash_password", stdin="bar\n").out.strip()
    assert fits(hashed, SHA256, "bar")
    assert served.ctl("hash_password").code == 65


def test_listeners(served: Served) -> None:
    assert served.ctl("suspend_listeners").out.endswith("no longer accept client connections!\n")
    with socket.create_server(("127.0.0.1", served.bench.port)):
        output = served.ctl("resume_listeners")
        assert (output.code, "cannot listen" in output.err) == (69, True)
    assert served.ctl("resume_listeners").out.endswith("now accept client connections\n")
    socket.create_connection(("127.0.0.1", served.bench.port)).close()


def test_the_rest(served: Served) -> None:
    assert "full sweep GC" in served.ctl("force_gc").out
    assert served.bench.figures.given_back == 1
    output = served.ctl("rotate_logs")
    assert (output.code, output.err) == (
        69,
        "Error:\nThis command does not rotate logs anymore [deprecated]\n",
    )
    output = served.ctl("set_vhost_tags", "/", "a", "b")
    assert output.out == 'Setting tags for virtual host "/" to [a, b] ...\n'
    assert list(served.node.vhosts["/"].tags) == ["a", "b"]
    assert served.ctl("set_vhost_tags", "nope", "a").code == 65


def test_free_space_is_watched_or_not(served: Served) -> None:
    output = served.ctl("deactivate_free_disk_space_monitoring")
    assert output == (0, "Deactivating free disk space monitoring on node rabbit@test...\n", "")
    assert not served.node.monitor.is_watching_disk
    output = served.ctl("activate_free_disk_space_monitoring")
    assert output == (0, "Activating free disk space monitoring on node rabbit@test...\n", "")
    assert served.node.monitor.is_watching_disk
