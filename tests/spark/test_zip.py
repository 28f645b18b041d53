"""One file is enough: `spark-submit --py-files` with what `make spark-zip` packs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.spark_zip import pack
from tests.spark.conftest import publish

pytestmark = [
    pytest.mark.needs_server,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
]

APPLICATION = """
import sys
import pyspark_amqp
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
pyspark_amqp.register(spark)
url, queue = sys.argv[1:]
frame = spark.read.format("amqp").options(**{"amqp.uri": url, "queue": queue}).load()
print("from", pyspark_amqp.__file__, "rows", frame.count())
spark.stop()
"""


def test_the_zip_is_enough(url: str, queue: str, tmp_path: Path) -> None:
    publish(url, queue, 7)
    pack(tmp_path / "amqp.zip")
    script = tmp_path / "application.py"
    script.write_text(APPLICATION)
    submit = Path(sys.executable).parent / "spark-submit"
    done = subprocess.run(
        [
            *(str(submit), "--master", "local[2]", "--driver-memory", "1g"),
            *("--conf", "spark.driver.host=127.0.0.1"),
            *("--py-files", str(tmp_path / "amqp.zip"), str(script), url, queue),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "amqp.zip/pyspark_amqp/__init__.py rows 7" in done.stdout
