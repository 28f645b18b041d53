"""The metrics pages over HTTP."""

from __future__ import annotations

import asyncio
import base64
import socket
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from burrowmq.config.schema import PrometheusConfig
from burrowmq.management.prometheus import endpoint, exposition
from tests.support.served import Served, request, serving


@pytest.mark.parametrize(
    "path",
    [
        "/metrics",
        "/metrics/",
        "/metrics/default",
        "/metrics/per-object",
        "/metrics/per-object/",
        "/metrics/detailed?family=queue_metrics",
        "/metrics/detailed/?family=queue_metrics",
    ],
)
def test_pages(served: Served, path: str) -> None:
    answer = request(served.metrics_port, "GET", path)
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4"
    assert "rabbitmq_identity_info{" in answer.body


def test_refusals_and_compression(served: Served) -> None:
    port = served.metrics_port
    assert request(port, "GET", "/").status == 404
    accept = {"Accept": "application/openmetrics-text;version=1.0.0"}
    assert request(port, "GET", "/metrics", headers=accept).status == 406
    assert request(port, "HEAD", "/metrics/per-object").body == ""
    packed = request(port, "GET", "/metrics", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    plain = request(port, "GET", "/metrics", headers={"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in plain.headers


def test_scrapes_that_overlap_wait_and_who_has_gone_gets_none(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, plain = served.metrics_port, exposition.written
    began, may_go_on = threading.Event(), threading.Event()
    entered = threading.Semaphore(0)
    made: list[int] = []
    imported = endpoint.import_module

    def import_module(name: str) -> ModuleType:
        entered.release()
        return imported(name)

    async def written(families: list[exposition.Family]) -> AsyncIterator[bytes]:
        made.append(len(families))
        began.set()
        assert await asyncio.to_thread(may_go_on.wait, 10)
        async for piece in plain(families):
            yield piece

    monkeypatch.setattr(exposition, "written", written)
    monkeypatch.setattr(endpoint, "import_module", import_module)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(request, port, "GET", "/metrics/per-object")
        assert began.wait(10)
        assert entered.acquire(timeout=10)
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port)) as impatient:
                impatient.sendall(b"GET /metrics/per-object HTTP/1.1\r\nHost: h\r\n\r\n")
                assert entered.acquire(timeout=10)  # it is about to wait
        for _ in range(3):  # answers come meanwhile: the loop has seen that they went away
            accept = {"Accept": "application/openmetrics-text"}
            assert request(port, "GET", "/metrics", headers=accept).status == 406
        last = pool.submit(request, port, "GET", "/metrics/detailed?family=queue_metrics")
        may_go_on.set()
        assert first.result(10).status == last.result(10).status == 200
    assert len(made) == 2


def test_a_stopped_application_has_no_metrics(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        served.stop_application()
        assert request(served.metrics_port, "GET", "/metrics").status == 503
        assert served.ctl("start_app").code == 0
        assert request(served.metrics_port, "GET", "/metrics").status == 200


def test_metrics_may_want_a_login(tmp_path: Path) -> None:
    """prometheus.authentication.enabled: Basic, and the tag monitoring or administrator."""

    def scrape(port: int, login: str | None) -> tuple[int, str]:
        headers = {}
        if login is not None:
            token = base64.b64encode(login.encode()).decode()
            headers["Authorization"] = f"Basic {token}"
        answer = request(port, "GET", "/metrics", headers=headers)
        return answer.status, answer.headers.get("www-authenticate", "")

    with serving(tmp_path / "data", prometheus=PrometheusConfig(wants_login=True)) as served:
        for name, tags in (("scraper", "monitoring"), ("app", "management")):
            body = {"password": name, "tags": tags}
            assert served.api("PUT", f"/api/users/{name}", body).status == 201
        port = served.metrics_port
        assert scrape(port, None) == (401, 'Basic realm="RabbitMQ Prometheus"')
        assert scrape(port, "scraper:scraper")[0] == 200
        assert scrape(port, "guest:guest")[0] == 200
        assert scrape(port, "app:app")[0] == 401
        assert scrape(port, "scraper:wrong")[0] == 401
        malformed = request(port, "GET", "/metrics", headers={"Authorization": "Basic ="})
        assert malformed.status == 400
