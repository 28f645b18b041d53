"""One file that Spark's workers can import from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scripts.spark_zip import pack


def test_the_client_runs_from_the_zip_alone(tmp_path: Path) -> None:
    target = tmp_path / "out" / "amqp.zip"
    names = pack(target)
    assert "pyspark_amqp/datasource.py" in names
    assert not [name for name in names if "__pycache__" in name]
    code = "import pyspark_amqp.wire as w; print(w.parse_address('amqp://h/v').place, w.__file__)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = [{str(target)!r}]; {code}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.startswith("amqp://h:5672 (virtual host 'v') ")
    assert "amqp.zip" in done.stdout


def test_the_same_sources_give_the_same_file(tmp_path: Path) -> None:
    pack(tmp_path / "a.zip")
    pack(tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
