"""The two brokers of a differential run, and its last line: scenarios run, equal, accepted, different."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.broker import Place
from tests.differential.catalogue import all_scenarios
from tests.differential.compare import Accepted, read_accepted
from tests.differential.runner import Runner
from tests.support.broker_process import BURROWCTL, BrokerProcess, free_port
from tests.support.rabbitmq_node import PROGRAMS, RabbitNode, is_installed

TABLE = Path(__file__).parent / "accepted.toml"
MISSING = (
    "differential: not run. RabbitMQ is not on this machine; Debian and Ubuntu have it: "
    "apt-get install rabbitmq-server (the node that the package starts is not used and may be disabled)"
)
RUNNER = pytest.StashKey[Runner]()
# Statistics every second instead of every five, so that a scenario can wait for them.
STATISTICS = [
    "collect_statistics_interval = 500",
    *(
        f"management.sample_retention_policies.{kind}.minute = 1"
        for kind in ("global", "basic", "detailed")
    ),
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
    if not is_installed():
        pytest.exit(MISSING, returncode=1)
    node = RabbitNode(
        tmp_path_factory.mktemp("rabbit"),
        free_port(),
        management_port=free_port(),
        config_lines=STATISTICS,
    )
    node.start()
    yield node
    node.stop()


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Yield a node of ours, which must end as it should."""
    node = BrokerProcess(tmp_path_factory.mktemp("ours") / "data")
    node.start()
    try:
        yield node
        log = node.log_of_this_start()
        assert node.is_alive, log[-4000:]
        assert node.stop() == 0
        assert "Traceback" not in log, log[-4000:]
    finally:
        node.kill()


@pytest.fixture(scope="session")
def places(rabbit: RabbitNode, ours: BrokerProcess) -> tuple[Place, Place]:
    """Return where RabbitMQ and BurrowMQ are."""
    assert rabbit.management_port is not None
    return (
        Place(
            product="RabbitMQ",
            amqp_port=rabbit.amqp_port,
            http_port=rabbit.management_port,
            command=[str(PROGRAMS / "rabbitmqctl")],
            environment=rabbit.environment,
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
    places: tuple[Place, Place], accepted: list[Accepted], pytestconfig: pytest.Config
) -> Iterator[Runner]:
    """Yield what runs scenarios; the summary asks it for the totals."""
    found = Runner(places, all_scenarios(), accepted)
    pytestconfig.stash[RUNNER] = found
    yield found
    found.close()
