"""The command line, as far as it needs no Spark.

Covers: pyspark_amqp_jobs/__main__.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_amqp_jobs import __main__ as command


@pytest.mark.parametrize("job", ["archive", "dead-letters", "store-audit", "traffic"])
def test_each_job_has_a_help(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main([job, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: burrowmq-spark {job}")
    assert "parquet" not in said  # names stay as they are written


def test_wrong_words_are_status_64(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["nothing"], ["archive"]):
        with pytest.raises(SystemExit) as ended:
            command.main(words)
        assert ended.value.code == 64


def test_a_job_that_needs_no_spark_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'")
    assert command.main(["spool", "list", "--spool", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "the spool is empty\n"
    assert command.main(["spool", "list", "--spool", str(tmp_path / "none")]) == 64
    assert "is no folder" in capsys.readouterr().err
