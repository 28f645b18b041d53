"""The ports that tests get."""

from __future__ import annotations

import socket
import subprocess
import sys

from tests.support.ports import END, FIRST, PORTS_IN_BLOCK, free_port, free_ports


def test_ports_are_different_for_as_long_as_a_block_lasts_and_free() -> None:
    found = free_ports(PORTS_IN_BLOCK // 2)
    assert len(set(found)) == len(found)
    assert all(FIRST <= port < END for port in found)


def test_one_that_is_taken_is_passed_over() -> None:
    given = free_port()
    with socket.create_server(("127.0.0.1", given)):
        assert given not in free_ports(3 * PORTS_IN_BLOCK)


def test_another_process_has_others() -> None:
    program = f"from tests.support.ports import free_ports; print(*free_ports({PORTS_IN_BLOCK}))"
    mine = set(free_ports(PORTS_IN_BLOCK))
    other = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not mine & {int(port) for port in other}
