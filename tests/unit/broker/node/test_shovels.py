"""The component `shovel` of a node: loaded when it is used, kept over a restart, static ones from a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from burrowmq.broker.definitions.document import ImportRefused
from burrowmq.broker.inspect.shovels import shovels as shovel_rows
from tests.support.shovel_bench import ShovelBench

STATIC: dict[str, Any] = {
    "mine": {"src-uri": "amqp://", "src-queue": "a", "dest-uri": "amqp://", "dest-queue": "b"}
}
IMPORTS = """
import sys
from pathlib import Path
from tests.support.bench.node import NodeBench
with NodeBench(Path(sys.argv[1])) as bench:
    bench.queue("a")
print(sorted(name for name in sys.modules if any(part in name for part in (
    "broker.shovel", "broker.link", "protocol.client"))))
"""


@pytest.mark.slow
def test_nothing_of_it_is_imported_before_one_is_configured(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_it_is_there_again_after_a_restart(tmp_path: Path) -> None:
    with ShovelBench(tmp_path) as world:
        world.shovel(src_queue="a", dest_queue="b")
        world.until(lambda: world.state() == "running")
        loop, host = world.bench.loop, world.bench.host
        loop.run_until_complete(host.stop_application())
        loop.run_until_complete(host.start_application())
        world.vhost = world.bench.node.vhosts["/"]
        world.until(lambda: world.state() == "running")
        world.fill("a", b"x")
        world.until(lambda: world.count("b") == 1)


def test_static_ones_are_there_as_long_as_the_node_runs(tmp_path: Path) -> None:
    file = tmp_path / "shovels.json"
    file.write_text(json.dumps(STATIC))
    with ShovelBench(tmp_path, static_shovels=str(file)) as world:
        world.until(lambda: world.count("a") == 0)
        world.fill("a", b"x")
        world.until(lambda: world.count("b") == 1)
        (row,) = shovel_rows(world.bench.node)
        assert (row["type"], row["name"], "vhost" in row) == ("static", "mine", False)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            '{"s":\n {"src-uri" 5}}',
            r"static_shovels, .*s\.json: Expecting ':' .*: line 2 column 13",
        ),
        ("[]", "no JSON object of names and shovels"),
        (
            json.dumps({"s": {**STATIC["mine"], "x": 1}}),
            "shovel s: line 1: Unrecognised terms .* in s",
        ),
        (json.dumps({"s": {**STATIC["mine"], "src-uri": "amqp:///nov"}}), "may not connect"),
        ('\n{"s": 5}', "shovel s: line 2: "),
        (
            json.dumps(
                {"a": STATIC["mine"], "s": {**STATIC["mine"], "ack-mode": "x", "src-uri": 5}},
                indent=1,
            ),
            "shovel s: line 9: src-uri should be .*; line 13: ack-mode should be one of",
        ),
    ],
)
def test_a_file_of_static_ones_that_is_wrong_ends_the_start(
    tmp_path: Path, content: str, text: str
) -> None:
    file = tmp_path / "shovels.json"
    file.write_text(content)
    with ShovelBench(tmp_path) as world:
        with pytest.raises(ImportRefused, match=text):
            world.bench.node.shovels.read_static(str(file))
        with pytest.raises(ImportRefused, match=r"none\.json: No such file"):
            world.bench.node.shovels.read_static(str(tmp_path / "none.json"))


def test_the_start_s_error_has_no_password_in_it(tmp_path: Path) -> None:
    file = tmp_path / "shovels.json"
    file.write_text(json.dumps({"s": {**STATIC["mine"], "src-uri": "amqp://u:hidden@h:x"}}))
    with ShovelBench(tmp_path) as world, pytest.raises(ImportRefused) as found:
        world.bench.node.shovels.read_static(str(file))
    assert "not a valid URI" in str(found.value)
    assert "hidden" not in str(found.value)


def test_what_is_no_uri_is_hidden_in_quotes_only(tmp_path: Path) -> None:
    file = tmp_path / "shovels.json"
    wrong = {"src-uri": "x", "src-exchange": "a", "src-queue": "q", "dest-uri": "e"}
    file.write_text(json.dumps({"s": {**STATIC["mine"], **wrong}}))
    with ShovelBench(tmp_path) as world, pytest.raises(ImportRefused) as found:
        world.bench.node.shovels.read_static(str(file))
    assert "src-exchange" in str(found.value)
    assert '"(no URI)" not a valid URI: {{unable_to_parse_uri,no_scheme},' in str(found.value)


def test_a_parameter_is_refused_before_it_is_kept(tmp_path: Path) -> None:
    with ShovelBench(tmp_path) as world:
        with pytest.raises(ValueError, match="src-uri should be list"):
            world.shovel(src_uri=5, src_queue="a")
        assert world.vhost.component("shovel") == {}
