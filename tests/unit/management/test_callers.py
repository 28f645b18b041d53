"""burrowmq.management.callers: wrong passwords over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from aiohttp.test_utils import make_mocked_request

from burrowmq.broker.rules.failed_logins import FailedLoginLimits, FailedLogins
from burrowmq.config.schema import LoginConfig
from burrowmq.management import callers
from burrowmq.management.aio import web
from burrowmq.management.answers.reply import ApiError, LoginRequired
from burrowmq.management.callers import Callers
from tests.support.bench.node import NodeBench
from tests.support.served import Served, serving

LIMIT = 3


class Clock:
    """Seconds as the test says."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watched(tmp_path: Path, clock: Clock) -> Iterator[Served]:
    def fill(bench: NodeBench) -> None:
        limits = FailedLoginLimits(limit=LIMIT, leak_per_s=0.5)
        bench.node.auth._failed_logins = FailedLogins(limits, clock)
        bench.node.auth.set_password("bob", "x")
        bench.node.auth.set_tags("bob", ("management",))

    with serving(tmp_path / "data", fill) as running:
        yield running


@pytest.mark.parametrize("name", ["guest", "nobody"])
def test_too_many_wrong_passwords_are_a_429(watched: Served, clock: Clock, name: str) -> None:
    for _ in range(LIMIT):
        assert watched.api("GET", "/api/whoami", login=f"{name}:wrong").status == 401
    for password in ("wrong", "guest"):
        answer = watched.api("GET", "/api/whoami", login=f"{name}:{password}")
        assert (answer.status, answer.headers["retry-after"]) == (429, "2")
        assert answer.body == {
            "error": "too_many_failed_logins",
            "reason": "too many failed logins from 127.0.0.1, try again in 2 s",
        }
    assert watched.api("GET", "/api/whoami", login="bob:x").status == 200
    assert watched.ctl("list_users").code == 0
    assert len(watched.bench.observer.named("login_refused")) == LIMIT + 2
    clock.now_s += 2
    assert watched.api("GET", "/api/whoami").status == 200


def test_who_has_gone_before_his_password_is_looked_at_is_not_refused(watched: Served) -> None:
    """A socket that was reset has no address any more: it is none of another machine, which guest may not come from."""
    login = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
    request = make_mocked_request("GET", "/api/whoami", headers=login)
    assert request.remote is None
    with pytest.raises(LoginRequired):
        asyncio.run(Callers(watched.bench.host).caller(request))
    assert not watched.bench.observer.named("login_refused")


def test_a_right_password_in_between_forgives_the_slips(watched: Served) -> None:
    for _ in range(3):
        assert watched.api("GET", "/api/whoami", login="guest:wrong").status == 401
        assert watched.api("GET", "/api/whoami", login="guest:wrong").status == 401
        assert watched.api("GET", "/api/whoami").status == 200


def test_an_answer_to_a_wrong_password_takes_its_time(tmp_path: Path) -> None:
    with serving(tmp_path / "data", login=LoginConfig(failed_delay_ms=150)) as served:
        began = time.monotonic()
        assert served.api("GET", "/api/whoami", login="nobody:x").status == 401
        assert time.monotonic() - began >= 0.15


class Asked:
    """A request from afar."""

    remote = "203.0.113.5"


def refusal_of(bench: NodeBench, name: str, password: str) -> ApiError:
    asked, answer = cast("web.Request", Asked()), web.Response()
    with pytest.raises(ApiError) as refused:
        asyncio.run(Callers(bench.host).log_in(asked, answer, name, password))
    assert not answer.cookies
    return refused.value


def test_guest_from_afar_is_told_why(bench: NodeBench) -> None:
    refused = refusal_of(bench, "guest", "guest")
    assert (refused.status, refused.reason) == (401, "User can only log in via localhost")
    assert refusal_of(bench, "guest", "wrong").reason == "Login failed"


def test_waiting_answers_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "WAITING_MAX", 0)
    with NodeBench(tmp_path / "data", login=LoginConfig(failed_delay_ms=60_000)) as bench:
        assert refusal_of(bench, "guest", "wrong").status == 401
