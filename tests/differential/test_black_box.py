"""Proves the black-box tests themselves: they must pass on RabbitMQ, version differences marked.

Runs the integration and conformance tests in a pytest of their own against the private node.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.differential.runner import RUNNER
from tests.support.broker_process import ROOT
from tests.support.rabbitmq_node import RabbitNode

pytestmark = [
    pytest.mark.differential,
    pytest.mark.needs_server,
    pytest.mark.long,
    pytest.mark.timeout(900),
]


def test_rabbitmq_passes_the_black_box_tests(
    rabbit: RabbitNode, request: pytest.FixtureRequest
) -> None:
    if runner := request.config.stash.get(RUNNER, None):
        runner.settle()  # these tests list and change what scenarios in the background have
    tests = ["tests/integration", "tests/conformance"]
    chosen = ["-m", "not differential and not long", "-p", "no:cacheprovider"]
    outside = {
        "BURROWMQ_TEST_URL": f"amqp://127.0.0.1:{rabbit.amqp_port}",
        "BURROWMQ_TEST_PRODUCT": "rabbitmq",
        "BURROWMQ_TEST_CTL": str(rabbit.directory / "ctl"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *chosen, *tests],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
        env=os.environ | outside,
    )
    assert done.returncode == 0, done.stdout[-8000:]
