"""burrowmq.config.overruled: what does nothing beside other keys is named, and has no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.config.cluster import ALONE
from burrowmq.config.load import Loaded, load
from burrowmq.config.units import Endpoint
from tests.support.certificates import Authority, Leaf


def loaded(folder: Path, *lines: str) -> Loaded:
    file = folder / "rabbitmq.conf"
    file.write_text("\n".join(lines) + "\n")
    return load(str(file), {}, (), None)


def idle(found: Loaded) -> dict[str, str]:
    """Return the keys that are said to have no effect, with the reason; in warnings and rows alike."""
    rows = {row.key: row.remark for row in found.effective if row.remark}
    for key, reason in rows.items():
        assert any(
            text.endswith(f": {key} has no effect here: {reason}") for text in found.warnings
        )
    assert len(found.warnings) == len(rows)
    return rows


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Leaf:
    """A certificate and its key."""
    return Authority(tmp_path_factory.mktemp("ca")).issue_server()


CASES: dict[str, tuple[list[str], set[str]]] = {
    "listeners.tcp": (
        ["listeners.tcp = none", "listeners.tcp.default = 5672", "listeners.tcp.other = 5673"],
        {"listeners.tcp.default", "listeners.tcp.other"},
    ),
    "listeners.ssl": (
        ["listeners.ssl.default = 5671", "listeners.ssl = none"],
        {"listeners.ssl.default"},
    ),
    "loopback users": (
        ["loopback_users = none", "loopback_users.guest = true"],
        {"loopback_users.guest"},
    ),
    "origins": (
        ["management.cors.allow_origins = none", "management.cors.allow_origins.1 = *"],
        {"management.cors.allow_origins.1"},
    ),
    "memory": (
        ["vm_memory_high_watermark.absolute = 1GB", "vm_memory_high_watermark.relative = 0.9"],
        {"vm_memory_high_watermark.relative"},
    ),
    "disk": (
        ["disk_free_limit.relative = 2.0", "disk_free_limit.absolute = 1GB"],
        {"disk_free_limit.relative"},
    ),
    "relative alone": (
        ["vm_memory_high_watermark.relative = 0.9", "disk_free_limit.relative = 2.0"],
        set(),
    ),
    "metrics": (
        ["prometheus.tcp.listener = none", "prometheus.tcp.port = 1", "prometheus.tcp.ip = ::1"],
        {"prometheus.tcp.port", "prometheus.tcp.ip"},
    ),
    "definitions": (
        ["load_definitions = .", "definitions.local.path = .", "management.load_definitions = ."],
        {"definitions.local.path", "management.load_definitions"},
    ),
    "definitions without the first name": (
        ["definitions.local.path = .", "management.load_definitions = ."],
        {"management.load_definitions"},
    ),
    "old names of the management's listener": (
        ["management.listener.port = 1", "management.listener.ip = ::1", "management.tcp.port = 2"],
        {"management.listener.port"},
    ),
    "old names with TLS": (
        [
            "management.listener.port = 1",
            "management.listener.ssl = false",
            "management.tcp.ip = ::1",
            "management.tcp.port = 2",
        ],
        {"management.listener.port"},
    ),
    "no log file": (
        ["log.file = false", "log.dir = /tmp", "log.file.level = debug"],
        {"log.dir", "log.file.level"},
    ),
    "a log file by nobody's wish": (["log.file.level = debug"], {"log.file.level"}),
    "a log file by its directory": (["log.dir = /tmp", "log.file.level = debug"], set()),
    "a log file because the console is off": (
        ["log.console = false", "log.file.level = debug", "log.console.level = debug"],
        {"log.console.level"},
    ),
    "TLS without a listener": (
        [
            f"{part}.verify = verify_peer"
            for part in ("ssl_options", "management.ssl", "prometheus.ssl")
        ],
        {"ssl_options.verify", "management.ssl.verify", "prometheus.ssl.verify"},
    ),
    "a cluster without servers": (
        [
            "cluster.mirrored = quorum",
            "cluster.replicas = 5",
            "cluster.user = u",
            "cluster.password = p",
        ],
        {"cluster.mirrored", "cluster.replicas", "cluster.user", "cluster.password"},
    ),
    "a type of queues that is not here": (
        ["default_queue_type = rabbit_quorum_queue"],
        {"default_queue_type"},
    ),
    "one that is": (["default_queue_type = classic"], set()),
    "one that a cluster keeps": (
        ["default_queue_type = stream", "cluster.urls = nats://a"],
        set(),
    ),
    "a cluster": (
        ["cluster.urls = nats://a", "cluster.mirrored = quorum", "cluster.replicas = 5"],
        set(),
    ),
    "the old listener's certificate without TLS": (
        ["management.listener.port = 1", "management.listener.ssl_opts.depth = 2"],
        {"management.listener.ssl_opts.depth"},
    ),
    "names from certificates that nobody logs in with": (
        ["ssl_cert_login_from = common_name", "ssl_cert_login_san_index = 1"],
        {"ssl_cert_login_from", "ssl_cert_login_san_index"},
    ),
    "a kind of name that is not taken": (
        [
            "listeners.ssl.default = 5671",
            "ssl_options.certfile = CERTIFICATE",
            "ssl_options.keyfile = KEY",
            "ssl_options.cacertfile = CERTIFICATE",
            "ssl_options.verify = verify_peer",
            "auth_mechanisms.1 = EXTERNAL",
            "ssl_cert_login_from = common_name",
            "ssl_cert_login_san_type = email",
            "ssl_cert_login_san_index = 1",
        ],
        {"ssl_cert_login_san_type", "ssl_cert_login_san_index"},
    ),
    "limits of passwords that nobody checks": (
        ["credential_validator.min_length = 12", "credential_validator.regexp = ^a"],
        {"credential_validator.min_length", "credential_validator.regexp"},
    ),
    "a limit of passwords": (
        [
            "credential_validator.validation_backend = rabbit_credential_validator_min_password_length",
            "credential_validator.min_length = 12",
        ],
        set(),
    ),
    "a form of passwords": (
        [
            "credential_validator.validation_backend = rabbit_credential_validator_password_regexp",
            "credential_validator.regexp = ^a",
        ],
        set(),
    ),
    "files that are never rotated": (
        ["log.file = a.log", "log.file.rotation.count = 3"],
        {"log.file.rotation.count"},
    ),
    "files that are": (
        ["log.file = a.log", "log.file.rotation.size = 1000", "log.file.rotation.count = 3"],
        set(),
    ),
    "a directory for a file that lies elsewhere": (
        ["log.file = /tmp/a.log", "log.dir = /var/log"],
        {"log.dir"},
    ),
    "time for handshakes of nobody": (["ssl_handshake_timeout = 100"], {"ssl_handshake_timeout"}),
    "samples of pairs": (
        [
            "management.sample_retention_policies.detailed.minute = 5",
            "management.sample_retention_policies.basic.minute = 5",
        ],
        {"management.sample_retention_policies.detailed.minute"},
    ),
    "leave for pages of no origin": (["management.cors.max_age = 9"], {"management.cors.max_age"}),
    "leave for pages": (
        ["management.cors.max_age = 9", "management.cors.allow_origins.1 = *"],
        set(),
    ),
    "definitions from nowhere": (
        ["definitions.import_backend = local_filesystem"],
        {"definitions.import_backend"},
    ),
    "definitions from somewhere": (
        ["definitions.import_backend = local_filesystem", "definitions.local.path = ."],
        set(),
    ),
    "a password of nobody": (
        ["cluster.urls = nats://a", "cluster.password = p"],
        {"cluster.password"},
    ),
    "what is forgotten of guesses that nobody counts": (
        ["failed_logins.limit = 0", "failed_logins.forgotten_per_minute = 9"],
        {"failed_logins.forgotten_per_minute"},
    ),
    "policies that say something and nothing": (
        [
            "default_policies.operator.a.queue_pattern = ^a",
            "default_policies.operator.a.max_length = 5",
            "default_policies.operator.b.queue_pattern = ^b",
        ],
        {"default_policies.operator.b.queue_pattern"},
    ),
    "paging": (
        ["vm_memory_high_watermark_paging_ratio = 0.7"],
        {"vm_memory_high_watermark_paging_ratio"},
    ),
    "paging where it has a meaning": (
        ["vm_memory_high_watermark_paging_ratio = 0.7", "classic_queue.default_mode = cached"],
        set(),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_key_that_does_nothing_beside_others_is_named(
    name: str, tmp_path: Path, server: Leaf
) -> None:
    lines, keys = CASES[name]
    files = {"CERTIFICATE": str(server.certificate), "KEY": str(server.key)}
    assert idle(loaded(tmp_path, *with_files(lines, files))).keys() == keys


def with_files(lines: list[str], files: dict[str, str]) -> list[str]:
    """Return the lines with names of files for the words that stand for them."""
    pairs = (line.split(" = ", 1) for line in lines)
    return [f"{key} = {files.get(value, value)}" for key, value in pairs]


EXTERNAL = "auth_mechanisms.2 has no effect here: "


@pytest.mark.parametrize(
    ("lines", "remark"),
    [
        ([], "no TLS listener is named; listeners.ssl.default does"),
        (
            ["listeners.ssl.default = 5671"],
            "no client is asked for a certificate; ssl_options.verify = verify_peer does",
        ),
        (["listeners.ssl.default = 5671", "ssl_options.verify = verify_peer"], None),
    ],
)
def test_logins_by_certificate_that_nobody_can_make_are_named_and_stay_listed(
    lines: list[str], remark: str | None, tmp_path: Path, server: Leaf
) -> None:
    """Taken out, EXTERNAL alone would leave RabbitMQ's defaults: passwords where nobody listed them."""
    files = [
        f"ssl_options.certfile = {server.certificate}",
        f"ssl_options.keyfile = {server.key}",
        f"ssl_options.cacertfile = {server.certificate}",
    ]
    mechanisms = ["auth_mechanisms.2 = EXTERNAL", "auth_mechanisms.3 = EXTERNAL"]
    found = loaded(tmp_path, *mechanisms, *lines, *(files if lines else []))
    named = [text for text in found.warnings if "auth_mechanisms" in text]
    where = f"{tmp_path / 'rabbitmq.conf'}:1: {EXTERNAL}"
    assert named == ([] if remark is None else [where + remark])
    assert found.config.login.mechanisms == ("EXTERNAL",)
    (row,) = [row for row in found.effective if row.key == "auth_mechanisms.2"]
    assert row.remark == (remark or "")


def test_what_is_overruled_has_no_effect(tmp_path: Path) -> None:
    """Both were in force before: a relative disk limit beside an absolute one, an origin beside `none`."""
    disk, _ = CASES["disk"]
    config = loaded(tmp_path, *disk, *CASES["origins"][0]).config
    assert (config.resources.disk_absolute_bytes, config.resources.disk_relative) == (10**9, None)
    assert config.management.allowed_origins == ()


def test_a_default_type_is_in_force_where_it_is(tmp_path: Path) -> None:
    lines = ("default_queue_type = rabbit_quorum_queue", "cluster.urls = nats://a")
    assert loaded(tmp_path, *lines).config.default_queue_type == "quorum"
    assert loaded(tmp_path, lines[0]).config.default_queue_type is None


def test_mirroring_without_a_cluster_is_told_with_its_line(tmp_path: Path) -> None:
    """It was silent: queues that were to outlive a machine were classic ones, and nothing said so at a start."""
    found = loaded(tmp_path, "listeners.tcp.default = 5672", "cluster.mirrored = quorum")
    assert found.warnings == (
        f"{tmp_path / 'rabbitmq.conf'}:2: cluster.mirrored has no effect here: no server of a cluster is named;"
        " cluster.urls does",
    )
    assert found.config.cluster == ALONE


def test_none_rules_out_a_listener_of_the_command_line_too(tmp_path: Path) -> None:
    file = tmp_path / "rabbitmq.conf"
    file.write_text("listeners.tcp = none\n")
    found = load(str(file), {}, (("listeners.tcp.default", "5672"),), None)
    assert found.config.listeners == ()
    assert found.warnings == (
        "--set: listeners.tcp.default has no effect here: listeners.tcp = none",
    )
    without = load(None, {}, (("listeners.tcp.default", "5672"),), None)
    assert without.config.listeners == (Endpoint("0.0.0.0", 5672), Endpoint("::", 5672))
    assert without.warnings == ()
