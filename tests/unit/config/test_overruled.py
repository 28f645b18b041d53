"""burrowmq.config.overruled: what does nothing beside other keys is named, and has no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.config.cluster import ALONE
from burrowmq.config.load import Loaded, load
from burrowmq.config.units import Endpoint


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


CASES = {
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
def test_a_key_that_does_nothing_beside_others_is_named(name: str, tmp_path: Path) -> None:
    lines, keys = CASES[name]
    assert idle(loaded(tmp_path, *lines)).keys() == keys


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
