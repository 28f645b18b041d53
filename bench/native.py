"""The native load generator: compiled on demand, run as a process, answers in JSON.

Owns a cache directory (`$XDG_CACHE_HOME/burrowmq-bench`) with one binary per source digest. Called by `scenarios` and
`runner`. If a generator reports an error, or ends without a report, `GeneratorFailed` is raised: a broken run has no
rate.
"""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import IO

SOURCES = Path(__file__).with_name("generator")
Option = int | float | str | bool


class GeneratorFailed(Exception):
    """The generator found a protocol error, timed out, or could not be built."""


def cache_directory() -> Path:
    """Where compiled generators and fetched jars live between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = Path(base) / "burrowmq-bench"
    path.mkdir(parents=True, exist_ok=True)
    return path


def build() -> Path:
    """Path of the compiled generator; compiles it when its sources have changed."""
    sources = sorted(SOURCES.glob("*.c"))
    digest = hashlib.sha256()
    for path in [*sources, *sorted(SOURCES.glob("*.h"))]:
        digest.update(path.read_bytes())
    binary = cache_directory() / f"generator-{digest.hexdigest()[:16]}"
    if binary.exists():
        return binary
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise GeneratorFailed(
            "the load generator needs a C compiler: install gcc, or run only PerfTest rows"
        )
    unfinished = binary.with_suffix(f".{os.getpid()}")
    command = [compiler, "-O2", "-flto", "-std=gnu11", "-pthread", "-o", str(unfinished)]
    done = subprocess.run(
        [*command, *map(str, sources), "-ldl"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise GeneratorFailed(f"the load generator does not compile:\n{done.stderr}")
    unfinished.rename(binary)
    return binary


def arguments(options: dict[str, Option]) -> list[str]:
    """Command-line arguments: True is a bare switch, False is left out."""
    found: list[str] = []
    for name, value in options.items():
        if value is False:
            continue
        found.append(f"--{name.replace('_', '-')}")
        if value is not True:
            found.append(str(value))
    return found


def _parse(line: str) -> dict[str, float]:
    try:
        report: dict[str, float | str] = json.loads(line)
    except json.JSONDecodeError as failure:
        raise GeneratorFailed(f"the load generator printed {line!r}") from failure
    if "error" in report:
        raise GeneratorFailed(str(report["error"]))
    return {name: float(value) for name, value in report.items()}


def run(port: int, **options: Option) -> dict[str, float]:
    """Run to the end and return the report."""
    command = [str(build()), *arguments({"port": port, **options})]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return _parse(done.stdout.strip().rpartition("\n")[2])


class StagedRun:
    """A run that stops once in the middle (`idle`, stalled consumers) so that the node can be looked at."""

    def __init__(self, port: int, **options: Option) -> None:
        command = [str(build()), *arguments({"port": port, **options})]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def _output(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def await_stage(self) -> None:
        """Block until the generator says that it has reached its middle."""
        line = self._output().readline()
        if '"stage"' not in line:
            self._process.wait()
            _parse(line)
            raise GeneratorFailed(f"the load generator printed {line!r}")

    def finish(self) -> dict[str, float]:
        """Let it go on and return the report."""
        output, _ = self._process.communicate("go\n")
        return _parse(output.strip().rpartition("\n")[2])

    def abandon(self) -> None:
        """End the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
