"""burrowmq.config.environment: the launcher's variables, and rabbitmq-env.conf."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.config.errors import ConfigError
from burrowmq.config.load import Loaded, load


def from_environment(**environ: str) -> Loaded:
    return load(None, environ, (), None)


def test_the_lines_of_rabbitmq_env_conf_stand_below_the_environment(tmp_path: Path) -> None:
    (tmp_path / "rabbitmq.conf").write_text("heartbeat = 7\n")
    (tmp_path / "rabbitmq-env.conf").write_text(
        "# who we are\n"
        "NODENAME=orders@here   # as always\n"
        "export RABBITMQ_DEFAULT_USER='alice b'\n"
        'NODE_PORT="5701"\n'
        "if true; then\n"
        "MNESIA_BASE=$HOME/base\n"
    )
    environ = {
        "RABBITMQ_CONFIG_FILE": str(tmp_path / "rabbitmq"),
        "RABBITMQ_NODENAME": "real@here",
    }
    loaded = load(None, environ, (), None)
    assert loaded.config.node_name == "real@here"
    assert loaded.config.first_user.name == "alice b"
    assert loaded.config.listeners[0].port == 5701
    path = tmp_path / "rabbitmq-env.conf"
    row = next(row for row in loaded.effective if row.key == "default_user")
    assert row.source == f"{path}:3"
    assert [warning.partition(" ")[0] for warning in loaded.warnings] == [
        f"{path}:5:",
        f"{path}:6:",
    ]
    assert "only NAME=value lines are read" in loaded.warnings[0]


def test_it_may_name_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("heartbeat = 7\n")
    env = tmp_path / "env"
    env.write_text(f"CONFIG_FILE={tmp_path}/a\nNODE_PORT=amqp\n")
    with pytest.raises(ConfigError) as caught:
        from_environment(RABBITMQ_CONF_ENV_FILE=str(env))
    (problem,) = caught.value.problems
    assert (problem.source, problem.line) == (str(env), 2)
    with pytest.raises(ConfigError, match="none: cannot be read: No such file"):
        from_environment(RABBITMQ_CONF_ENV_FILE=str(tmp_path / "none"))


def test_where_the_log_goes() -> None:
    log = from_environment(RABBITMQ_LOGS="-", RABBITMQ_LOG="debug,connection=none").config.log
    assert (log.file_path, log.console, log.console_stream, log.level) == (
        None,
        True,
        "stdout",
        "debug",
    )
    log = from_environment(RABBITMQ_LOGS="/var/log/it.log").config.log
    assert (log.file_path, log.level) == ("/var/log/it.log", "info")
    assert from_environment(RABBITMQ_LOG="+color").config.log.level == "info"


def test_variables_without_effect_and_near_misses_are_named() -> None:
    loaded = from_environment(
        RABBITMQ_ERLANG_COOKIE="hush",
        RABBITMQ_DEFAULT_PAS="x",
        RABBITMQ_DEFAULT_PASS_FILE="/run/secret",
        RABBITMQ_SERVICE_HOST="10.0.0.1",
        RABBITMQ_HOME="/opt",
        RABBITMQ_MOTD_FILE="",
    )
    typo, file, cookie = loaded.warnings
    assert typo.endswith("did you mean RABBITMQ_DEFAULT_PASS?")
    assert file.startswith("RABBITMQ_DEFAULT_PASS_FILE has no effect here: write the value itself")
    assert cookie.startswith("RABBITMQ_ERLANG_COOKIE has no effect here: nodes do not talk")
    assert not any("hush" in warning for warning in loaded.warnings)


def test_a_mistyped_variable_of_ours_is_named() -> None:
    """Messages lay in ./data then, beside the volume, and nothing said so."""
    loaded = load(None, {"BURROWMQ_DATADIR": "/var/lib/x", "BURROWMQ_TEST_URL": "x"}, (), None)
    assert loaded.warnings == (
        "BURROWMQ_DATADIR is no variable that is read; did you mean BURROWMQ_DATA_DIR?",
    )


def test_levels_of_parts_of_the_log_are_named() -> None:
    loaded = load(None, {"RABBITMQ_LOG": "warning,+color,connection=debug"}, (), None)
    assert loaded.config.log.level == "warning"
    assert loaded.warnings == (
        "RABBITMQ_LOG: connection=debug has no effect here: all lines of the log have one level",
    )


def test_long_names_and_the_file_of_the_process() -> None:
    loaded = from_environment(RABBITMQ_USE_LONGNAME="true", RABBITMQ_PID_FILE="/run/it.pid")
    assert loaded.pid_file == "/run/it.pid"
    with pytest.raises(ConfigError, match="RABBITMQ_USE_LONGNAME: 'perhaps' cannot be converted"):
        from_environment(RABBITMQ_USE_LONGNAME="perhaps")
