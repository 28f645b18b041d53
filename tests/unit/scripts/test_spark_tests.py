"""Where Java is, and what is said where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import spark_tests


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
    assert spark_tests.version_in(text) == version


def test_a_new_java_is_enough(tmp_path: Path) -> None:
    environment = java_that_prints(tmp_path, 'openjdk version "21.0.2"')
    assert spark_tests.what_is_missing(environment) is None


def test_an_old_java_is_named(tmp_path: Path) -> None:
    environment = java_that_prints(tmp_path, 'openjdk version "11.0.2"')
    assert spark_tests.what_is_missing(environment) == f"{tmp_path}/bin/java is Java 11"


def test_no_java_is_not_run_and_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert spark_tests.main(["--if-possible"]) == 0
    assert spark_tests.main([]) == 1
    printed = capsys.readouterr().out
    assert printed.count("NOT RUN, there is no Java in JAVA_HOME") == 2
    assert "openjdk-17-jre-headless" in printed


def test_the_tests_that_run_there_exist() -> None:
    found = spark_tests.paths()
    assert {"tests/unit/pyspark_amqp/source", "tests/spark"} <= set(found)
    assert "tests/unit/pyspark_amqp/wire" not in found
    assert not [path for path in found if not (spark_tests.ROOT / path).exists()]
