"""A real Prometheus beside a real node: pages lint clean, every query of dashboards and alerts finds something."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any, Self

import pika
import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.die_with_parent import dying
from tests.support.ports import free_port

from .queries import ALERTS, DASHBOARDS, names, of_alerts, of_dashboard
from .test_files import succeed, tool

pytestmark = [pytest.mark.long, pytest.mark.needs_server]

DETAILED = (
    "/metrics/detailed?family=queue_coarse_metrics&family=queue_consumer_count"
    "&family=queue_delivery_metrics"
)
TIMEOUT_S = 60.0


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    # A cluster that is not there has its series all the same.
    settings = {"cluster.urls": f"nats://127.0.0.1:{free_port()}"}
    found = BrokerProcess(tmp_path_factory.mktemp("node") / "data", settings=settings)
    found.start()
    yield found
    found.close()


@pytest.fixture(scope="module")
def prometheus(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program, folder, port = tool("prometheus"), tmp_path_factory.mktemp("prometheus"), free_port()
    text = ALERTS.with_name("prometheus.yml").read_text()
    text = text.replace("burrowmq:15692", f"127.0.0.1:{broker.prometheus_port}")
    text = text.replace("15s", "1s").replace("30s", "1s")
    (folder / "prometheus.yml").write_text(text)
    (folder / "alerts.yml").write_text(ALERTS.read_text())
    command = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(dying(command), stdout=log, stderr=log)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(30)


def ask(server: str, query: str) -> list[dict[str, Any]]:
    """Return what an instant query finds; fail when Prometheus refuses it."""
    url = f"{server}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    answer = json.loads(page(url))
    assert answer["status"] == "success"
    return list(answer["data"]["result"])


class Traffic:
    """A publisher and a consumer: messages with and without a route, acknowledged, given back, dead-lettered, kept."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = self.channel = self.connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("orders", durable=True)
        channel.queue_declare("kept")
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "kept"}
        channel.queue_declare("short", arguments={"x-max-length": 1} | dead)
        channel.basic_qos(prefetch_count=10)
        channel.basic_consume("orders", self.consume)

    def consume(self, channel: Any, method: Any, _: object, __: bytes) -> None:
        if method.redelivered:
            channel.basic_ack(method.delivery_tag)
        else:
            channel.basic_nack(method.delivery_tag)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def step(self) -> None:
        """A quarter of a second's worth."""
        for key in ("orders", "kept", "short", "nowhere"):
            self.channel.basic_publish("", key, b"body", pika.BasicProperties(delivery_mode=2))
        self.connection.process_data_events(0.25)


def test_every_query_finds_something(broker: BrokerProcess, prometheus: str) -> None:
    instance = f"127.0.0.1:{broker.prometheus_port}"
    wanted = [
        (f"{path.stem}: {title}", query)
        for path in DASHBOARDS
        for title, query in of_dashboard(path, instance)
    ]
    alerts = of_alerts()
    read = {name for query in alerts for name in names(query)}
    wanted += [(f"alert reads {name}", name) for name in sorted(read)]
    assert len(wanted) > 60
    with Traffic(broker) as traffic:
        missing = found_nothing(prometheus, traffic, wanted)
    assert missing == []
    for expression in alerts:
        ask(prometheus, expression)
    firing = {row["metric"]["alertname"] for row in ask(prometheus, 'ALERTS{alertstate="firing"}')}
    assert firing - {"ClusterUnreachable"} == {"BrokerRestarted"}


def found_nothing(
    server: str, traffic: Traffic, wanted: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Let messages flow until every query has found something; return those that never do."""
    missing, until = wanted, time.monotonic() + TIMEOUT_S
    while missing and time.monotonic() < until:
        for _ in range(4):
            traffic.step()
        try:
            missing = [(title, query) for title, query in missing if not ask(server, query)]
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 503:  # it is still starting
                raise
        except OSError:
            continue  # it does not listen yet
    return missing


@pytest.mark.parametrize("path", ["/metrics", "/metrics/per-object", DETAILED])
def test_promtool_finds_nothing_wrong_with_a_page(broker: BrokerProcess, path: str) -> None:
    program = tool("promtool")
    with Traffic(broker) as traffic:
        traffic.step()
        text = page(f"http://127.0.0.1:{broker.prometheus_port}{path}")
    assert "rabbitmq_" in text
    assert succeed(program, "check", "metrics", text=text) == ""
