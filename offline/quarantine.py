"""`burrowmq-store quarantine`: the damaged messages that a node has set aside, a line each, or the bytes of one.

Reads only. A running node lists them under /api/burrowmq/quarantine, and puts one back into its queue. State: none.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from burrowmq.offline.directory import StoreDirectory
from burrowmq.offline.streams import Streams
from burrowmq.storage.directory import quarantine

OK, MISSING = 0, 1


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
    count = 0
    for name, about in quarantine.listing(directory.filesystem, directory.path):
        when = datetime.fromtimestamp(about.set_aside_at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        streams.report.write(
            f"{name}  {when}  vhost '{about.vhost}' queue '{about.queue}' message {about.seq}:"
            f" {about.reason}, {about.size} bytes from {about.source}\n"
        )
        count += 1
    streams.report.write(f"{count} messages in quarantine\n")
    return OK
