"""Queues and connections."""

from __future__ import annotations

from tests.support.fake_node import add_queue
from tests.support.served import Served


def test_purge_and_delete(served: Served) -> None:
    assert served.ctl("purge_queue", "lazy").out == "Purging queue 'lazy' in vhost '/' ...\n"
    assert served.ctl("purge_queue", "nosuch").code == 69
    add_queue(served.node, "q", ready_count=2)
    output = served.ctl("delete_queue", "q", "--if-empty", "--if-unused")
    assert (
        output.out
        == "Deleting queue 'q' on vhost '/' if queue is empty and if queue is unused ...\n"
    )
    assert (output.code, output.err) == (64, "Queue is not empty\n")
    assert served.ctl("delete_queue", "orders", "--if-unused").err == "Queue is in use\n"
    output = served.ctl("delete_queue", "q")
    assert output.out.endswith("Queue was successfully deleted with 2 ready messages\n")
    output = served.ctl("delete_queue", "q")
    assert (output.code, output.err) == (64, "Error:\nQueue not found\n")


def test_close_connections(served: Served) -> None:
    (session,) = served.node.sessions
    pid = served.ctl("-s", "list_connections", "pid").out.strip()
    assert served.ctl("close_connection", pid, "go away").code == 0
    assert session.closed_with == ["go away"]
    assert served.ctl("close_connection", pid, "go", "away").code == 64, "quotes were forgotten"
    for bad in ("bad", "<0.1.2>"):
        output = served.ctl("close_connection", bad, "x")
        assert (output.code, output.err) == (69, f'Error:\n{{:invalid_pid_syntax, "{bad}"}}\n')
    # RabbitMQ 3.10.8 and 3.13: a pid that is not, or no longer, there is no error.
    assert served.ctl("close_connection", "<rabbit@test.1.2.3>", "x").code == 0
    output = served.ctl("close_all_connections", "bye")
    assert output.out.endswith("across all vhosts), reason: bye...\nClosed 1 connections\n")
    # --vhost wins over --global, unlike in RabbitMQ, which closes everything.
    assert served.ctl("close_all_connections", "-p", "v1", "--global", "x").out.endswith(
        "Closed 0 connections\n"
    )
    assert served.ctl("close_all_connections", "--per-connection-delay", "1", "x").out.endswith(
        "Closed 1 connections\n"
    )
    output = served.ctl("close_all_user_connections", "guest", "x")
    assert output.out == "Closing connections of user guest, reason: x...\n"
