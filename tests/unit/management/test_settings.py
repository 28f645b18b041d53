"""Addresses and limits from the configuration."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from burrowmq.broker.node.server_process import ServerProcess
from burrowmq.config.load import load
from burrowmq.config.schema import LogConfig, NodeConfig
from burrowmq.management import settings


def test_the_real_configuration_has_these_names() -> None:
    config = NodeConfig(node_name="n@h", data_dir="d")
    assert ("127.0.0.1", 15672) in settings.management_addresses(config)
    assert ("127.0.0.1", 15692) in settings.prometheus_addresses(config)
    assert ("127.0.0.1", 5672) in settings.amqp_addresses(config)
    assert settings.log_files(config) == ["<stderr>"]
    console = replace(config, log=LogConfig(console_stream="stdout", file_path="/l/x.log"))
    assert settings.log_files(console) == ["/l/x.log", "<stdout>"]
    assert (settings.metrics_path(config), settings.metrics_per_object(config)) == (
        "/metrics",
        False,
    )


def test_a_path_too_long_for_a_socket() -> None:
    assert settings.bindable("/short/control.sock", 7) == "/short/control.sock"
    assert settings.bindable("/" + "x" * 120 + "/control.sock", 7) == "/proc/self/fd/7/control.sock"
    config = NodeConfig(node_name="n@h", data_dir="d")
    assert settings.control_socket(config) == os.path.abspath("d/control.sock")
    assert settings.control_socket(NodeConfig(node_name="n@h", data_dir="")) == ""


def test_every_key_says_where_its_value_comes_from_and_what_it_means(tmp_path: Path) -> None:
    file = tmp_path / "rabbitmq.conf"
    file.write_text(
        "default_pass = s3cret\nlisteners.tcp.one = 127.0.0.1:0\nranch_connection_max = 5\n"
    )
    loaded = load(str(file), {}, [("heartbeat", "9")], None)
    process = ServerProcess(
        config=loaded.config, observer=cast("Any", None), effective=loaded.effective
    )
    rows = {row["key"]: row for row in settings.effective(process)}
    assert list(rows) == sorted(rows)
    assert "s3cret" not in str(rows)
    heartbeat, listener = rows["heartbeat"], rows["listeners.tcp.one"]
    assert (heartbeat["value"], heartbeat["source"], heartbeat["default"]) == ("9", "--set", "60")
    assert (listener["value"], listener["source"]) == ("127.0.0.1:0", f"{file}:2")
    assert "AMQP listener" in listener["doc"]
    assert rows["ranch_connection_max"]["remark"]
    assert (rows["channel_max"]["value"], rows["channel_max"]["source"]) == ("2047", "")
    assert rows["data_dir"]["ours"]
    assert (rows["ssl_options.certfile"]["value"], "$" in "".join(rows)) == (None, False)
