"""`burrowmq-store quarantine`: the damaged messages that a node has set aside, a line each, or the bytes of one.

Reads only. A running node lists them under /api/burrowmq/quarantine, and puts one back into its queue. State: none.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import Final

from burrowmq.offline.directory import StoreDirectory
from burrowmq.offline.report import shown
from burrowmq.offline.streams import Streams
from burrowmq.storage.directory import quarantine

OK, MISSING, DAMAGED = 0, 1, 1
ONLY_READS: Final = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--raw", metavar="NAME", help="write the bytes of this one to standard output"
    )


def run(directory: StoreDirectory, arguments: argparse.Namespace, streams: Streams) -> int:
    """List what is there."""
    if arguments.raw is not None:
        found = quarantine.load(directory.filesystem, directory.path, arguments.raw)
        if found is None:
            streams.errors.write(f"burrowmq-store: no message {arguments.raw} in quarantine\n")
            return MISSING
        sys.stdout.buffer.write(found[1])
        sys.stdout.buffer.flush()
        return OK
    count = unreadable = 0
    for name in quarantine.names(directory.filesystem, directory.path):
        found = quarantine.load(directory.filesystem, directory.path, name)
        if found is None:
            unreadable += 1
            line = f"{name}  DAMAGED; what it says of its message cannot be read"
        else:
            count += 1
            line = f"{name}  {_told(found[0])}"
        streams.report.write(f"{shown(line)}\n")
    streams.report.write(f"{count} messages in quarantine\n")
    return DAMAGED if unreadable else OK


def _told(about: quarantine.SetAside) -> str:
    try:
        moment = datetime.fromtimestamp(about.set_aside_at / 1000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):  # nobody checks what the file says
        when = "at some time"
    else:
        when = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        f"{when}  vhost '{about.vhost}' queue '{about.queue}' message {about.seq}:"
        f" {about.reason}, {about.size} bytes from {about.source}"
    )
