"""Run the tests of pyspark_amqp in the environments that have Spark, or say what is missing.

All of them run on the newest Spark that the lock file has, and then those that use Spark's own interfaces on the oldest one that
the package takes (`on_the_oldest`).

Called by `make test-spark`; with `--if-possible` by `make test-long`, and with `--beside` by scripts/both_speeds.py. With
one of these a machine without Java or without a way to get Spark is no failure: the tests count as not run, and the last
lines say so. All other arguments are pytest's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark_amqp_jobs import java

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".venv" / "spark" / "bin" / "python"
OLDEST_PYTHON = ROOT / ".venv" / "spark-oldest" / "bin" / "python"
NO_TESTS = 5  # pytest's exit status when none was selected
ELSEWHERE = {"wire", "conftest.py", "__pycache__"}
# The exit status where nothing can be run: no failure, or what pytest's is where it found no test.
WHERE_NOT_RUN = {"--if-possible": 0, "--beside": 5}
HOW_TO_GET_JAVA = (
    f"get Java {java.LEAST} or newer, then run `make test-spark`: {java.HOW_TO_GET_IT}"
)


def paths() -> list[str]:
    """Return the tests that are run here: the client's own need nothing of Spark and ran before."""
    folders = sorted((ROOT / "tests" / "unit").glob("pyspark_*/*"))
    kept = [path for path in folders if path.name not in ELSEWHERE and path.suffix in {"", ".py"}]
    kept += [
        *sorted((ROOT / "tests" / "unit" / "bench").glob("test_spark_*.py")),
        ROOT / "tests" / "spark",
    ]
    return [str(path.relative_to(ROOT)) for path in kept]


def on_the_oldest() -> list[str]:
    """Return the tests that run on the oldest Spark, too: what calls its interfaces, or is called by them."""
    unit = "tests/unit/pyspark_amqp"
    return [
        *(f"{unit}/{name}" for name in ("test_columns.py", "test_datasource.py", "source", "sink")),
        "tests/unit/pyspark_amqp_store/test_datasource.py",
        "tests/spark/test_format.py",
    ]


def not_run(reason: str, advice: str, status: int) -> int:
    """Say that nothing was run; return the exit status."""
    print(f"==== Spark: NOT RUN, {reason}\n====        {advice}", flush=True)
    return status


def run(python: Path, tests: Sequence[str]) -> int:
    """Run pytest with an environment's Python; return its exit status."""
    # The broker runs in the environment that has its dependencies; Spark's workers in this one.
    environment = {
        **os.environ,
        "BURROWMQ_TEST_PYTHON": sys.executable,
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
    }
    environment.pop("SPARK_HOME", None)  # another Spark's jars would be started by our pyspark
    version = "import pyspark; print('==== Spark', pyspark.__version__, flush=True)"
    subprocess.run([str(python), "-c", version], cwd=ROOT, env=environment, check=False)
    command = [str(python), "-m", "pytest", "-q", *tests]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main(arguments: Sequence[str]) -> int:
    """Run the tests; return pytest's exit status, the first that is a failure."""
    found = [status for word, status in WHERE_NOT_RUN.items() if word in arguments]
    status = found[0] if found else 1
    reason = java.what_is_missing(os.environ)
    if reason is not None:
        return not_run(reason, HOW_TO_GET_JAVA, status)
    for target in ("setup-spark", "setup-spark-oldest"):
        made = subprocess.run(["make", "--no-print-directory", target], cwd=ROOT, check=False)
        if made.returncode:
            advice = (
                f"`make {target}` failed above: it needs a package index, or pip's cache of one"
            )
            return not_run("its environment could not be made", advice, status)
    own = [argument for argument in arguments if argument not in WHERE_NOT_RUN]
    codes = [run(PYTHON, [*own, *paths()]), run(OLDEST_PYTHON, [*own, *on_the_oldest()])]
    failures = [code for code in codes if code not in {0, NO_TESTS}]
    return failures[0] if failures else min(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
