"""spark-submit and `burrowmq-spark` where there is no checkout: with the zip alone, and with the package installed.

Each application runs in an environment of its own that has Spark, and of this project nothing but what the test puts there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from pyspark_amqp.wire import connect, declare_queue
from scripts.spark_zip import pack
from tests.spark.conftest import publish, ready_count
from tests.support.broker_process import PYTHON, ROOT

pytestmark = [
    pytest.mark.needs_server,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(600),
]

JOBS = ROOT / "pyspark_amqp_jobs" / "__main__.py"
SETTINGS = ("spark.ui.enabled=false", "spark.driver.host=127.0.0.1", "spark.driver.memory=1g")
APPLICATION = """
import sys
import pyspark_amqp
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
url, queue, *words = sys.argv[1:]
if "register" in words:
    pyspark_amqp.register(spark)
frame = spark.read.format("amqp").options(**{"amqp.uri": url, "queue": queue}).load()
print("from", pyspark_amqp.__file__, "rows", frame.count())
spark.stop()
"""


class Machine:
    """A machine of a cluster: a Python that has pyspark and pyarrow, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder / "python", with_pip=False)
        self.bin = folder / "python" / "bin"
        (packages,) = (folder / "python" / "lib").glob("python*/site-packages")
        # The folder itself, not what its .pth files name: the checkout is among those.
        (packages / "spark.pth").write_text(sysconfig.get_path("purelib"))

    def run(self, *command: str) -> str:
        """Run a command and return its standard output."""
        environment = {
            key: value
            for key, value in os.environ.items()
            if key not in {"PYTHONPATH", "SPARK_HOME", "PYSPARK_DRIVER_PYTHON"}
        }
        environment |= {"PYSPARK_PYTHON": str(self.bin / "python"), "MASTER": "local[2]"}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def submit(self, *arguments: str) -> str:
        """Run spark-submit as it came with pyspark; it prints what an application says as an error, too."""
        settings = [word for setting in SETTINGS for word in ("--conf", setting)]
        submit = Path(sys.executable).parent / "spark-submit"
        return self.run(str(submit), "--master", "local[2]", *settings, *arguments)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def other(url: str, queue: str) -> str:
    """Declare another queue."""
    name = f"{queue}.other"
    with connect(url) as connection:
        declare_queue(connection, name)
    return name


def test_the_zip_is_enough_for_an_application(url: str, queue: str, machine: Machine) -> None:
    publish(url, queue, 7)
    pack(machine.folder / "amqp.zip")
    script = machine.folder / "application.py"
    script.write_text(APPLICATION)
    printed = machine.submit("--py-files", "amqp.zip", str(script), url, queue, "register")
    assert "amqp.zip/pyspark_amqp/__init__.py rows 7" in printed


def test_the_zip_is_enough_for_the_jobs(url: str, queue: str, machine: Machine) -> None:
    """The workers get the packages out of the zip, too: a replay with a mark runs a function in them."""
    publish(url, queue, 7)
    pack(machine.folder / "amqp.zip")
    target = other(url, queue)
    jobs = ["--py-files", "amqp.zip", str(JOBS)]
    printed = machine.submit(*jobs, "archive", "--queue", queue, "--to", "kept", "--uri", url)
    assert "archived 7 messages" in printed
    words = ["--from", "kept", "--to-queue", target, "--mark", "test", "--uri", url]
    assert "replayed 7 messages" in machine.submit(*jobs, "replay", *words)
    assert (ready_count(url, queue), ready_count(url, target)) == (0, 7)
    listed = machine.submit(*jobs, "spool", "list", "--spool", "kept/_spool")
    assert listed.split()[-2:] == ["7", "0"]  # the last batch of a run stays; nothing is in doubt


def test_installed(url: str, queue: str, machine: Machine, tmp_path: Path) -> None:
    """From a wheel: the format is found by itself, the jobs are a command, and an application for spark-submit."""
    # A copy, links followed: nothing is built beside what another run builds.
    source = tmp_path / "source"
    built = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "distributions" / "pyspark-amqp", source, ignore=built)
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input"]
    offline = ["--no-deps", "--no-index"]
    build = [*pip, "wheel", *offline, "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    machine.run(*build, str(source))
    (wheel,) = tmp_path.glob("pyspark_amqp-*.whl")
    machine.run(*pip, "--python", str(machine.bin / "python"), "install", *offline, str(wheel))

    publish(url, queue, 7)
    script = machine.folder / "application.py"
    script.write_text(APPLICATION)
    assert "site-packages/pyspark_amqp/__init__.py rows 7" in machine.submit(
        str(script), url, queue
    )
    target = other(url, queue)
    command = str(machine.bin / "burrowmq-spark")
    printed = machine.run(command, "archive", "--queue", queue, "--to", "kept", "--uri", url)
    assert printed.startswith("archived 7 messages")  # progress is on standard error
    where = "import pyspark_amqp_jobs.__main__ as m; print(m.__file__)"
    jobs = machine.run(str(machine.bin / "python"), "-c", where).strip()
    words = ["--from", "kept", "--to-queue", target, "--mark", "test", "--uri", url]
    assert "replayed 7 messages" in machine.submit(jobs, "replay", *words)
    assert ready_count(url, target) == 7
