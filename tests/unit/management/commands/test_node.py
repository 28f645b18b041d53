"""The node as a whole through the API: limits, log, name, listeners, backups, stop and start."""

from __future__ import annotations

import socket

import pytest

from burrowmq.management.answers.reply import ApiError
from burrowmq.management.commands import node as commands
from burrowmq.management.commands.node import LOG_LEVELS
from tests.support.bench.node import NodeBench


def test_the_memory_watermark_is_in_force_at_once(bench: NodeBench) -> None:
    limits = bench.node.monitor.limits
    bench.perform(lambda: commands.set_memory_watermark(bench.node, 0.25, 0))
    assert limits.memory_bytes == 250_000_000
    assert not bench.node.alarms.active
    bench.perform(lambda: commands.set_memory_watermark(bench.node, None, 1000))
    assert limits.memory_bytes == 1000
    assert bench.node.alarms.active == {"memory"}


def test_the_limit_of_free_disk_space_is_in_force_at_once(bench: NodeBench) -> None:
    limits = bench.node.monitor.limits
    bench.perform(lambda: commands.set_disk_free_limit(bench.node, None, 1000))
    assert (limits.disk_free_bytes, bench.node.alarms.active) == (1000, set())
    bench.perform(lambda: commands.set_disk_free_limit(bench.node, 20.0, 0))
    assert limits.disk_free_bytes == 20 * limits.memory_total_bytes
    assert bench.node.alarms.active == {"disk"}


def test_the_clusters_name_is_kept(bench: NodeBench) -> None:
    bench.perform(lambda: commands.set_cluster_name(bench.node, "west"))
    assert bench.node.cluster_name == "west"
    kept = [row[2] for row in bench.store.load() if "cluster_name" in row[1]]
    assert [row["value"] for row in kept] == ["west"]


@pytest.mark.parametrize("level", LOG_LEVELS)
def test_a_log_level_is_set(bench: NodeBench, level: str) -> None:
    assert commands.set_log_level(bench.node, level)
    assert bench.observer.named("set_level") == [(level,)]


def test_an_unknown_log_level_is_not_set(bench: NodeBench) -> None:
    assert not commands.set_log_level(bench.node, "loud")
    assert bench.observer.named("set_level") == []


def is_listening(bench: NodeBench) -> bool:
    try:
        socket.create_connection(("127.0.0.1", bench.port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def test_listeners_close_and_open_again_and_connections_stay(bench: NodeBench) -> None:
    async def accept(is_accepting: bool) -> None:
        await commands.accept_connections(bench.node, is_accepting)

    bench.loop.run_until_complete(accept(False))
    assert not is_listening(bench)
    assert len(bench.node.sessions) == 1
    bench.loop.run_until_complete(accept(True))
    assert is_listening(bench)


def test_a_port_that_was_taken_meanwhile_is_said(bench: NodeBench) -> None:
    async def accept(is_accepting: bool) -> None:
        await commands.accept_connections(bench.node, is_accepting)

    bench.loop.run_until_complete(accept(False))
    with (
        socket.create_server(("127.0.0.1", bench.port)),
        pytest.raises(ApiError, match="400 bad_request: cannot listen: "),
    ):
        bench.loop.run_until_complete(accept(True))


def test_a_backup_says_what_it_is_of(bench: NodeBench) -> None:
    assert commands.backup_refusal(bench.node, "/backups/one") == ""
    job = bench.perform(lambda: commands.start_backup(bench.node, "/backups/one"))
    assert (job.state, job.reason) == ("done", "")
    assert (job.labels["product"], job.labels["node"]) == ("BurrowMQ", "rabbit@test")
    assert "/backups/one" in commands.backup_refusal(bench.node, "/backups/one")


def test_a_backup_that_cannot_be_now_is_refused(bench: NodeBench) -> None:
    bench.node.engine.failure = "disk on fire"
    with pytest.raises(ApiError, match="400 bad_request: the store has failed"):
        commands.start_backup(bench.node, "/backups/one")
    bench.node.engine.failure = None


def test_the_application_stops_and_starts_again(bench: NodeBench) -> None:
    bench.lose_clients()
    bench.loop.run_until_complete(commands.stop_application(bench.host))
    assert bench.host.running is None
    bench.loop.run_until_complete(commands.stop_application(bench.host))
    bench.loop.run_until_complete(commands.start_application(bench.host))
    assert "lazy" in bench.node.vhosts["/"].queues


def test_why_it_cannot_start_is_said(bench: NodeBench) -> None:
    bench.lose_clients()
    bench.loop.run_until_complete(commands.stop_application(bench.host))
    with (
        socket.create_server(("127.0.0.1", bench.port)),
        pytest.raises(ApiError, match=r"500 cannot_start: .*cannot listen"),
    ):
        bench.loop.run_until_complete(commands.start_application(bench.host))
    bench.loop.run_until_complete(commands.start_application(bench.host))
    assert bench.host.running is not None


def test_a_stop_of_the_process_is_asked_for(bench: NodeBench) -> None:
    commands.stop_process(bench.host)
    bench.loop.run_until_complete(bench.host.wait_for_stop_request())
