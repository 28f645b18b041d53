"""Connections that an operator finds and closes."""

from __future__ import annotations

import asyncio

from burrowmq.broker import inspect
from burrowmq.management.commands import sessions
from tests.support.bench.node import NodeBench


def test_a_session_is_found_by_its_name_and_by_the_pid_that_a_list_shows(bench: NodeBench) -> None:
    (client,) = bench.clients
    found = client.session
    assert sessions.sessions_named(bench.node, found.name) == [found]
    assert sessions.sessions_with_pid(bench.node, inspect.pid(bench.node, found)) == [found]
    assert sessions.sessions_named(bench.node, "nobody") == []
    assert sessions.sessions_with_pid(bench.node, "<rabbit@test.1.2.3>") == []


def test_it_is_closed_with_just_the_reason(bench: NodeBench) -> None:
    (client,) = bench.clients
    closing = sessions.close_sessions([client.session], "enough")
    assert bench.loop.run_until_complete(closing) == 1
    bench.perform(lambda: None)
    ((_, close),) = client.read()
    assert (close.reply_code, close.reply_text) == (320, "CONNECTION_FORCED - enough")


def test_closing_nothing_is_no_error() -> None:
    assert asyncio.run(sessions.close_sessions([], "enough")) == 0
