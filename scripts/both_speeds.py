"""Run the tests compiled and interpreted at the same time, each in a process of its own, and say how both ended.

Called by `make test`, with the arguments of pytest. The compiled run prints as it goes; the interpreted one writes to a
file, which is printed whole once the first has ended: the two outputs never mix. A third of the time a test waits for a
timer, a disk or a process that starts, so each run has two workers: four keep two cores busy. A worker has its tests in
their order and takes from the other when it has none left (`worksteal`), so that a module's fixtures are made once.
What is the same at both speeds is run at one of them (tests/support/speeds.py).
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
LOG = ROOT / "build" / "test-interpreted.log"
POLL_S = 0.2
PYTEST = ["-m", "pytest", "-q", "--both-speeds", "-n", "2", "--dist", "worksteal"]
NOTHING_TO_RUN = 5  # pytest's exit status when no test was selected


def environment_of(speed: str, base: Mapping[str, str]) -> dict[str, str]:
    """Return what the run's process inherits; only the switch of the two speeds differs."""
    values = {key: value for key, value in base.items() if key != "BURROWMQ_PURE"}
    return {**values, "BURROWMQ_PURE": "1"} if speed == "interpreted" else values


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
    return ", ".join(
        f"{speed}: {'passed' if code == 0 else f'FAILED (exit status {code})'}"
        for speed, code in codes.items()
    )


def run(command: Sequence[str], log: Path = LOG) -> int:
    """Run the command at both speeds and return the first exit status that is not 0."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        quiet = subprocess.Popen(
            command, env=environment_of("interpreted", os.environ), stdout=file, stderr=file
        )
    loud = subprocess.Popen(command, env=environment_of("compiled", os.environ))
    # Ctrl-C reaches all three: the runs clean up after themselves, and this one waits for them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        print("==== compiled (the interpreted run goes on beside it)", flush=True)
        codes = {"compiled": loud.wait()}
        print("==== interpreted", flush=True)
        follow(quiet, log)
        codes["interpreted"] = quiet.wait()
    finally:
        for process in (loud, quiet):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait()
    if 0 in codes.values():  # what was asked for runs at the other speed
        codes = {speed: 0 if code == NOTHING_TO_RUN else code for speed, code in codes.items()}
    print(f"==== {verdict(codes)}", flush=True)
    return next((code for code in codes.values() if code), 0)


if __name__ == "__main__":
    sys.exit(run([sys.executable, *PYTEST, *sys.argv[1:]]))
