"""The fixtures, in a project of their own as pytest runs it; and that they cost nothing where nobody uses them.

Covers: embedded/plugin.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import pika, pytest

def publish(url, body):
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_declare("q", arguments={"x-message-ttl": 60000})
        channel.basic_publish("", "q", body)

@pytest.mark.parametrize("number", range(4))
def test_each_has_a_virtual_host_of_its_own(burrowmq, number):
    publish(burrowmq.url, b"%d" % number)
    assert [each.body for each in burrowmq.wait_for("q", 1)] == [b"%d" % number]
    burrowmq.clock.advance(60)
    assert burrowmq.messages("q") == []
    burrowmq.block()  # ends with the test

def test_a_broker_that_was_killed_is_there_for_the_next(burrowmq):
    burrowmq.broker.kill()

def test_the_next(burrowmq, burrowmq_broker):
    publish(burrowmq.url, b"x")
    assert burrowmq.broker is burrowmq_broker
    assert burrowmq_broker.user == "mine"
"""
CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def burrowmq_options():
    return {"config": {"default_user": "mine"}}
"""
UNUSED = """
import sys

def test_nothing_of_the_server_is_loaded(request):
    assert "burrowmq.embedded.plugin" in sys.modules
    others = {name for name in sys.modules if name.startswith(("burrowmq", "uvloop", "structlog"))}
    assert others <= {"burrowmq", "burrowmq.embedded", "burrowmq.embedded.plugin"}
"""


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (project / "pytest.ini").write_text("[pytest]\n", encoding="ascii")
    # With xdist it would take one of the numbered directories that this suite's runs share, too, and at its end remove
    # all but the last three: of a run that left many files that took more than a minute.
    base = f"--basetemp={project / 'base'}"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", base, *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_suite_with_the_fixtures(
    tmp_path: Path, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(shared))
    (tmp_path / "test_project.py").write_text(SUITE, encoding="ascii")
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="ascii")
    done = run(tmp_path, "-p", "no:randomly", *workers)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout
    assert not list(shared.iterdir()), "directories of other runs are none of its business"


@pytest.mark.slow
def test_a_suite_without_them_pays_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(UNUSED, encoding="ascii")
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
