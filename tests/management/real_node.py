"""A broker process asked by burrowctl, HTTP and pika."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pika

from tests.support.broker_process import BrokerProcess
from tests.support.served import request

ROOT = Path(__file__).resolve().parents[2]


def ctl(node: BrokerProcess, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run burrowctl as a process of its own."""
    command = [sys.executable, "-m", "burrowmq.cli", "--data-dir", str(node.data_dir), *argv]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=30
    )


def api(node: BrokerProcess, method: str, path: str, body: Any = None) -> Any:
    """One request as guest."""
    login = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
    return request(node.management_port, method, path, body, login)


def connect(node: BrokerProcess) -> pika.BlockingConnection:
    """One as guest."""
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.amqp_port))
