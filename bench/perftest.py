"""RabbitMQ PerfTest, the Java client, as a load generator: what an ordinary client library reaches.

Owns a directory of jars fetched once with Maven. Called by `scenarios.perftest` and `scenarios.headline`. PerfTest prints its
averages in the last line; a run without them raises `PerfTestFailed`.
"""

import os
import re
import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.native import cache_directory

VERSION = "2.22.1"
_POM = f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>burrowmq</groupId><artifactId>bench</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency><groupId>com.rabbitmq</groupId><artifactId>perf-test</artifactId>
<version>{VERSION}</version></dependency></dependencies></project>
"""
_RATE = re.compile(r"(sending|receiving) rate avg: (\d+) msg/s")


class PerfTestFailed(Exception):
    """No Java, no Maven, no network, or a run that ended without its averages."""


@dataclass(frozen=True, slots=True)
class PerfTestResult:
    """Averages of one run; a direction that was not used is 0."""

    sent_rate: float
    received_rate: float
    client_cpu_s: float


def jars() -> Path:
    """Directory with PerfTest and what it needs; fetched from Maven Central at the first call."""
    if shutil.which("java") is None:
        raise PerfTestFailed("PerfTest needs java 11 or newer")
    target = cache_directory() / f"perf-test-{VERSION}"
    if target.exists():
        return target
    maven = shutil.which("mvn")
    if maven is None:
        raise PerfTestFailed(f"fetching PerfTest needs mvn (or put its jars into {target})")
    work = cache_directory() / f"perf-test-{VERSION}.{os.getpid()}"
    work.mkdir()
    (work / "pom.xml").write_text(_POM)
    command = [maven, "-q", "-B", "-f", str(work / "pom.xml"), "dependency:copy-dependencies"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={work / 'jars'}", "-DincludeScope=runtime"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise PerfTestFailed(f"mvn could not fetch PerfTest:\n{done.stdout[-800:]}")
    (work / "jars").rename(target)
    shutil.rmtree(work)
    return target


def run(port: int, arguments: list[str], timeout_s: float = 600.0) -> PerfTestResult:
    """Run PerfTest against a node on loopback."""
    uri = f"amqp://guest:guest@127.0.0.1:{port}/%2f"
    command = ["java", "-cp", f"{jars()}/*", "com.rabbitmq.perf.PerfTest", "-h", uri, *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rates = {kind: float(rate) for kind, rate in _RATE.findall(done.stdout)}
    if not rates:
        raise PerfTestFailed(
            f"PerfTest gave no averages:\n{done.stdout[-400:]}{done.stderr[-400:]}"
        )
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return PerfTestResult(rates.get("sending", 0.0), rates.get("receiving", 0.0), cpu_s)
