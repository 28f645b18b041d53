"""Proves the black-box tests themselves: they must pass on RabbitMQ, version differences marked.

Runs the integration and conformance tests in a pytest of their own against a private node.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.broker_process import ROOT, free_port
from tests.support.rabbitmq_node import RabbitNode, is_installed


@pytest.mark.differential
@pytest.mark.skipif(not is_installed(), reason="rabbitmq-server is not installed")
def test_rabbitmq_passes_the_black_box_tests(tmp_path: Path) -> None:
    node = RabbitNode(tmp_path, free_port())
    node.start()
    try:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-m",
                "not differential and not long",
                "tests/integration",
                "tests/conformance",
            ],
            cwd=ROOT,
            text=True,
            capture_output=True,
            check=False,
            env=os.environ
            | {
                "BURROWMQ_TEST_URL": f"amqp://127.0.0.1:{node.amqp_port}",
                "BURROWMQ_TEST_PRODUCT": "rabbitmq",
                "BURROWMQ_TEST_CTL": str(tmp_path / "ctl"),
            },
        )
    finally:
        node.stop()
    assert done.returncode == 0, done.stdout[-8000:]
