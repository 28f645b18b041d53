"""burrowctl scrub: how far the scrubber is, and with --start a pass that begins now.

Owns no state. The node does the work and goes on with it when the command has ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from burrowmq.cli import terms
from burrowmq.cli.errors import OK
from burrowmq.cli.invocation import Invocation

PATH = "/api/burrowmq/scrub"
MIB = 1 << 20


def scrub(invocation: Invocation) -> int:
    """Scrub."""
    is_start = "start" in invocation.flags
    node = invocation.node
    what = "Starting" if is_start else "Asking for"
    invocation.banner(f"{what} the check of everything that is stored on node {node.node_name} ...")
    found = node.request("POST", PATH, {}) if is_start else node.get(PATH)
    if invocation.is_machine_readable:
        invocation.say(terms.compact(found))
        return OK
    invocation.say("\n".join(_lines(found, is_start=is_start)))
    return OK


def _lines(found: dict[str, Any], *, is_start: bool) -> Iterator[str]:
    if found["running"]:
        done, total = found["bytes_done"], max(found["bytes_total"], 1)
        yield (
            f"A pass is under way since {_moment(found['began_at'])}: {100 * done // total} %,"
            f" {done // MIB} of {total // MIB} MiB, {found['bytes_per_s'] // 1024} KiB a second"
        )
        if found["position"]:
            yield f"It is at {found['position']}; damaged messages so far: {found['found']}"
    elif is_start:
        yield "A pass begins"
    elif found["next_at"]:
        yield f"The next pass begins at {_moment(found['next_at'])}"
    elif not found["period_s"]:
        yield "No pass is under way, and store_scrub_period is 0: one begins when somebody asks"
    last, complete = found["last"], found["last_complete"]
    if last is not None:
        yield f"Last pass: {_pass(last)}"
    if complete is not None and complete != last:
        yield f"Last complete pass: {_pass(complete)}"
    elif complete is None:
        yield "No pass has read everything yet"
    if found["unread_queues"]:
        yield f"Queues that cannot be read: {found['unread_queues']}"
    for file in found["damaged_files"]:
        yield f"Damaged: {file['path']}: {file['what']}"
    if found["quarantined"]:
        yield f"Damaged messages in quarantine: {found['quarantined']}"


def _pass(one: dict[str, Any]) -> str:
    took_s = max(one["ended_ms"] - one["began_ms"], 0) // 1000
    unread = f", {one['unread']} queues could not be read" if one["unread"] else ""
    return (
        f"ended {_moment(one['ended_ms'])} after {took_s} s, {one['bytes'] // MIB} MiB,"
        f" {one['found']} damaged messages{unread}"
    )


def _moment(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(milliseconds / 1000))
