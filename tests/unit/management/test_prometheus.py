"""The metrics pages over HTTP."""

from __future__ import annotations

import pytest

from tests.support.served import Served, request


@pytest.mark.parametrize(
    "path", ["/metrics", "/metrics/per-object", "/metrics/detailed?family=queue_metrics"]
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
    packed = request(port, "GET", "/metrics", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
