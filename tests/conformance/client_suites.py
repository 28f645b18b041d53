"""Runs other projects' client suites, each against a fresh node, and compares with RabbitMQ's counts.

State: a temporary folder per suite. Callers: `tests/conformance/run.sh [names]`.
Table: expected.toml next to this file has what RabbitMQ 3.10.8 reached and our known differences,
each with its reason. With BURROWMQ_TEST_URL set that broker is used instead of fresh nodes.
Suites come from the package registries; drivers/ holds ours for clients that ship no tests.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

from tests.support.broker_process import BrokerProcess

from .go_suites import GO
from .jvm_suites import JVM
from .node_suites import NODE
from .packaged_suites import PACKAGED
from .place import (
    DRIVERS,
    HERE,
    NOT_DOWNLOADED,
    Count,
    Place,
    count_lines,
    count_rust,
    run_pytest,
)
from .python_suites import PYTHON
from .spring_suites import SPRING
from .tool_suites import TOOLS

EXPECTED = tomllib.loads((HERE / "expected.toml").read_text())
# The package index's own container launcher is replaced by one that hands back the node's address.
FIXTURES = DRIVERS / "container_stub.py"


def py_amqp(place: Place) -> Count:
    """py-amqp's integration tests, but for TLS."""
    python = place.environment_with(
        "amqp==5.4.2", "pytest", "pytest-timeout", "pytest-rerunfailures"
    )
    root = place.source_of(python, "amqp", "5.4.2")
    return run_pytest(
        place, python, root, "-k", "not tls", "t/integration", **_kombu_address(place)
    )


def kombu(place: Place) -> Count:
    """kombu's integration tests over py-amqp."""
    python = place.environment_with(
        "kombu==5.7.0", "amqp==5.4.2", "pytest", "pytest-timeout", "pytest-rerunfailures"
    )
    root = place.source_of(python, "kombu", "5.7.0")
    return run_pytest(place, python, root, "t/integration/test_py_amqp.py", **_kombu_address(place))


def _kombu_address(place: Place) -> dict[str, str]:
    return {"RABBITMQ_HOST": place.host, "RABBITMQ_5672_TCP": str(place.port)}


def _with_container_stub(
    place: Place, name: str, version: str, leave_out: tuple[str, ...]
) -> Count:
    python = place.environment_with(
        f"{name}=={version}",
        "pytest",
        "pytest-timeout",
        "aiomisc",
        "aiomisc-pytest",
        "pytest-rst",
        "markdown-pytest",
        "shortuuid",
    )
    root = place.source_of(python, name, version)
    shutil.copy(FIXTURES, root / "tests" / "docker_client.py")
    shutil.copy(FIXTURES, place.folder / "container_stub.py")
    chosen = " and ".join(f"not {one}" for one in leave_out)
    return run_pytest(
        place,
        python,
        root,
        "-p",
        "container_stub",
        "-o",
        "log_cli=false",
        "-k",
        chosen,
        "tests",
        AMQP_URL=f"amqp://guest:guest@{place.host}:{place.port}/",
        PYTHONPATH=str(place.folder),
    )


def aiormq(place: Place) -> Count:
    """aiormq's tests; left out: TLS and two races that RabbitMQ fails now and then too."""
    return _with_container_stub(
        place,
        "aiormq",
        "7.2.4",
        (
            "amqps",
            "auth_external",
            "ssl_",
            "test_closing_waiter_cancellation",
            "test_connection_close_during_publish_drain",
        ),
    )


def aio_pika(place: Place) -> Count:
    """aio-pika's tests; left out: TLS, broker restarts by container, memory leaks, one race."""
    return _with_container_stub(
        place,
        "aio-pika",
        "10.2.1",
        (
            "amqps",
            "AMQPS",
            "restore_topology_and_consumers",
            "broker_restart",
            "memory_leak",
            "test_create_channels_during_reconnect",
        ),
    )


def celery(place: Place) -> Count:
    """Celery's usual paths with a worker of its own."""
    python = place.environment_with("celery==5.7.0", "kombu==5.7.0", "amqp==5.4.2")
    driver = str(DRIVERS / "celery_paths.py")
    return count_lines(place.run(python, driver, timeout_s=300, BROKER_URL=place.url))


def amqplib(place: Place) -> Count:
    """amqplib for Node: declare, publish, confirm, return, dead-letter, reply-to."""
    place.run("npm", "init", "-y", timeout_s=60)
    place.run(
        "npm", "install", "--silent", "--no-audit", "--no-fund", "amqplib@2.3.1", timeout_s=300
    )
    shutil.copy(DRIVERS / "amqplib_paths.cjs", place.folder)
    return count_lines(place.run("node", "amqplib_paths.cjs", timeout_s=120, BROKER_URL=place.url))


def amqp_tools(place: Place) -> Count:
    """rabbitmq-c's command line tools."""
    driver = str(DRIVERS / "amqp_tools.sh")
    output = place.run(
        "bash",
        driver,
        place.url,
        place.host,
        str(place.port),
        timeout_s=180,
    )
    return count_lines(output)


def perf_test(place: Place) -> Count:
    """RabbitMQ's PerfTest (Java client): the lazy guide's command and ten more workloads."""
    driver = str(DRIVERS / "perf_test.sh")
    return count_lines(place.run("bash", driver, place.url, timeout_s=1500))


def lapin(place: Place) -> Count:
    """lapin's tests (Rust); left out: two races that a busy RabbitMQ loses too."""
    root = place.crate_source("lapin", "4.12.3")
    if root is None:
        return NOT_DOWNLOADED
    output = place.run(
        "cargo",
        "test",
        "--locked",
        "--no-fail-fast",
        "--",
        "--skip",
        "acks_racing_a_broker_channel_close_all_complete",
        "--skip",
        "concurrent_acks_cut_short_by_a_broker_channel_close_report_its_error",
        cwd=root,
        timeout_s=2400,
        AMQP_ADDR=place.url,
    )
    return count_rust(output)


def amqp091_go(place: Place) -> Count:
    """amqp091-go's tests, but for TLS and what calls rabbitmqctl; its connections are closed over HTTP."""
    root = place.go_source("github.com/rabbitmq/amqp091-go", "v1.16.0")
    if root is None:
        return NOT_DOWNLOADED
    for name in ("recovery_test.go", "internal/utils/http.go"):
        cases = root / name
        cases.write_text(cases.read_text().replace("15672", str(place.management_port)))
    output = place.run(
        "go", "test", "-vet=off", "-tags", "integration", "-count=1", "-timeout", "900s", "-v", ".",
        cwd=root, timeout_s=1200, AMQP_URL=place.url,
    )  # fmt: skip
    ended = re.findall(r"^--- (PASS|FAIL|SKIP): (\S+)", output, re.MULTILINE)
    if not ended:
        return Count(failed=1, failures=("nothing was built: " + output[-300:],))
    passed, skipped = (sum(how == one for how, _ in ended) for one in ("PASS", "SKIP"))
    failures = tuple(name for how, name in ended if how == "FAIL")
    return Count(passed, len(failures), skipped, failures)


SUITES: dict[str, tuple[Callable[[Place], Count], tuple[str, ...]]] = {
    "py-amqp": (py_amqp, ()),
    "kombu": (kombu, ()),
    "aiormq": (aiormq, ()),
    "aio-pika": (aio_pika, ()),
    "celery": (celery, ()),
    "amqplib": (amqplib, ("npm", "node")),
    "amqp-tools": (amqp_tools, ("amqp-publish",)),
    "perf-test": (perf_test, ("mvn", "java")),
    "lapin": (lapin, ("cargo",)),
    "amqp091-go": (amqp091_go, ("go",)),
    **NODE,
    **GO,
    **PYTHON,
    **TOOLS,
    **JVM,
    **PACKAGED,
    **SPRING,
}


def compare(name: str, count: Count) -> list[str]:
    """Return what differs from the table and is not explained there."""
    differences = [one for one in EXPECTED.get("difference", []) if one["suite"] == name]
    known = {test for one in differences for test in one["tests"]}
    unknown = [test for test in count.failures if test not in known]
    wanted = EXPECTED["rabbitmq"][name]["passed"] - len(known)
    found = [f"{name}: {test}" for test in unknown]
    if count.passed < wanted:
        found.append(f"{name}: {count.passed} passed, RabbitMQ reaches {wanted}")
    return found


def run_suite(name: str) -> list[str]:
    """Run one suite on a fresh node; print its line; return unexplained differences."""
    suite, programs = SUITES[name]
    missing = [one for one in programs if shutil.which(one) is None and not Path(one).exists()]
    if missing:
        sys.stdout.write(f"{name}: not run, this machine has no {', '.join(missing)}\n")
        return []
    outside = os.environ.get("BURROWMQ_TEST_URL")
    with tempfile.TemporaryDirectory(prefix=f"suite-{name}-") as scratch:
        folder = Path(scratch)
        node = None if outside else BrokerProcess(folder / "node" / "data")
        try:
            if node is not None:
                node.start()
                place = Place(
                    folder,
                    "127.0.0.1",
                    (node.amqp_port, node.management_port, node.prometheus_port),
                )
            else:
                host, _, port = str(outside).split("@")[-1].removeprefix("amqp://").partition(":")
                management = int(os.environ.get("BURROWMQ_TEST_MANAGEMENT_PORT", "15672"))
                metrics = int(os.environ.get("BURROWMQ_TEST_PROMETHEUS_PORT", "15692"))
                ports = (int(port.split("/")[0] or 5672), management, metrics)
                place = Place(folder, host, ports)
            count = suite(place)
        finally:
            if node is not None:
                log = node.log_path.read_text(errors="replace") if node.log_path.exists() else ""
                node.kill()
        found = compare(name, count)
        if node is not None and "Traceback" in log:
            found.append(f"{name}: the broker logged {log[log.index('Traceback') :][:1500]}")
        kept = os.environ.get("BURROWMQ_SUITE_LOGS")
        if kept and (folder / "log").exists():
            Path(kept).mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / "log", Path(kept) / f"{name}.log")
    sys.stdout.write(
        f"{name}: passed {count.passed} failed {count.failed} skipped {count.skipped}"
        f" (RabbitMQ 3.10.8: {EXPECTED['rabbitmq'][name]['passed']})\n"
    )
    sys.stdout.flush()
    return found


def main() -> int:
    """Run the named suites, all when none is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*SUITES, []], default=[])
    names = parser.parse_args().names or list(SUITES)
    differences = [line for name in names for line in run_suite(name)]
    for line in differences:
        sys.stdout.write(f"DIFFERENCE {line}\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
