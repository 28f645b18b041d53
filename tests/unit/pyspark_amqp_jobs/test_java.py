"""Where Java is, and what is said where it is not.

Covers: pyspark_amqp_jobs/java.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pyspark_amqp_jobs import __main__ as command
from pyspark_amqp_jobs import java


def java_that_prints(folder: Path, text: str) -> dict[str, str]:
    command = folder / "bin" / "java"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    command.chmod(0o755)
    return {"JAVA_HOME": str(folder), "PATH": ""}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("no Java here", None),
    ],
)
def test_the_version_is_read(text: str, version: int | None) -> None:
    assert java.version_in(text) == version


def test_a_new_java_is_enough(tmp_path: Path) -> None:
    environment = java_that_prints(tmp_path, 'openjdk version "21.0.2"')
    assert java.what_is_missing(environment) is None


def test_an_old_java_is_named(tmp_path: Path) -> None:
    environment = java_that_prints(tmp_path, 'openjdk version "11.0.2"')
    assert java.what_is_missing(environment) == f"{tmp_path}/bin/java is Java 11"


def test_what_cannot_be_started_is_no_java(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("")
    found = java.what_is_missing({"JAVA_HOME": str(tmp_path)})
    assert found == f"{tmp_path}/bin/java cannot be started (Permission denied)"


class GatewayExited(Exception):
    """As Spark says it."""

    def __str__(self) -> str:
        return "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."


def test_a_gateway_that_exited_is_explained_by_what_is_missing(tmp_path: Path) -> None:
    said = java.refusal(GatewayExited(), {"JAVA_HOME": str(tmp_path)})
    assert said is not None
    assert said.startswith(
        f"Spark needs Java 17 or newer, and there is no Java in JAVA_HOME ({tmp_path}). Get it: "
    )
    good = java_that_prints(tmp_path, 'openjdk version "21.0.2"')
    assert java.refusal(GatewayExited(), good) is None
    assert java.refusal(ValueError("other"), {"JAVA_HOME": "/nowhere"}) is None


def test_a_package_that_is_not_there_is_named() -> None:
    found = java.refusal(ModuleNotFoundError("no", name="pyspark"), {})
    assert found == f"there is no pyspark for {sys.executable}: pip install 'burrowmq[spark]'"
    assert java.refusal(ModuleNotFoundError("no", name="mine"), {}) is None


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (
            GatewayExited(),
            78,
            "burrowmq-spark archive: Spark needs Java 17 or newer, and there is no Java",
        ),
        (
            ModuleNotFoundError("no", name="pyspark"),
            78,
            "burrowmq-spark archive: there is no pyspark",
        ),
        (ValueError("bad"), 70, "burrowmq-spark archive: ValueError: bad"),
    ],
)
def test_the_command_says_it_with_its_own_status(
    error: Exception,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(command, "open_session", refuse)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert command.main(["archive", "--queue", "q", "--to", "a"]) == status
    assert capsys.readouterr().err.startswith(said)
