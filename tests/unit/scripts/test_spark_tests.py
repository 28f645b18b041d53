"""What is said where Spark's tests cannot run; where Java is: pyspark_amqp_jobs/test_java.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import spark_tests


def test_no_java_is_not_run_and_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert spark_tests.main(["--if-possible"]) == 0
    assert spark_tests.main(["--beside"]) == 5
    assert spark_tests.main([]) == 1
    printed = capsys.readouterr().out
    assert printed.count(f"NOT RUN, there is no Java in JAVA_HOME ({tmp_path})") == 3
    assert "openjdk-17-jre-headless" in printed


def test_the_tests_that_run_there_exist() -> None:
    found = spark_tests.paths()
    assert {"tests/unit/pyspark_amqp/source", "tests/spark"} <= set(found)
    assert "tests/unit/pyspark_amqp/wire" not in found
    oldest = spark_tests.on_the_oldest()
    assert "tests/spark/test_format.py" in oldest
    assert not [path for path in (*found, *oldest) if not (spark_tests.ROOT / path).exists()]
