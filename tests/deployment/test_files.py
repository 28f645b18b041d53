"""The files below deploy/ fit what they deploy: ports, paths, commands, keys, and the tools that read them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from burrowmq.cli.registry import COMMANDS
from burrowmq.config.load import load

from .queries import ALERTS, DASHBOARDS, DEPLOY, ROOT, of_alerts

DOCKERFILE = (ROOT / "Dockerfile").read_text()
KUBERNETES = (DEPLOY / "kubernetes" / "burrowmq.yaml").read_text()
COMPOSE = (DEPLOY / "compose.yaml").read_text()
UNIT = (DEPLOY / "systemd" / "burrowmq.service").read_text()
CI = [path.read_text() for path in sorted((DEPLOY / "ci").iterdir())]


def tool(name: str) -> str:
    """Return the path of a program, or skip the test by its name."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def succeed(*command: str, text: str | None = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_every_check_is_a_command() -> None:
    texts = [DOCKERFILE, KUBERNETES, *CI]
    found = [
        name
        for text in texts
        for name in re.findall(r'rabbitmq-diagnostics[", ]+-q[", ]+(\w+)', text)
    ]
    assert len(found) >= 5
    assert set(found) <= set(COMMANDS)


def test_ports_and_paths_are_the_images() -> None:
    (exposed,) = re.findall(r"^EXPOSE (.+)$", DOCKERFILE, re.MULTILINE)
    ports = set(exposed.split())
    assert set(re.findall(r"containerPort: (\d+)", KUBERNETES)) <= ports
    assert set(re.findall(r'"127\.0\.0\.1:(\d+):\1"', COMPOSE)) - {"9090", "3000"} <= ports
    for text in (KUBERNETES, COMPOSE):
        assert "/var/lib/rabbitmq" in text
        assert re.search(r"/etc/rabbitmq/conf\.d/20-\w+\.conf", text)
    assert "VOLUME /var/lib/rabbitmq\n" in DOCKERFILE
    assert "runAsUser: 999" in KUBERNETES
    assert "--uid 999" in DOCKERFILE


def test_the_configurations_load_without_a_warning(tmp_path: Path) -> None:
    block = KUBERNETES.partition("20-kubernetes.conf: |\n")[2].partition("\n---")[0]
    inside = tmp_path / "20-kubernetes.conf"
    inside.write_text(re.sub(r"(?m)^    ", "", block))
    for path in (inside, DEPLOY / "rabbitmq.conf", ROOT / "image" / "10-defaults.conf"):
        loaded = load(str(path), {}, (), None)
        assert loaded.warnings == ()
        assert any(row.source.startswith(str(path)) for row in loaded.effective)


def test_variables_of_the_images_are_read() -> None:
    named = {
        name for text in (COMPOSE, KUBERNETES, *CI) for name in re.findall(r"RABBITMQ_\w+", text)
    }
    assert named
    assert load(None, dict.fromkeys(named, "x"), (), None).warnings == ()


def test_the_unit_starts_what_is_installed_and_restarts_what_may_succeed() -> None:
    (words,) = re.findall(r"^ExecStart=(.+)$", UNIT, re.MULTILINE)
    assert words.split()[0].endswith("/burrowmq-server")
    assert "Type=notify" in UNIT
    assert "RestartPreventExitStatus=2 78" in UNIT


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    program = tool("systemd-analyze")
    unit = tmp_path / "burrowmq.service"
    unit.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", UNIT))
    assert succeed(program, "verify", "--man=no", str(unit)) == ""


def test_promtool_takes_rules_configuration_and_what_the_rules_answer() -> None:
    program = tool("promtool")
    count = len(re.findall(r"- alert:", ALERTS.read_text()))
    assert f"SUCCESS: {count} rules found" in succeed(program, "check", "rules", str(ALERTS))
    succeed(program, "check", "config", str(ALERTS.parent / "prometheus.yml"))
    tests = sorted(map(str, Path(__file__).parent.glob("alerts*_test.yml")))
    assert len(tests) == 2
    succeed(program, "test", "rules", *tests)


def test_each_rule_has_words_and_each_dashboard_queries() -> None:
    text = ALERTS.read_text()
    count = len(of_alerts())
    assert count == len(re.findall(r"- alert:", text))
    assert count == len(re.findall("summary:", text)) == len(re.findall("action:", text))
    assert len(DASHBOARDS) == 2
