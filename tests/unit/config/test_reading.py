"""Files beside and within files, what is no file of ours, values that cannot be used.

Covers: config/reading.py, config/sources.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.config import sources
from burrowmq.config.errors import ConfigError
from burrowmq.config.load import load


def problems(file: Path, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(str(file), environ, (), None)
    return [str(each) for each in caught.value.problems]


def test_a_line_that_includes_stands_for_the_lines_of_those_files(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "2.conf").write_text("heartbeat = 2\nframe_max = 8192\n")
    (tmp_path / "more" / "1.conf").write_text("heartbeat = 1\nchannel_max = 11\n")
    file = tmp_path / "rabbitmq.conf"
    file.write_text(
        "channel_max = 5\ninclude more/*.conf  # all\nframe_max = 4096\ninclude none/*.conf\n"
    )
    loaded = load(str(file), {}, (), None)
    config = loaded.config
    assert (config.heartbeat_s, config.channel_max, config.frame_max) == (2, 11, 4096)
    assert [Path(name).name for name in loaded.files] == ["rabbitmq.conf", "1.conf", "2.conf"]
    (row,) = (row for row in loaded.effective if row.key == "channel_max")
    assert row.source == f"{tmp_path / 'more' / '1.conf'}:2"


def test_a_directory_is_no_pattern_and_a_file_may_have_one_for_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "rabbit[1]"
    (folder / "conf.d").mkdir(parents=True)
    file = folder / "a.conf"
    file.write_text("include b[1].conf\ninclude *.inc\n")
    more = [folder / "b[1].conf", folder / "c.inc", folder / "conf.d" / "d.conf"]
    for each in more:
        each.write_text("heartbeat = 30\n")
    expected = tuple(map(str, (file, *more)))
    assert load(str(file), {}, (), None).files == expected
    assert (
        load(str(file), {"RABBITMQ_CONFIG_FILES": str(folder / "conf.d")}, (), None).files
        == expected
    )
    assert load(None, {"RABBITMQ_CONFIG_FILES": str(more[0])}, (), None).files == expected[1:2]


def test_what_cannot_be_included_names_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.conf"
    file.write_text("\ninclude a.conf\ninclude none.conf\n")
    first, second = problems(file)
    assert first == f"{file}:2: include: {tmp_path / 'a.conf'} includes itself"
    assert second.startswith(f"{file}:3: include: {tmp_path / 'none.conf'} cannot be read")
    file.write_text("include a\0b\ninclude a\0b/*.conf\nlog.file = a\0b\n")
    assert problems(file) == [
        f"{file}:1: include: a file's name has no zero byte",
        f"{file}:2: include: a file's name has no zero byte",
        f"{file}:3: log.file: there is a zero byte in it",
    ]
    for number in range(3):
        (tmp_path / f"{number}.inc").write_text("heartbeat = x\n")
    file.write_text("include *.inc\n")
    monkeypatch.setattr(sources, "FILES_MAX", 2)
    assert problems(file)[0] == f"{file}:1: include: there are more than 2 files"


def test_a_file_of_erlang_terms_is_called_one(tmp_path: Path) -> None:
    file = tmp_path / "rabbitmq.config"
    file.write_text("[{rabbit, [{heartbeat, 30}, {tcp_listeners, [5672]}]}].\n")
    for name in (file, tmp_path / "rabbitmq"):
        (problem,) = problems(name)
        assert problem.startswith(f"{file}: is a file of Erlang terms (advanced.config, or")
        assert problem.endswith("(such as heartbeat = 30)")


def test_an_advanced_config_beside_the_file_is_named(tmp_path: Path) -> None:
    file, advanced = tmp_path / "rabbitmq.conf", tmp_path / "advanced.config"
    file.write_text("heartbeat = 3\n")
    advanced.write_text("[].\n")
    assert load(str(file), {}, (), None).warnings == ()
    advanced.write_text("[{rabbit, [{msg_store_file_size_limit, 1048576}]}].\n")
    (warning,) = load(str(file), {}, (), None).warnings
    assert warning == (
        f"{advanced}: Erlang terms have no effect here: write key = value lines in rabbitmq.conf instead"
        " (such as msg_store_file_size_limit = 1048576)"
    )
    moved = advanced.rename(tmp_path / "other.config")
    environ = {"RABBITMQ_ADVANCED_CONFIG_FILE": str(tmp_path / "other")}
    assert str(moved) in load(None, environ, (), None).warnings[0]


def test_enabled_plugins_are_read(tmp_path: Path) -> None:
    file, enabled = tmp_path / "rabbitmq.conf", tmp_path / "enabled_plugins"
    file.write_text("heartbeat = 3\n")
    enabled.write_text("[rabbitmq_management,rabbitmq_stomp].\n")
    text = "plugin rabbitmq_stomp has no effect here: it is not built in"
    assert load(str(file), {}, (), None).warnings == (f"{enabled}: {text}",)
    listed = {"RABBITMQ_ENABLED_PLUGINS": "rabbitmq_prometheus,rabbitmq_stomp"}
    assert load(None, listed, (), None).warnings == (f"RABBITMQ_ENABLED_PLUGINS: {text}",)
    enabled.write_text("rabbitmq_management\n")
    assert problems(file)[0].startswith(f"{enabled}: is no list of plugins")


def test_encrypted_values_are_refused_and_placeholders_named(tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    file.write_text("default_pass = encrypted:abc=\n")
    assert problems(file)[0].startswith(f"{file}:1: default_pass: encrypted values cannot be")
    file.write_text("cluster_name = $(nodename)\n")
    assert load(str(file), {}, (), None).warnings == (
        f"{file}:1: cluster_name: $(...) is taken as it stands, nothing is put in",
    )


def test_a_file_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FILE_SIZE_MAX", 10)
    file = tmp_path / "a.conf"
    file.write_text("heartbeat = 3\n")
    assert problems(file) == [f"{file}: is longer than 10 characters"]


@pytest.mark.parametrize("key", ["load_definitions", "definitions.local.path"])
def test_a_directory_without_definitions_is_told(tmp_path: Path, key: str) -> None:
    directory = tmp_path / "definitions"
    directory.mkdir()
    (directory / "..data").mkdir()
    file = tmp_path / "a.conf"
    file.write_text(f"{key} = {directory}\n")
    (told,) = load(str(file), {}, (), None).warnings
    why = f"there is no file in {directory}; a new data directory gets no user then"
    assert told == f"{file}:1: {key}: {why}"
    (directory / "a.json").write_text("{}")
    assert load(str(file), {}, (), None).warnings == ()


@pytest.mark.parametrize("name", ["a@b@c", "@host", "name@", ""])
def test_a_node_s_name_has_one_host_at_most(name: str) -> None:
    with pytest.raises(ConfigError, match="is not of the form name@host"):
        load(None, {}, (("nodename", name),), None)


@pytest.mark.parametrize("key", ["default_user", "default_vhost"])
def test_a_name_that_amqp_has_no_room_for(key: str) -> None:
    load(None, {}, ((key, "é" * 127),), None)
    with pytest.raises(ConfigError, match=f"{key}: it has more than 255 octets"):
        load(None, {}, ((key, "é" * 128),), None)
