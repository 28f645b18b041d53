"""Spark Connect: the client has the zip, the server nothing of this package.

The environments are made once, from the package index: what Connect needs (pandas, grpcio) is no part of `.venv/spark`.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

from scripts.spark_zip import pack
from tests.spark.conftest import publish, ready_count
from tests.support.broker_process import ROOT
from tests.support.python_environments import python_with

pytestmark = [
    pytest.mark.needs_server,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(900),
]
APPLICATION = ROOT / "tests" / "spark" / "connect_application.py"
OLDEST = "4.2.0"


@pytest.mark.parametrize("version", [OLDEST, pyspark.__version__])
def test_a_server_without_the_package(version: str, url: str, queue: str, tmp_path: Path) -> None:
    packages = [f"pyspark[connect]=={version}", "pandas<3", "pyarrow>=18"]
    python = python_with(f"connect-{version}", packages)
    if python is None:
        pytest.skip(f"{packages[0]} cannot be installed: needs a package index")
    publish(url, queue, 100)
    pack(tmp_path / "amqp.zip")
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in {"PYTHONPATH", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"}
    }
    done = subprocess.run(
        [str(python), str(APPLICATION), str(tmp_path / "amqp.zip"), url, queue, str(tmp_path)],
        cwd=tmp_path,
        env=environment | {"SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-1000:]}\n{done.stderr[-4000:]}"
    assert "looked at 100" in done.stdout
    assert "streamed 100 distinct 100" in done.stdout
    assert ready_count(url, queue) == 200
