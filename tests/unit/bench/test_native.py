"""The generator is built once per source and its errors become exceptions."""

import shutil
from pathlib import Path

import pytest

from bench import native
from bench.peers.base import free_ports


def test_switches_are_bare_and_false_ones_left_out() -> None:
    found = native.arguments({"ack_every": 5, "lazy": True, "vary": False, "rate": 0.5})
    assert found == ["--ack-every", "5", "--lazy", "--rate", "0.5"]


def test_without_a_compiler_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(native.GeneratorFailed, match="install gcc"):
        native.build()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_a_refused_connection_is_a_failure_not_a_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (port,) = free_ports(1)
    with pytest.raises(native.GeneratorFailed, match="connect to port"):
        native.run(port, messages=1)
