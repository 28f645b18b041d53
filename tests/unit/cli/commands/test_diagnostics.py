"""Questions about the node: cluster, certificates, log, report."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from burrowmq.config.schema import LogConfig
from burrowmq.config.tls import TlsConfig
from burrowmq.config.units import Endpoint
from tests.support.certificates import Authority
from tests.support.ports import free_ports
from tests.support.served import Served, serving


def test_the_cluster(served: Served) -> None:
    output = served.ctl("cluster_status")
    assert output.out.startswith("Cluster status of node rabbit@test ...\n\x1b[1mBasics\x1b[0m\n\n")
    for text in (
        "Cluster name: rabbit@test",
        "rabbit@test: RabbitMQ 3.13.7 on CPython",
        "Node: rabbit@test, status: not under maintenance",
        f"Node: rabbit@test, interface: 127.0.0.1, port: {served.bench.port}, protocol: amqp",
        "Flag: implicit_default_bindings, state: enabled",
    ):
        assert text in output.out
    document = json.loads(served.ctl("cluster_status", "--formatter", "json").out)
    assert document["running_nodes"] == document["disk_nodes"] == ["rabbit@test"]
    assert document["partitions"] == {}
    assert served.ctl("set_cluster_name", "c\x1b[31m").code == 0
    assert "\nCluster name: c\\033[31m\n" in served.ctl("cluster_status").out


def test_feature_flags(served: Served) -> None:
    lines = served.ctl("list_feature_flags").out.splitlines()
    assert lines[:2] == ["Listing feature flags ...", "name\tstate"]
    assert "user_limits\tenabled" in lines
    assert served.ctl("list_feature_flags", "nope").code == 64
    assert served.ctl("enable_feature_flag", "all").out == "Enabling all feature flags ...\n"
    assert served.ctl("enable_feature_flag", "user_limits").code == 0
    assert served.ctl("enable_feature_flag", "stream_queue").code == 0
    output = served.ctl("enable_feature_flag", "nope")
    assert (output.code, output.err) == (
        64,
        "Error:\nThis feature flag is not supported by node rabbit@test\n",
    )


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Served]:
    """A node with a TLS listener."""
    authority = Authority(tmp_path)
    leaf = authority.issue_server()
    tls = TlsConfig(
        certfile=str(leaf.certificate), keyfile=str(leaf.key), cacertfile=str(authority.file)
    )
    listeners = (Endpoint("127.0.0.1", free_ports(1)[0]),)
    with serving(tmp_path / "data", tls=tls, tls_listeners=listeners) as running:
        yield running


def test_certificates(secure: Served) -> None:
    rows = json.loads(secure.ctl("certificates", "--formatter", "json").out)
    assert [row["protocol"] for row in rows] == ["amqp/ssl"]
    assert rows[0]["certfile"].startswith("-----BEGIN CERTIFICATE-----")
    assert "PRIVATE" not in json.dumps(rows)


def test_certificates_that_end(secure: Served) -> None:
    ((_, port),) = secure.node.config.tls_listeners
    output = secure.ctl("check_certificate_expiration", "--within", "1", "--unit", "weeks")
    assert output.code == 69
    assert f"amqp/ssl listener on 127.0.0.1:{port}: " in output.err
    output = secure.ctl("check_certificate_expiration", "--within", "0", "--unit", "days")
    assert output.out.endswith("No certificates are expiring within 0 days.\n")
    found = json.loads(secure.ctl("check_certificate_expiration", "--formatter", "json").out)
    assert (found["result"], found["expired"][0]["port"]) == ("error", port)
    assert secure.ctl("check_certificate_expiration", "--unit", "foo").code == 64
    assert secure.ctl("check_certificate_expiration", "--within", "x").code == 64
    assert secure.ctl("check_certificate_expiration", "--within", "²").code == 64


def test_a_certificate_that_cannot_be_read_any_more_is_told(secure: Served) -> None:
    """The next start would end over it, and the check passed."""
    file = Path(str(secure.node.config.tls.certfile))
    for spoil in (lambda: file.write_text("junk"), file.unlink):
        spoil()
        output = secure.ctl("check_certificate_expiration", "--within", "0", "--unit", "days")
        assert output.code == 69
        assert f": {file} holds no certificate that can be read" in output.err


def test_no_certificates_no_end(served: Served) -> None:
    output = served.ctl("check_certificate_expiration", "--within", "1", "--unit", "years")
    assert output.out.endswith("No certificates are expiring within 1 year.\n")
    output = served.ctl("check_certificate_expiration", "--formatter", "json")
    assert json.loads(output.out) == {"result": "ok", "node": "rabbit@test"}


def test_tls(served: Served) -> None:
    assert served.ctl("-q", "tls_versions").out == "tlsv1.3\ntlsv1.2\n"
    assert json.loads(served.ctl("tls_versions", "--formatter", "json").out) == {
        "versions": ["tlsv1.3", "tlsv1.2"]
    }
    assert "TLS_AES_256_GCM_SHA384" in served.ctl("-q", "cipher_suites").out.splitlines()
    assert json.loads(served.ctl("cipher_suites", "--formatter", "json").out)["format"] == "openssl"
    assert served.ctl("-q", "list_hashes").out == "[sha512,sha256,md5]\n"


def test_policies_that_match(served: Served) -> None:
    for name, priority in (("low", "1"), ("high", "5")):
        definition = '{"max-length":1}'
        served.ctl("set_policy", name, "^ord", definition, "--priority", priority)
    served.ctl("set_policy", "other", "^x", '{"max-length":1}')
    rows = json.loads(served.ctl("list_policies_that_match", "orders", "--formatter", "json").out)
    assert [row["name"] for row in rows] == ["high", "low"]
    assert "│ high │" in served.ctl("list_policies_that_match", "orders").out
    output = served.ctl("list_policies_that_match", "x", "--object-type", "exchanges")
    assert "│ other │" in output.out
    assert served.ctl("list_policies_that_match", "q", "-p", "nope").code == 69


def test_the_log(served: Served, tmp_path: Path) -> None:
    assert served.ctl("log_tail").code == 69, "it goes to standard error"
    for text in ("-5", "1e30", "nan", "inf"):
        output = served.ctl("log_tail", "-N", text)
        assert output.code == 64
        assert f"--number : {text}" in output.err
    log = tmp_path / "node.log"
    log.write_text("".join(f"line {number}\n" for number in range(100)) + "\x1b[1m\n")
    with serving(tmp_path / "other", log=LogConfig(file_path=str(log))) as logging:
        output = logging.ctl("log_tail", "-N", "2")
        assert output.out == "Last 2 log lines on node rabbit@test ...\nline 99\n\\033[1m\n"
        assert len(logging.ctl("-q", "log_tail").out.splitlines()) == 50
        log.unlink()
        assert logging.ctl("log_tail").code == 69


def test_the_environment_hides_secrets(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RABBITMQ_NODENAME", "rabbit@x")
    monkeypatch.setenv("RABBITMQ_DEFAULT_PASS", "canary")
    output = served.ctl("os_env").out
    assert "RABBITMQ_NODENAME=rabbit@x" in output
    assert "canary" not in output


def test_small_questions(served: Served) -> None:
    assert served.ctl("-q", "is_booting").out.startswith("RabbitMQ on node rabbit@test is fully")
    assert served.ctl("-q", "erlang_version").out.startswith("CPython 3.")
    assert served.ctl("-q", "resolve_hostname", "localhost").out == "127.0.0.1\n"
    assert served.ctl("resolve_hostname", "no.such.host.invalid").code == 69
    assert served.ctl("resolve_hostname", "x", "--address-family", "ipx").code == 64
    assert served.ctl("node_health_check").out.endswith("Health check passed\n")
    served.bench.run_short_of_memory()
    assert served.ctl("node_health_check").code == 69
    assert Path(sys.executable).name in served.ctl("command_line_arguments").out
    output = served.ctl("list_unresponsive_queues")
    assert output.out == "Listing unresponsive queues for vhost / ...\n"


def test_logins_are_counted(served: Served, tmp_path: Path) -> None:
    served.bench.connect()
    with pytest.raises(AssertionError):
        served.bench.connect(user="nobody")
    assert "amqp091\t3\t1\t2" in served.ctl("list_node_auth_attempt_stats").out
    with serving(tmp_path / "other") as other:
        found = other.ctl("list_node_auth_attempt_stats").out
    assert "reported no authentication attempt" in found


def test_the_report_has_everything(served: Served) -> None:
    output = served.ctl("report")
    assert output.code == 0
    for banner in (
        "Reporting server status of node rabbit@test ...",
        "Status of node rabbit@test ...",
        "Cluster status of node",
        "Application environment of node",
        "Listing connections ...",
        "Listing queues for vhost / ...",
        'Listing permissions for vhost "/" ...',
    ):
        assert banner in output.out


def test_booting(served: Served) -> None:
    over = (
        "RabbitMQ on node rabbit@test is fully booted (check with is_running),"
        " stopped or has not started booting yet\n"
    )
    for state, text in (
        ("running", over),
        ("stopped", over),
        ("starting", "RabbitMQ on node rabbit@test is booting\n"),
    ):
        served.bench.host.state = state
        assert served.ctl("-q", "is_booting") == (0, text, "")


def test_deprecated_features(served: Served) -> None:
    told = served.ctl("list_deprecated_features").out
    assert told.startswith("Listing deprecated features ...\nname\tdeprecation_phase\nglobal_qos\t")
    assert served.ctl("list_deprecated_features", "--used").out == (
        "Listing deprecated features in use ...\n"
    )
    assert served.ctl("list_deprecated_features", "colour").code == 64


def test_the_metadata_store(served: Served) -> None:
    told = served.ctl("metadata_store_status").out
    assert told.startswith("Status of metadata store on node rabbit@test ...\n┌")
    assert "SQLite" in told
