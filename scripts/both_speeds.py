"""Run the tests compiled and interpreted, and Spark's, at the same time, and say how all ended.

Called by `make test`, with the arguments of pytest. Each run is a process of its own. The compiled run prints as it
goes; the others write to files, which are printed whole, one after the other, once the first has ended: no two outputs
mix. A third of the time a test waits for a timer, a disk or a process, so each speed has two workers: four keep two
cores busy. A worker has its tests in their order and takes from the other when it has none left (`worksteal`), so that
a module's fixtures are made once. What is the same at both speeds is run at one of them (tests/support/speeds.py).
With `--with-spark` the tests of pyspark_amqp run beside them (scripts/spark_tests.py), where they can.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build"
POLL_S = 0.2
PYTEST = ["-m", "pytest", "-q", "--both-speeds", "-n", "2", "--dist", "worksteal"]
SPARK = ["-m", "scripts.spark_tests", "--beside"]
NOTHING_TO_RUN = 5  # pytest's exit status when no test was selected


def environment_of(name: str, base: Mapping[str, str]) -> dict[str, str]:
    """Return what a run's process inherits; only the switch of the two speeds differs."""
    values = {key: value for key, value in base.items() if key != "BURROWMQ_PURE"}
    return {**values, "BURROWMQ_PURE": "1"} if name == "interpreted" else values


def follow(process: subprocess.Popen[bytes], log: Path) -> None:
    """Print the file from its start until the process that writes it has ended."""
    with log.open("rb") as text:
        while True:
            ended = process.poll() is not None  # asked before reading: nothing is written after it
            while part := text.read(1 << 16):
                sys.stdout.buffer.write(part)
                sys.stdout.buffer.flush()
            if ended:
                return
            time.sleep(POLL_S)


def verdict(codes: Mapping[str, int]) -> str:
    """Say in one line how each run ended."""
    words = {0: "passed", NOTHING_TO_RUN: "NOT RUN"}
    return ", ".join(
        f"{name}: {words.get(code, f'FAILED (exit status {code})')}" for name, code in codes.items()
    )


def status(codes: Mapping[str, int]) -> int:
    """Return the first failure; what ran in one place need not be in the others."""
    failures = [code for code in codes.values() if code not in (0, NOTHING_TO_RUN)]
    return failures[0] if failures else min(codes.values())


def run(command: Sequence[str], logs: Path = LOGS, spark: Sequence[str] | None = None) -> int:
    """Run the command at both speeds, and Spark's if there is one; return the status of all."""
    logs.mkdir(parents=True, exist_ok=True)
    quiet = {"interpreted": _start(command, "interpreted", logs / "test-interpreted.log")}
    if spark is not None:
        quiet["Spark"] = _start(spark, "Spark", logs / "test-spark.log")
    loud = subprocess.Popen(command, env=environment_of("compiled", os.environ))
    # Ctrl-C reaches all of them: the runs clean up after themselves, and this one waits for them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        print(f"==== compiled (beside it: {', '.join(quiet)})", flush=True)
        codes = {"compiled": loud.wait()}
        for name, (process, log) in quiet.items():
            print(f"==== {name}", flush=True)
            follow(process, log)
            codes[name] = process.wait()
    finally:
        for process in (loud, *(each for each, _ in quiet.values())):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait()
    print(f"==== {verdict(codes)}", flush=True)
    return status(codes)


def _start(command: Sequence[str], name: str, log: Path) -> tuple[subprocess.Popen[bytes], Path]:
    with log.open("wb") as file:
        environment = environment_of(name, os.environ)
        return subprocess.Popen(command, env=environment, stdout=file, stderr=file), log


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments say; return the exit status."""
    words = [word for word in arguments if word != "--with-spark"]
    tests = [sys.executable, *PYTEST, *words, "tests"]
    spark = [sys.executable, *SPARK, *words]
    return run(tests, spark=spark if "--with-spark" in arguments else None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
