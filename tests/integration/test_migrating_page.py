"""Covers: docs/migrating.md. Each burrowctl command on the page is run, in order, between two nodes of ours."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.broker_process import BURROWCTL
from tests.support.migrating_page import commands
from tests.support.two_nodes import Two, drained, publish

pytestmark = [pytest.mark.needs_server, pytest.mark.slow]


def test_every_command_of_the_page_does_what_it_says(tmp_path: Path) -> None:
    two = Two(tmp_path)
    try:
        publish(two.there, "orders.1", b"1", b"2")
        publish(two.there, "others", b"3")
        (tmp_path / "definitions.json").write_text(json.dumps({"queues": []}))
        run = commands("burrowctl")
        assert len(run) == 8
        for told in run:
            line = told.replace("old-broker:15672", f"127.0.0.1:{two.there.management_port}")
            words = shlex.split(line.replace("old-broker", f"127.0.0.1:{two.there.amqp_port}"))[1:]
            done = subprocess.run(
                [str(BURROWCTL), "--data-dir", str(two.ours.data_dir), *words],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, (line, done)
        assert [body for _, _, body in drained(two.ours, "orders.1")] == [b"1", b"2"]
        assert [body for _, _, body in drained(two.ours, "others")] == [b"3"]
        assert drained(two.there, "orders.1") == []
    finally:
        two.close()
