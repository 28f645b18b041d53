"""Guessed passwords on a real node: AMQP and HTTP fill the same buckets."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable

import pika
import pytest
from pika.exceptions import ProbableAuthenticationError

from tests.support.broker_process import BrokerProcess
from tests.support.served import Answer, request

pytestmark = [pytest.mark.slow, pytest.mark.needs_server]

DELAY_S = 0.2


@pytest.fixture
def node(own_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    return own_broker(
        failed_logins__limit="3",
        failed_logins__forgotten_per_minute="1",
        failed_logins__delay=f"{DELAY_S * 1000:.0f}",
    )


def log_in(node: BrokerProcess, password: str) -> None:
    credentials = pika.PlainCredentials("guest", password)
    parameters = pika.ConnectionParameters("127.0.0.1", node.amqp_port, credentials=credentials)
    pika.BlockingConnection(parameters).close()


def ask(node: BrokerProcess, password: str) -> Answer:
    login = b64encode(f"guest:{password}".encode()).decode()
    headers = {"Authorization": f"Basic {login}"}
    return request(node.management_port, "GET", "/api/whoami", headers=headers)


def test_amqp_and_http_count_the_same_guesses(node: BrokerProcess) -> None:
    log_in(node, "guest")
    for guess in (log_in, log_in, ask):
        began = time.monotonic()
        if guess is ask:
            assert ask(node, "wrong").status == 401
        else:
            with pytest.raises(ProbableAuthenticationError, match="Login was refused"):
                log_in(node, "wrong")
        assert time.monotonic() - began >= DELAY_S
    answer = ask(node, "guest")
    assert answer.status == 429
    assert 50 < int(answer.headers["retry-after"]) <= 60
    with pytest.raises(ProbableAuthenticationError, match="Login was refused"):
        log_in(node, "guest")
    assert (
        "user 'guest' - too many failed logins from 127.0.0.1, next in "
        in node.log_path.read_text()
    )
    assert "guest" in node.ctl("list_users")
