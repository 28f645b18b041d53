"""Run the tests of pyspark_amqp in the environment that has Spark, or say what is missing.

Called by `make test-spark`, and with `--if-possible` by `make test`, where a machine without Java or without a way to
get Spark is no failure: the tests count as not run, and the last lines say so. All other arguments are pytest's.
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
ELSEWHERE = {"wire", "conftest.py", "__pycache__"}
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


def not_run(reason: str, advice: str, *, is_allowed: bool) -> int:
    """Say that nothing was run; return the exit status."""
    print(f"==== Spark: NOT RUN, {reason}\n====        {advice}", flush=True)
    return 0 if is_allowed else 1


def main(arguments: Sequence[str]) -> int:
    """Run the tests; return pytest's exit status."""
    is_allowed = "--if-possible" in arguments
    reason = java.what_is_missing(os.environ)
    if reason is not None:
        return not_run(reason, HOW_TO_GET_JAVA, is_allowed=is_allowed)
    if subprocess.run(
        ["make", "--no-print-directory", "setup-spark"], cwd=ROOT, check=False
    ).returncode:
        advice = "`make setup-spark` failed above: it needs a package index, or pip's cache of one"
        return not_run("its environment could not be made", advice, is_allowed=is_allowed)
    print("==== Spark", flush=True)
    own = [argument for argument in arguments if argument != "--if-possible"]
    # The broker runs in the environment that has its dependencies; Spark's workers in this one.
    environment = {
        **os.environ,
        "BURROWMQ_TEST_PYTHON": sys.executable,
        "PYSPARK_PYTHON": str(PYTHON),
        "PYSPARK_DRIVER_PYTHON": str(PYTHON),
    }
    environment.pop("SPARK_HOME", None)  # another Spark's jars would be started by our pyspark
    done = subprocess.run(
        [str(PYTHON), "-m", "pytest", "-q", *own, *paths()], cwd=ROOT, env=environment, check=False
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
