"""What the files below deploy/ ask Prometheus: queries of the dashboards, expressions of the alerts.

Owns no state. Called by the tests of this folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
_VARIABLE = re.compile(r"label_values\((.+), \w+\)\Z")
_NAME = re.compile(r"\b(?:rabbitmq|burrowmq)_\w+\b")


def of_dashboard(path: Path, instance: str) -> Iterator[tuple[str, str]]:
    """Yield each panel's title and query, and each variable's, for one instance and all of its queues."""
    board = json.loads(path.read_text())
    for variable in board["templating"]["list"]:
        match = _VARIABLE.match(variable["query"]["query"])
        assert match, variable
        yield f"${variable['name']}", _filled(match[1], instance)
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], _filled(target["expr"], instance)


def of_alerts() -> list[str]:
    """Return the expressions of the rules, each on one line."""
    lines = ALERTS.read_text().split("\n")
    found, is_open = [], False
    for line in lines:
        if line.startswith("        expr:"):
            found.append(line.partition(":")[2].strip().removeprefix(">-"))
            is_open = True
        elif is_open and line.startswith("          "):
            found[-1] += f" {line.strip()}"
        else:
            is_open = False
    return [each.strip() for each in found]


def names(query: str) -> set[str]:
    """Return the metrics that a query reads."""
    return set(_NAME.findall(query))


def _filled(query: str, instance: str) -> str:
    for name, value in (
        ("$instance", instance),
        ("$vhost", ".*"),
        ("$queue", ".*"),
        ("$__rate_interval", "10s"),
    ):
        query = query.replace(name, value)
    return query
