"""RabbitMQ's names as links: made on demand, never over something else."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from burrowmq.cli.commands.names import ADMIN, NAMES
from tests.support.served import ctl


def test_each_name_is_a_link_and_answers_by_itself(tmp_path: Path) -> None:
    names = tmp_path / "bin"
    assert ctl("install_names", str(names)).code == 0
    assert sorted(path.name for path in names.iterdir()) == sorted([*NAMES, ADMIN])
    assert ctl("install-names", str(names)).code == 0, "a second time changes nothing"
    told = subprocess.run(
        [names / ADMIN, "help", "subcommands"], capture_output=True, text=True, check=True
    )
    assert "declare KIND" in told.stdout
    told = subprocess.run(
        [names / "rabbitmq-plugins", "help", "enable"], capture_output=True, text=True, check=True
    )
    assert (
        "rabbitmq-plugins [--node <node>] [--longnames] [--quiet] enable <plugin1>" in told.stdout
    )


def test_what_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    other = tmp_path / "rabbitmqctl"
    other.write_text("RabbitMQ's")
    output = ctl("install_names", str(tmp_path))
    assert output.code == 70
    assert f"{other}: there already, and not ours; nothing was changed" in output.err
    assert os.listdir(tmp_path) == ["rabbitmqctl"]
    assert ctl("install_names", "--force", str(tmp_path)).code == 0
    assert os.readlink(other).endswith("/burrowctl")


def test_a_name_that_a_shell_finds_elsewhere_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path / "first"
    first.mkdir()
    (first / "rabbitmqctl").write_text("#!/bin/sh\n")
    (first / "rabbitmqctl").chmod(0o755)
    mine = tmp_path / "mine"
    monkeypatch.setenv("PATH", f"{first}:{mine}")
    output = ctl("install_names", str(mine))
    assert output.err == f"Warning: {first}/rabbitmqctl comes before {mine} in PATH\n"
    (mine / ADMIN).write_text("another's")
    assert f"{mine}/{ADMIN}: there already, and not ours" in ctl("install_names", str(mine)).err
    assert ctl("install_names", "--force", str(mine)).code == 0
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ctl("install_names", str(mine)).err == f"Warning: {mine} is not in PATH\n"


def test_a_directory_that_cannot_be_written_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    output = ctl("install_names", str(tmp_path / "file"))
    assert output.code == 74
    assert output.err.startswith("Error:\n")


def test_a_link_that_cannot_be_made_is_what_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As without permission to write there, which who runs the tests as root has."""

    def refused(target: str, path: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target, None, path)

    monkeypatch.setattr(os, "symlink", refused)
    output = ctl("install_names", str(tmp_path))
    first = next(iter(NAMES))
    assert (output.code, output.err) == (
        74,
        f"Error:\n{tmp_path}/{first}.new: Permission denied\n",
    )
