"""The servers that keep quorum queues, as `cluster_status` shows them behind the front-end's own sections.

Owns no state. RabbitMQ's sections stay as they are: its nodes are front-ends here, and these servers are none.
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def cluster_sections(kept: Row) -> list[tuple[str, list[str]]]:
    """(title, lines) of the document that /api/burrowmq/cluster gives."""
    servers = [_server_line(row) for row in kept["servers"]]
    return [
        ("Connection to the Quorum Queue Servers", _link_lines(kept["link"])),
        ("Quorum Queue Servers", servers or ["(none)"]),
        ("Quorum Queues", _queue_lines(kept["queues"])),
        ("Definitions", _definition_lines(kept["link"].get("definitions"))),
        ("Classic Queues", _home_lines(kept["link"].get("classic_queues"))),
    ]


def _link_lines(link: Row) -> list[str]:
    return [
        _link_line(link),
        *(f"Refused by the servers: {text}" for text in link.get("refused", ())),
    ]


def _link_line(link: Row) -> str:
    if link["state"] == "connected":
        where = f"connected to {link['server']} ({link['address']}) since {link['since']}"
    else:
        why = f": {link['reason']}" if link["reason"] else ""
        where = f"unreachable since {link['since']}{why}"
    return f"{where}, connections made: {link['connections']}"


def _home_lines(homes: Row | None) -> list[str]:
    if homes is None:
        return ["(not known)"]
    return [
        f"At this front-end, with reply consumers: {homes['here']}",
        f"At other front-ends: {homes['elsewhere']}",
    ]


def _definition_lines(shared: Row | None) -> list[str]:
    if shared is None:
        return ["(not shared)"]
    return [
        f"Shared with other front-ends: {shared['shared']}",
        f"Changes that wait for the servers: {shared['waiting']}",
        f"State: {shared['state']}",
        *(f"At this front-end alone: {row['reason']}" for row in shared.get("here_alone", ())),
    ]


def _server_line(row: Row) -> str:
    name = row["name"] or "(unknown)"
    address = f" ({row['address']})" if row["address"] else ""
    version = f", nats-server {row['version']}" if row["version"] else ""
    state = "up" if row["is_up"] else f"down: {row['reason']}"
    return (
        f"Server: {name}{address}, {state}{version},"
        f" leads {row['queues_led']} and keeps {row['queues_kept']} queues"
    )


def _queue_lines(sums: Row) -> list[str]:
    streams = f" ({sums['streams']} of them streams)" if sums["streams"] else ""
    return [
        f"Total: {sums['total']}{streams}",
        f"With minimum online quorum: {sums['with_minimum_quorum']}",
        f"Without quorum: {sums['without_quorum']}",
    ]
