"""The two brokers of a differential run, and its last line: scenarios run, equal, accepted, different."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.differential.broker import Place
from tests.differential.catalogue import all_scenarios, is_apart
from tests.differential.compare import Accepted, read_accepted
from tests.differential.runner import RUNNER, Runner
from tests.support.broker_process import BURROWCTL, BrokerProcess
from tests.support.ports import free_port
from tests.support.rabbitmq_node import PROGRAMS, RabbitNode, free_node_port, is_installed

TABLE = Path(__file__).parent / "accepted.toml"
MISSING = (
    "differential: not run. RabbitMQ is not on this machine; Debian and Ubuntu have it: "
    "apt-get install rabbitmq-server (the node that the package starts is not used and may be disabled)"
)
# Statistics every second instead of every five, so that a scenario can wait for them.
STATISTICS = [
    "collect_statistics_interval = 500",
    *(
        f"management.sample_retention_policies.{kind}.minute = 1"
        for kind in ("global", "basic", "detailed")
    ),
]
# What takes half an hour or a gigabyte to meet, made small enough to be met in a test.
# The timeout has to outlast the commands of every other scenario there, on a busy machine too.
SMALL_LIMITS = {"consumer_timeout": "20000", "max_message_size": "100000"}
TICK_MS = 500
EXCHANGE_TYPES = [
    f"rabbitmq_{name}"
    for name in (
        "consistent_hash_exchange",
        "random_exchange",
        "sharding",
        "recent_history_exchange",
    )
]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the totals."""
    runner = config.stash.get(RUNNER, None)
    if runner is None:
        return
    verdicts = runner.verdicts
    count = Counter(each.word for each in verdicts.values())
    terminalreporter.write_sep("-", "differential")
    terminalreporter.write_line(
        f"scenarios run {len(verdicts)}, equal {count['equal']}, accepted {count['accepted']}, "
        f"different {count['different']}"
    )


@pytest.fixture(scope="session")
def accepted() -> list[Accepted]:
    """Return the table of accepted differences."""
    return read_accepted(TABLE)


@pytest.fixture(scope="session")
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitNode]:
    """Yield a private RabbitMQ node; without the program nothing of this folder runs."""
    with _rabbit(tmp_path_factory.mktemp("rabbit")) as node:
        yield node


@pytest.fixture(scope="session")
def places(
    rabbit: RabbitNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Place, Place]]:
    """Yield where RabbitMQ and BurrowMQ are."""
    with _ours(tmp_path_factory.mktemp("ours") / "data") as node:
        yield _places(rabbit, node)


@pytest.fixture(scope="session")
def places_apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Place]]:
    """Yield two more nodes, with small limits, for scenarios that change the whole node."""
    with (
        # A node dies with the thread that started it, and the runner's threads end before the nodes are stopped.
        ThreadPoolExecutor(1) as starter,
        _rabbit(tmp_path_factory.mktemp("rabbit-apart"), SMALL_LIMITS) as theirs,
        _ours(tmp_path_factory.mktemp("ours-apart") / "data", SMALL_LIMITS) as ours,
    ):

        def tick_fast() -> None:
            theirs.ctl("eval", f"application:set_env(rabbit, channel_tick_interval, {TICK_MS}).")

        def restart_theirs() -> None:
            theirs.ctl("stop_app")
            theirs.ctl("start_app")
            tick_fast()

        def restart_ours() -> None:
            assert ours.stop() == 0
            starter.submit(ours.start).result()

        tick_fast()
        there, here = _places(theirs, ours)
        yield replace(there, restart=restart_theirs), replace(here, restart=restart_ours)


@contextlib.contextmanager
def _rabbit(directory: Path, settings: Mapping[str, str] = {}) -> Iterator[RabbitNode]:
    if not is_installed():
        pytest.exit(MISSING, returncode=1)
    lines = [*STATISTICS, *(f"{key} = {value}" for key, value in settings.items())]
    node = RabbitNode(
        directory,
        free_node_port(),
        management_port=free_port(),
        config_lines=lines,
        plugins=("rabbitmq_shovel", "rabbitmq_shovel_management", *EXCHANGE_TYPES),
    )
    node.start()
    try:
        yield node
    finally:
        node.stop()


@contextlib.contextmanager
def _ours(directory: Path, settings: Mapping[str, str] = {}) -> Iterator[BrokerProcess]:
    """A node of ours, which must end as it should."""
    node = BrokerProcess(directory, settings)
    node.start()
    try:
        yield node
        log = node.log_of_this_start()
        assert node.is_alive, log[-4000:]
        assert node.stop() == 0
        assert "Traceback" not in log, log[-4000:]
    finally:
        node.kill()


def _places(theirs: RabbitNode, ours: BrokerProcess) -> tuple[Place, Place]:
    assert theirs.management_port is not None
    return (
        Place(
            product="RabbitMQ",
            amqp_port=theirs.amqp_port,
            http_port=theirs.management_port,
            command=[str(PROGRAMS / "rabbitmqctl")],
            environment=theirs.environment,
        ),
        Place(
            product="BurrowMQ",
            amqp_port=ours.amqp_port,
            http_port=ours.management_port,
            command=[str(BURROWCTL)],
            environment=os.environ | {"BURROWMQ_DATA_DIR": str(ours.data_dir)},
        ),
    )


@pytest.fixture(scope="session")
def runner(
    places: tuple[Place, Place], accepted: list[Accepted], request: pytest.FixtureRequest
) -> Iterator[Runner]:
    """Yield what runs scenarios; the summary asks it for the totals."""
    scenarios = all_scenarios()
    asked = {
        item.callspec.params.get("name")
        for item in request.session.items
        if hasattr(item, "callspec")
    }
    apart = any(is_apart(scenario) for name, scenario in scenarios.items() if name in asked)
    found = Runner(
        places, scenarios, accepted, request.getfixturevalue("places_apart") if apart else None
    )
    request.config.stash[RUNNER] = found
    yield found
    found.close()
