"""Spark Connect: the client has the zip, the server nothing of this package.

The environments are made once, from the package index: what Connect needs (pandas, grpcio) is no part of `.venv/spark`.
"""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

import pyspark
import pytest

from scripts.spark_zip import pack
from tests.spark.conftest import publish, ready_count
from tests.support.broker_process import ROOT

pytestmark = [
    pytest.mark.needs_server,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(900),
]
APPLICATION = ROOT / "tests" / "spark" / "connect_application.py"
OLDEST = "4.2.0"


def python_with(version: str) -> Path:
    """Return the Python of an environment with this pyspark and what Connect needs."""
    folder = ROOT / ".venv" / f"connect-{version}"
    python = folder / "bin" / "python"
    done = folder / "complete"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        wanted = [f"pyspark[connect]=={version}", "pandas<3", "pyarrow>=18"]
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input"]
        if subprocess.run([*pip, "install", *wanted], check=False).returncode:
            pytest.skip(f"pyspark[connect]=={version} cannot be installed: needs a package index")
        done.touch()
    return python


@pytest.mark.parametrize("version", [OLDEST, pyspark.__version__])
def test_a_server_without_the_package(version: str, url: str, queue: str, tmp_path: Path) -> None:
    python = python_with(version)
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
