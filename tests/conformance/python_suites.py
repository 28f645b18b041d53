"""Suites of Python's frameworks and further clients over AMQP, each run as it is against one node.

State: none; each works in the folder of the place it is given. Callers: `client_suites`.
Where a source distribution has no tests, git takes them from the repository, at a tag. What is replaced
in a suite is the address that it has in its source, nothing else. Counts and differences: expected.toml.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.broker_process import BURROWCTL
from tests.support.patience import patient
from tests.support.ports import free_port

from .place import DRIVERS, Count, Place, count_lines, run_pytest

GITHUB = "https://github.com/"
PYTEST = ("pytest==9.1.1", "pytest-timeout==2.4.0")
CELERY = ("celery==5.7.0", "kombu==5.7.0", "amqp==5.4.2")
# Left out: what is about redis alone, long sleeps, and what fails on RabbitMQ too on a busy machine.
CELERY_CASES = (
    "not redis and not complex_canvas and not trace_log and not pool_acquire and not large_group"
)


def _repoint(files: list[Path], *changes: tuple[str, str]) -> None:
    """Replace the addresses that a suite has in its source."""
    for path in files:
        text = path.read_text()
        for old, new in changes:
            text = text.replace(old, new)
        path.write_text(text)


def pika(place: Place) -> Count:
    """pika's acceptance tests: every adapter, and through its forwarder; left out: what asks for google.com."""
    python = place.environment_with(
        "pika==1.4.4", "gevent==26.9.0", "tornado==6.6.1", "twisted==26.10.0", *PYTEST
    )
    root = place.clone_of(GITHUB + "pika/pika", "1.4.4")
    files = [
        root / "tests/base/async_test_base.py",
        root / "tests/acceptance/blocking_adapter_test.py",
    ]
    _repoint(files, ("5672", str(place.port)), ("host='localhost'", f"host='{place.host}'"))
    times = [files[0], root / "tests/misc/forward_server.py"]
    _repoint(
        times,
        ("TIMEOUT = 15", f"TIMEOUT = {patient(15)}"),
        ("TIMEOUT = 10", f"TIMEOUT = {patient(10)}"),
    )
    return run_pytest(
        place, python, root, "-o", "addopts=", "-k", "not GoogleDotCom", "tests/acceptance"
    )


def dramatiq(place: Place) -> Count:
    """Dramatiq's tests of its RabbitMQ broker: retries, .DQ and .XQ, priorities, lost connections."""
    python = place.environment_with(
        "dramatiq==2.2.0", "pika==1.4.4", "redis", "pylibmc", "pytest-benchmark", *PYTEST
    )
    root = place.clone_of(GITHUB + "Bogdanp/dramatiq", "v2.2.0")
    files = [root / "tests" / name for name in ("conftest.py", "common.py", "test_rabbitmq.py")]
    there = f'host="{place.host}", port={place.port}, '
    _repoint(
        files,
        ('host="127.0.0.1",\n', there + "\n"),
        ('host="127.0.0.1", credentials', there + "credentials"),
        ('@127.0.0.1"', f'@{place.host}:{place.port}"'),
    )
    return run_pytest(
        place,
        python,
        root,
        "-o",
        "addopts=",
        "tests/test_rabbitmq.py",
        PATH=_with_rabbitmqctl(place),
    )


def _with_rabbitmqctl(place: Place) -> str:
    """Return a PATH whose rabbitmqctl commands the node under test, for suites that call it."""
    folder = place.folder / "bin"
    folder.mkdir()
    ours = f"{BURROWCTL} --data-dir {place.folder / 'node' / 'data'}"
    script = folder / "rabbitmqctl"
    script.write_text(f'#!/bin/sh\nexec {os.environ.get("BURROWMQ_TEST_CTL", ours)} "$@"\n')
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def amqpstorm(place: Place) -> Count:
    """amqpstorm's functional tests, its management module's too; left out: TLS, its author's own addresses."""
    python = place.environment_with("amqpstorm==3.1.3", "pamqp", "requests", *PYTEST)
    root = place.clone_of(GITHUB + "eandersson/amqpstorm", "3.1.3")
    _repoint([root / "amqpstorm" / "connection.py"], ("5672", str(place.port)))
    folder = "amqpstorm/tests/functional"
    return run_pytest(
        place, python, root, "--ignore", f"{folder}/ssl", folder,
        "-k", "not ssl and not cluster_name and not inaccessible",
        AMQP_HOST=place.host, AMQP_USERNAME="guest", AMQP_PASSWORD="guest", AMQP_URI=place.url,
        AMQP_HTTP_URL=f"http://{place.host}:{place.management_port}",
    )  # fmt: skip


def taskiq(place: Place) -> Count:
    """taskiq-aio-pika's tests; left out: those of the plugin that delays messages."""
    python = place.environment_with("taskiq-aio-pika==0.6.0", "aiostream", "anyio", *PYTEST)
    root = place.clone_of(GITHUB + "taskiq-python/taskiq-aio-pika", "0.6.0")
    return run_pytest(
        place, python, root, "-o", "addopts=", "-k", "not plugin_enabled",
        "--ignore", "tests/test_delay_with_plugin.py", "tests",
        TEST_AMQP_URL=place.url,
    )  # fmt: skip


def kiwipy(place: Place) -> Count:
    """kiwipy's tests (AiiDA's): tasks, calls, broadcasts, from threads and coroutines."""
    python = place.environment_with(
        "kiwipy[rmq]==0.9.0", "pytest<8", "pytest-asyncio<0.17", "pytest-timeout", "shortuuid", "msgpack",
        "pytest-benchmark", "pytest-notebook",
    )  # fmt: skip
    root = place.clone_of(GITHUB + "aiidateam/kiwipy", "v0.9.0")
    _repoint(
        [root / "test/rmq/test_rmq_thread_communicator.py"],
        ("localhost:5672", f"{place.host}:{place.port}"),
    )
    return run_pytest(
        place, python, root, "--ignore", "test/rmq/bench", "--ignore", "test/rmq/notebooks",
        "-k", "not notebook", "test/rmq",
        KIWIPY_TEST_RMQ_URI=f"amqp://guest:guest@{place.host}:{place.port}/",
    )  # fmt: skip


def faststream(place: Place) -> Count:
    """FastStream's tests of RabbitMQ that connect to one; left out: a file that imports all other brokers' clients."""
    python = place.environment_with(
        "faststream[rabbit,cli]==0.7.4", "dirty-equals==0.11", "httpx==0.28.1", "pytest==9.0.3",
        "pytest-asyncio==1.3.0", "pytest-rerunfailures", "pytest-timeout", "freezegun", "fastapi==0.140.0",
        "pydantic-settings", "PyYAML", "email-validator", "msgspec", "uvicorn", "psutil",
        "prometheus-client", "opentelemetry-sdk",
    )  # fmt: skip
    root = place.clone_of(GITHUB + "ag2ai/faststream", "0.7.4")
    addresses = ("localhost:5672", f"{place.host}:{place.port}")
    _repoint(
        [root / f"faststream/rabbit/{name}.py" for name in ("fastapi/fastapi", "broker/broker")],
        addresses,
    )
    _repoint(
        [root / "tests/brokers/rabbit/conftest.py"],
        addresses,
        ("int = 5672", f"int = {place.port}"),
        ('"localhost"', f'"{place.host}"'),
    )
    _repoint([root / "tests/brokers/base/basic.py"], ("float = 3.0", f"float = {patient(3)}"))
    folder = "tests/brokers/rabbit"
    return run_pytest(
        place, python, root, "-o", "addopts=", "-m", "connected",
        "--ignore", f"{folder}/test_misconfigure.py", folder,
    )  # fmt: skip


def oslo_messaging(place: Place) -> Count:
    """oslo.messaging's functional tests over its rabbit driver; left out: what asks for a server of metrics."""
    python = place.environment_with(
        "oslo.messaging==18.3.1", "fixtures", "testtools", "oslotest", "stestr", "pifpaf", "eventlet",
        "testscenarios", "confluent-kafka", *PYTEST,
    )  # fmt: skip
    url = f"rabbit://guest:guest@{place.host}:{place.port}//"
    return run_pytest(
        place, python, place.folder, "-k", "not MetricsTestCase and not LoggingNotificationHandler",
        "--pyargs", "oslo_messaging.tests.functional", RPC_TRANSPORT_URL=url, NOTIFY_TRANSPORT_URL=url,
    )  # fmt: skip


@contextmanager
def _redis(place: Place) -> Iterator[int]:
    """Run a redis-server for results on a free port."""
    port = free_port()
    command = (
        "redis-server",
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
    )
    with (place.folder / "redis.log").open("ab") as log:
        server = subprocess.Popen(command, cwd=place.folder, stdout=log, stderr=log)
    try:
        _await_listener(port)
        yield port
    finally:
        server.terminate()
        server.wait(30)


def _await_listener(port: int) -> None:
    for _ in range(int(patient(100))):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise TimeoutError(f"redis-server does not listen on {port}")


def celery_integration(place: Place) -> Count:
    """Celery's integration tests of tasks, remote control and chains of groups, with a worker of their own."""
    python = place.environment_with(
        *CELERY, "redis", "cryptography", "django", "freezegun", "pydantic", "pymemcache", "pytest-celery",
        "pytest-order", "pytest-rerunfailures", "pytest-subtests", *PYTEST,
    )  # fmt: skip
    root = place.source_of(python, "celery", "5.7.0")
    files = [f"t/integration/test_{name}.py" for name in ("inspect", "tasks", "group_chains")]
    with _redis(place) as port:
        return run_pytest(
            place, python, root, "-p", "no:cacheprovider", "-k", CELERY_CASES, *files,
            TEST_BROKER=place.url, TEST_BACKEND=f"redis://127.0.0.1:{port}/0",
            REDIS_HOST="127.0.0.1", REDIS_PORT=str(port), PATH=f"{Path(python).parent}:{os.environ['PATH']}",
        )  # fmt: skip


def celery_faults(place: Place) -> Count:
    """Killed workers, closed connections, prefetch, countdowns, remote control, events, commands and beat."""
    python = place.environment_with(*CELERY)
    driver = str(DRIVERS / "celery_faults.py")
    return count_lines(
        place.run(python, driver, timeout_s=1200, BROKER_URL=place.url, BROKER_API=place.api)
    )


# Each with the programs that it needs.
PYTHON: dict[str, tuple[Callable[[Place], Count], tuple[str, ...]]] = {
    "pika": (pika, ("git",)),
    "dramatiq": (dramatiq, ("git",)),
    "amqpstorm": (amqpstorm, ("git",)),
    "taskiq": (taskiq, ("git",)),
    "kiwipy": (kiwipy, ("git",)),
    "faststream": (faststream, ("git",)),
    "oslo-messaging": (oslo_messaging, ()),
    "celery-integration": (celery_integration, ("redis-server",)),
    "celery-faults": (celery_faults, ()),
}
