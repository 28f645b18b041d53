"""Queues and connections."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from burrowmq.cli.client import NodeClient, Refused
from tests.support.bench.client import Client
from tests.support.bench.world import publish
from tests.support.served import Served


def test_purge_and_delete(served: Served) -> None:
    assert served.ctl("purge_queue", "lazy").out == "Purging queue 'lazy' in vhost '/' ...\n"
    assert served.ctl("purge_queue", "nosuch").code == 69
    served.bench.queue()
    publish(served.bench.clients[0], "q", 2)
    output = served.ctl("delete_queue", "q", "--if-empty", "--if-unused")
    assert (
        output.out
        == "Deleting queue 'q' on vhost '/' if queue is empty and if queue is unused ...\n"
    )
    assert (output.code, output.err) == (64, "Queue is not empty\n")
    assert served.ctl("delete_queue", "q", "-e").err == "Queue is not empty\n"
    assert served.ctl("delete_queue", "orders", "--if-unused").err == "Queue is in use\n"
    assert served.ctl("delete_queue", "orders", "-u").err == "Queue is in use\n"
    output = served.ctl("delete_queue", "q")
    assert output.out.endswith("Queue was successfully deleted with 2 ready messages\n")
    output = served.ctl("delete_queue", "q")
    assert (output.code, output.err) == (64, "Error:\nQueue not found\n")


def test_a_store_that_fails_is_no_matter_of_what_was_typed(served: Served) -> None:
    plain = NodeClient.request

    def request(client: NodeClient, method: str, path: str, *rest: Any) -> Any:
        if path.endswith("/delete-queue"):
            raise Refused(503, "store_failed", "the change was not written to disk; see the log")
        return plain(client, method, path, *rest)

    with mock.patch.object(NodeClient, "request", request):
        output = served.ctl("delete_queue", "orders")
    assert (output.code, output.err) == (
        69,
        "Error:\nthe change was not written to disk; see the log\n",
    )


def closed(client: Client) -> tuple[int, str]:
    """What the client was told at the end."""
    (*_, (_, close)) = client.read()
    client.lose()
    return close.reply_code, close.reply_text


def test_close_connections(served: Served) -> None:
    (client,) = served.bench.clients
    pid = served.ctl("-s", "list_connections", "pid").out.strip()
    assert served.ctl("close_connection", pid, "go", "away").code == 64, "quotes were forgotten"
    assert served.ctl("close_connection", pid, "go away").code == 0
    assert closed(client) == (320, "CONNECTION_FORCED - go away")
    for bad in ("bad", "<0.1.2>"):
        output = served.ctl("close_connection", bad, "x")
        assert (output.code, output.err) == (69, f'Error:\n{{:invalid_pid_syntax, "{bad}"}}\n')
    # RabbitMQ 3.10.8 and 3.13: a pid that is not, or no longer, there is no error.
    for gone in (pid, "<rabbit@test.1.2.3>"):
        assert served.ctl("close_connection", gone, "x").code == 0


def test_close_all_connections(served: Served) -> None:
    clients = [*served.bench.clients, served.bench.connect()]
    none = served.ctl("close_all_connections", "-p", "v1", "x")
    assert none.out == "Closing all connections in vhost v1, reason: x...\nClosed 0 connections\n"
    output = served.ctl("close_all_connections", "-p", "v1", "--global", "bye")
    assert output.out.endswith("across all vhosts), reason: bye...\nClosed 2 connections\n")
    assert [closed(each) for each in clients] == [(320, "CONNECTION_FORCED - bye")] * 2
    client = served.bench.connect()
    delayed = served.ctl("close_all_connections", "--per-connection-delay", "1", "x")
    assert delayed.out.endswith("Closed 1 connections\n")
    assert closed(client) == (320, "CONNECTION_FORCED - x")
    client = served.bench.connect()
    hurried = served.ctl("close_all_connections", "--per-connection-delay", "-1", "z")
    assert hurried.out.endswith("Closed 1 connections\n")
    assert closed(client) == (320, "CONNECTION_FORCED - z")
    client = served.bench.connect()
    output = served.ctl("close_all_user_connections", "guest", "y")
    assert output.out == "Closing connections of user guest, reason: y...\n"
    assert closed(client) == (320, "CONNECTION_FORCED - y")


@pytest.mark.parametrize("delay", ["0", "1"])
def test_close_all_connections_is_about_one_virtual_host(served: Served, delay: str) -> None:
    (here,) = served.bench.clients
    for words in (("add_vhost", "v1"), ("set_permissions", "-p", "v1", "guest", ".*", ".*", ".*")):
        assert served.ctl(*words).code == 0
    elsewhere = served.bench.connect(vhost="v1")
    output = served.ctl("close_all_connections", "--per-connection-delay", delay, "bye")
    assert (
        output.out == "Closing all connections in vhost /, reason: bye...\nClosed 1 connections\n"
    )
    assert closed(here) == (320, "CONNECTION_FORCED - bye")
    assert elsewhere.read() == []
