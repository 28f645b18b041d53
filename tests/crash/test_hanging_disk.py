"""A disk that answers nothing any more, under a node that has to end: the process ends in its time all the same."""

from __future__ import annotations

import contextlib
import http.client
import signal
import sys
from pathlib import Path

import pika

from tests.crash.faulty_disk import FaultyNode, fill, wait_for

HANGING = """
import runpy, sys, threading
from burrowmq.storage.directory.quarantine import Quarantine
from burrowmq.storage.files.filesystem import OsFile
from burrowmq.storage.disk.threads import ThreadedBackend
def hang(*_):
    print("HANGS", file=sys.stderr, flush=True)
    threading.Event().wait()
{patch}
runpy.run_module("tests.support.faulty_node", run_name="__main__")
"""
NOTHING_IS_WRITTEN = [
    {"operation": operation, "part": "/data/", "error": "EIO"}
    for operation in ("pwrite", "fdatasync", "create", "fsync_dir")
]


def hanging_node(directory: Path, patch: str) -> FaultyNode:
    (directory / "faults").write_text("[]")
    found = FaultyNode(
        directory / "data",
        environment={"FAULTS": str(directory / "faults")},
        program=(sys.executable, "-c", HANGING.format(patch=patch)),
    )
    found.start()
    return found


def until_it_hangs(node: FaultyNode) -> None:
    assert wait_for(lambda: "HANGS" in node.log_of_this_start(), 10)


def test_a_failed_store_ends_the_process_while_a_request_waits_for_the_disk(tmp_path: Path) -> None:
    """Its thread is the executor's: the interpreter waits for it after the limit has been called off."""
    node = hanging_node(tmp_path, "Quarantine.listing = hang")
    request = http.client.HTTPConnection("127.0.0.1", node.management_port)
    try:
        secret = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
        request.request("GET", "/api/burrowmq/quarantine", headers=secret)
        until_it_hangs(node)
        request.close()  # who asked has no patience; the thread waits on
        node.refuse(*NOTHING_IS_WRITTEN)
        with contextlib.suppress(pika.exceptions.AMQPError):
            fill(pika.BlockingConnection(pika.URLParameters(node.url)), "q", 1)
        assert wait_for(lambda: "store_failed" in node.log_of_this_start(), 10)
        assert node.running().wait(5) == 74
    finally:
        node.kill()


def test_a_store_that_fails_during_a_stop_ends_the_process(tmp_path: Path) -> None:
    """The disk answers a read no more; then, while the node stops, it refuses a write."""
    node = hanging_node(
        tmp_path,
        "pread = OsFile.pread\n"
        "OsFile.pread = lambda self, *a: (hang if threading.current_thread().name == 'reader' else pread)"
        "(*((self, *a)))",
    )
    try:
        connection = pika.BlockingConnection(pika.URLParameters(node.url))
        fill(connection, "q", 50, 5000)
        channel = connection.channel()
        channel.basic_consume("q", lambda *_: None)
        until_it_hangs(node)
        node.running().send_signal(signal.SIGTERM)
        node.refuse(*NOTHING_IS_WRITTEN)
        assert node.running().wait(12) != 0
    finally:
        node.kill()


def test_a_store_that_fails_in_the_last_second_of_the_http_api_ends_the_process(
    tmp_path: Path,
) -> None:
    """A stop waits for the requests that are under way, before the application begins to stop."""
    node = hanging_node(tmp_path, "Quarantine.listing = hang")
    request = http.client.HTTPConnection("127.0.0.1", node.management_port)
    try:
        connection = pika.BlockingConnection(pika.URLParameters(node.url))
        fill(connection, "q", 1)
        secret = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
        request.request("GET", "/api/burrowmq/quarantine", headers=secret)
        until_it_hangs(node)
        node.refuse(*NOTHING_IS_WRITTEN)
        node.running().send_signal(signal.SIGTERM)
        with contextlib.suppress(pika.exceptions.AMQPError):
            fill(connection, "q", 1)
        assert wait_for(lambda: "store_failed" in node.log_of_this_start(), 10)
        assert node.running().wait(5) != 0
    finally:
        request.close()
        node.kill()
