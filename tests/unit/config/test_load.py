"""burrowmq.config.load: golden files, precedence of the sources, all errors together."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import threading
from pathlib import Path

import pytest

from burrowmq.config import sources
from burrowmq.config.errors import ConfigError
from burrowmq.config.load import Invocation, load, parse_argv
from burrowmq.config.units import Endpoint

DATA = Path(__file__).resolve().parents[2] / "data" / "config"
CASES = sorted(path.stem for path in DATA.glob("*.conf"))


def outcome(name: str) -> dict[str, object]:
    """Return what loading one golden file gives, in JSON's types."""
    path = DATA / f"{name}.conf"
    try:
        loaded = load(str(path), {"RABBITMQ_NODENAME": "rabbit@here"}, (), None)
    except ConfigError as error:
        return {"problems": [str(problem).replace(f"{DATA}/", "") for problem in error.problems]}
    config = dataclasses.asdict(loaded.config)
    config["loopback_users"] = sorted(loaded.config.loopback_users)
    warnings = [warning.replace(f"{DATA}/", "") for warning in loaded.warnings]
    return {"config": json.loads(json.dumps(config)), "warnings": warnings}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    golden = DATA / f"{name}.json"
    found = outcome(name)
    if os.environ.get("BURROWMQ_WRITE_GOLDEN"):
        golden.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    assert found == json.loads(golden.read_text(encoding="utf-8"))


def test_nothing_given_listens_on_this_machine_only() -> None:
    config = load(None, {}, (), None).config
    assert config.listeners == (Endpoint("127.0.0.1", 5672), Endpoint("::1", 5672))
    assert config.management.listeners == (Endpoint("127.0.0.1", 15672), Endpoint("::1", 15672))
    assert config.prometheus.listeners == (Endpoint("127.0.0.1", 15692), Endpoint("::1", 15692))
    assert config.data_dir == "data"
    assert config.node_name.startswith("rabbit@")


@pytest.mark.parametrize(
    "key", ["listeners.tcp.default", "management.tcp.port", "prometheus.tcp.port"]
)
def test_a_bare_port_binds_every_interface(key: str) -> None:
    config = load(None, {}, [(key, "5999")], None).config
    both = (Endpoint("0.0.0.0", 5999), Endpoint("::", 5999))
    assert both in (config.listeners, config.management.listeners, config.prometheus.listeners)


@pytest.mark.parametrize(
    ("value", "endpoint"),
    [
        ("127.0.0.1:5673", Endpoint("127.0.0.1", 5673)),
        ("[::1]:5673", Endpoint("::1", 5673)),
        ("::1:5673", Endpoint("::1", 5673)),
        ("localhost:5673", Endpoint("localhost", 5673)),
    ],
)
def test_listener_addresses(value: str, endpoint: Endpoint) -> None:
    assert load(None, {}, [("listeners.tcp.default", value)], None).config.listeners == (endpoint,)


def test_later_sources_win(tmp_path: Path) -> None:
    file = tmp_path / "rabbitmq.conf"
    file.write_text("default_user = file\nheartbeat = 1\nframe_max = 8192\nchannel_max = 1\n")
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "20-b.conf").write_text("heartbeat = 20\nframe_max = 20000\n")
    (tmp_path / "conf.d" / "10-a.conf").write_text("heartbeat = 10\n")
    environ = {"RABBITMQ_CONFIG_FILE": str(tmp_path / "rabbitmq"), "RABBITMQ_DEFAULT_USER": "env"}
    config = load(None, environ, [("frame_max", "30000")], None).config
    assert config.first_user.name == "env"
    assert config.heartbeat_s == 20
    assert config.frame_max == 30000
    assert config.channel_max == 1


@pytest.mark.parametrize("is_included", [False, True])
def test_a_directory_of_files_that_cannot_be_listed_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_included: bool
) -> None:
    file, directory = tmp_path / "rabbitmq.conf", tmp_path / ("more" if is_included else "conf.d")
    file.write_text("include more/*.conf\n" if is_included else "")
    directory.mkdir()
    (directory / "a.conf").write_text("heartbeat = 10\n")
    usual = os.scandir

    def refuse(path: str) -> object:
        if path == str(directory):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return usual(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(ConfigError) as caught:
        load(str(file), {}, (), None)
    (problem,) = map(str, caught.value.problems)
    where = f"{file}:1: include: {directory}" if is_included else f"{directory}:"
    assert problem == f"{where} cannot be read: Permission denied"


def test_a_pipe_is_read_if_somebody_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "rabbitmq.conf"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("heartbeat = 10\n",))
    writer.start()
    assert load(str(pipe), {}, (), None).config.heartbeat_s == 10
    writer.join()
    monkeypatch.setattr(sources, "PIPE_PATIENCE_S", 0.01)
    with pytest.raises(ConfigError, match=r"rabbitmq\.conf: cannot be read: nobody writes to that"):
        load(str(pipe), {}, (), None)


def test_where_the_data_lies() -> None:
    base = {"RABBITMQ_MNESIA_BASE": "/base", "RABBITMQ_NODENAME": "a@b"}
    assert load(None, base, (), None).config.data_dir == "/base/a@b"
    assert load(None, base | {"RABBITMQ_MNESIA_DIR": "/dir"}, (), None).config.data_dir == "/dir"
    assert load(None, base, [("data_dir", "/set")], None).config.data_dir == "/set"
    assert load(None, base, [("data_dir", "/set")], "/argv").config.data_dir == "/argv"


def test_an_empty_name_is_no_place_for_the_data(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--data-dir: data_dir: it is empty: name a directory"):
        load(None, {}, (), "")
    with pytest.raises(ConfigError, match="it is empty: name a directory"):
        load(None, {}, [("data_dir", "")], None)
    # A variable that is empty is none, as everywhere.
    assert load(None, {"BURROWMQ_DATA_DIR": ""}, (), None).config.data_dir == "data"


def test_launcher_variables() -> None:
    environ = {
        "RABBITMQ_NODENAME": "orders",
        "RABBITMQ_DEFAULT_PASS": "secret",
        "RABBITMQ_DEFAULT_VHOST": "v",
        "RABBITMQ_LOG_BASE": "/logs",
        "RABBITMQ_NODE_PORT": "5700",
        "RABBITMQ_ADVANCED_CONFIG_FILE": "/etc/advanced.config",
    }
    loaded = load(None, environ, (), None)
    assert loaded.config.node_name.startswith("orders@")
    assert loaded.config.first_user.password == "secret"
    assert loaded.config.first_user.vhost == "v"
    assert loaded.config.listeners[0] == Endpoint("0.0.0.0", 5700)
    named = "RABBITMQ_ADVANCED_CONFIG_FILE: there is no file /etc/advanced.config"
    assert named in loaded.warnings


def test_launcher_variables_that_cannot_be_used() -> None:
    environ = {"RABBITMQ_NODE_PORT": "amqp", "RABBITMQ_NODE_IP_ADDRESS": "1.2.3"}
    with pytest.raises(ConfigError) as caught:
        load(None, environ, (), None)
    port, address = caught.value.problems
    assert (port.source, address.source) == tuple(environ)
    for number in ("²", "9" * 5000):  # digits, but no number that a port could be
        with pytest.raises(ConfigError, match="RABBITMQ_NODE_PORT: "):
            load(None, {"RABBITMQ_NODE_PORT": number}, (), None)
    config = load(None, {"RABBITMQ_NODE_IP_ADDRESS": "auto"}, (), None).config
    assert config.listeners == load(None, {}, (), None).config.listeners


def test_more_files_without_a_first_one(tmp_path: Path) -> None:
    """They were passed over without a word."""
    (tmp_path / "a.conf").write_text("heartbeat = 7\n")
    for value in (str(tmp_path), f"{tmp_path}/*.conf", f"{tmp_path}/a.conf"):
        loaded = load(None, {"RABBITMQ_CONFIG_FILES": value}, (), None)
        assert (loaded.config.heartbeat_s, loaded.warnings) == (7, ())


def test_more_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    file = tmp_path / "rabbitmq.conf"
    file.write_text("heartbeat = 7\n")
    for path in (None, str(file)):
        loaded = load(path, {"RABBITMQ_CONFIG_FILES": f"{tmp_path}/nosuch"}, (), None)
        assert loaded.warnings == (f"RABBITMQ_CONFIG_FILES: there is no file {tmp_path}/nosuch",)


def test_who_will_use_patterns_says_which_can_be_used() -> None:
    def only_a(text: str) -> None:
        if text != "a)":
            raise ValueError("it is not a)")

    keys = ("default_permissions.read", "credential_validator.regexp")
    taken = load(None, {}, [(key, "a)") for key in keys], None, only_a)
    assert taken.config.first_user.read == "a)"
    with pytest.raises(ConfigError) as refused:
        load(None, {}, [(key, "b") for key in keys], None, only_a)
    assert [str(each) for each in refused.value.problems] == [
        f"--set: {key}: 'b' is no regular expression that can be used: it is not a)" for key in keys
    ]


def test_a_launchers_listener_beside_keys_is_named() -> None:
    environ = {"RABBITMQ_NODE_PORT": "5700", "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1"}
    loaded = load(None, environ, (("listeners.tcp.default", "5673"),), None)
    assert loaded.config.listeners[0] == Endpoint("0.0.0.0", 5673)
    assert loaded.warnings == tuple(
        f"{name}: {name} has no effect here: listeners.tcp counts" for name in environ
    )


def test_a_bind_of_anything_but_everything_is_refused() -> None:
    """It was passed over: who wrote an address of this machine had a node that only this machine reached."""
    with pytest.raises(ConfigError, match=r"^BURROWMQ_BIND: '0\.0\.0\.0' is not a valid"):
        load(None, {"BURROWMQ_BIND": "0.0.0.0"}, (), None)


def test_a_key_that_is_set_twice_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    file.write_text("heartbeat = 3\n\nheartbeat = 4\n")
    loaded = load(str(file), {}, [("heartbeat", "5")], None)
    assert loaded.warnings == (f"{file}:3: heartbeat is set again, line 1 has no effect",)


def test_what_is_near_no_key_gets_no_guess() -> None:
    with pytest.raises(
        ConfigError, match=r"--set: foo: there is no setting with that name \(docs/"
    ):
        load(None, {}, [("foo", "1")], None)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("listners.tcp.mine", "listeners.tcp.mine"),
        ("default_limits.vhosts.1.max_connection", "default_limits.vhosts.1.max_connections"),
        ("default_users.bob.pasword", "default_users.bob.password"),
        ("ssl_option.versions.1", "ssl_options.versions.1"),
    ],
)
def test_a_guess_has_the_name_that_the_operator_chose(key: str, meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, {}, [(key, "1")], None)
    (problem,) = caught.value.problems
    assert problem.nearest[0] == meant


@pytest.mark.parametrize(
    "key",
    [
        "load_definitions",
        "definitions.local.path",
        "management.load_definitions",
        "static_shovels",
    ],
)
def test_a_file_that_is_not_there_is_told_with_its_line(tmp_path: Path, key: str) -> None:
    file = tmp_path / "a.conf"
    file.write_text(f"heartbeat = 3\n{key} = {tmp_path}/none.json\n")
    with pytest.raises(ConfigError, match=rf"a\.conf:2: {key}: file .*none\.json does not exist"):
        load(str(file), {}, (), None)


def test_a_value_without_effect_is_checked_and_named() -> None:
    loaded = load(None, {}, [("tcp_listen_options.linger.timeout", "10")], None)
    (warning,) = loaded.warnings
    assert warning.startswith(
        "--set: tcp_listen_options.linger.timeout = 10 has no effect here: a close that waited"
    )
    assert load(None, {}, [("classic_queue.default_version", "1")], None).warnings == ()
    with pytest.raises(ConfigError):
        load(None, {}, [("consumer_timeout", "30m")], None)


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(str(tmp_path / "none.conf"), {}, (), None)


def test_octets_that_are_no_text_are_named_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    file.write_bytes(b"# c\r\n" * 9000 + b"default_user = caf\xe9\n")
    with pytest.raises(ConfigError) as caught:
        load(str(file), {}, (), None)
    (problem,) = caught.value.problems
    assert (problem.source, problem.line) == (str(file), 9001)
    assert problem.reason.startswith("is not UTF-8 text")


@pytest.mark.parametrize("key", ["backlog", "sndbuf", "recbuf"])
def test_what_no_socket_takes_is_refused_with_its_key(key: str) -> None:
    with pytest.raises(ConfigError, match=f"tcp_listen_options.{key}: .* out of range"):
        load(None, {}, [(f"tcp_listen_options.{key}", str(1 << 31))], None)


def test_a_node_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(ConfigError, match="RABBITMQ_NODENAME: nodename: it is not UTF-8 text"):
        load(None, {"RABBITMQ_NODENAME": "a\udcff"}, (), None)


def test_a_list_of_plugins_may_have_commas_at_its_ends() -> None:
    warnings = load(None, {"RABBITMQ_ENABLED_PLUGINS": " , a, "}, (), None).warnings
    assert [each for each in warnings if "plugin" in each] == [
        "RABBITMQ_ENABLED_PLUGINS: plugin a has no effect here: it is not built in"
    ]


def test_problems_of_all_sources_come_together(tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    file.write_text("heartbeat = x\n")
    with pytest.raises(ConfigError) as caught:
        load(str(file), {}, [("confrim", "fsync")], None)
    first, second = caught.value.problems
    assert (first.source, first.line, first.key) == (str(file), 1, "heartbeat")
    assert (second.source, second.key, second.nearest[0]) == ("--set", "confrim", "confirm")


def test_the_result_does_not_show_the_password() -> None:
    assert "s3cret" not in repr(load(None, {"RABBITMQ_DEFAULT_PASS": "s3cret"}, (), None))


def test_argv() -> None:
    given = parse_argv(["--config", "f", "--data-dir", "d", "--set", "a.b=c=d", "--set", "e = f"])
    assert given == Invocation(
        config_path="f", data_dir="d", overrides=(("a.b", "c=d"), ("e", "f"))
    )


def test_argv_refuses_a_set_without_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_argv(["--set", "heartbeat"])
    assert caught.value.code == 2
    assert "expected key=value" in capsys.readouterr().err


def test_the_files_that_were_read_are_known(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    names = [tmp_path / "a.conf", tmp_path / "conf.d" / "b.conf"]
    for name in names:
        name.write_text("heartbeat = 5\n")
    assert load(str(tmp_path / "a"), {}, (), None).files == tuple(str(name) for name in names)
