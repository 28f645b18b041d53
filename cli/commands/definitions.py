"""Definitions to a file and back.

Owns no state. `-` is standard output or input; the export then is the document alone, without banner or line end.
"""

from __future__ import annotations

import json
import os
import sys
from urllib.parse import urlencode

from burrowmq.cli.client import Refused
from burrowmq.cli.errors import DATAERR, OK, bad_argument, failure
from burrowmq.cli.invocation import Invocation

STARTED = (
    "Successfully started definition import. This process is asynchronous and can take some time."
)


def _check_format(invocation: Invocation) -> None:
    """Raises: CliError 65, as RabbitMQ's does for a word that it does not know."""
    chosen = invocation.values.get("format", "json")
    if chosen.lower() != "json":
        raise bad_argument(
            f"Bad argument: Format should be json, not {chosen}"
            " (erlang, RabbitMQ's other one, is not read or written here)"
        )


def export_definitions(invocation: Invocation) -> int:
    """export_definitions FILE, or - for standard output."""
    _check_format(invocation)
    target = invocation.args[0]
    if target != "-":
        invocation.banner(f'Exporting definitions in JSON to a file at "{target}" ...')
    document = json.dumps(
        invocation.node.get("/api/definitions"),
        ensure_ascii=False,
        separators=(",", ":"),
        sort_keys=True,
    )
    if target == "-":
        sys.stdout.write(document)
        return OK
    try:
        with open(target, "w", encoding="utf-8") as file:
            file.write(document)
    except OSError as error:
        raise bad_argument(
            f"Bad argument: File {target} cannot be written: {error.strerror}"
        ) from error
    return OK


def import_definitions(invocation: Invocation) -> int:
    """import_definitions FILE, or - or nothing for standard input. It is done when the command returns."""
    _check_format(invocation)
    source = invocation.args[0] if invocation.args else "-"
    mirrored_as = invocation.choice("mirrored-as", "classic", "quorum")
    if source == "-":
        invocation.banner("Importing definitions in JSON from standard input ...")
        text = sys.stdin.read()
    else:
        if not os.path.exists(source):
            raise bad_argument(f"Bad argument: File {source} does not exist")
        invocation.banner(f'Importing definitions in JSON from a file at "{source}" ...')
        with open(source, encoding="utf-8") as file:
            text = file.read()
    try:
        document = json.loads(text)
    except ValueError as error:
        raise failure(
            f"Failed to deserialise input (format: JSON) (error: {error})", DATAERR
        ) from error
    path = "/api/definitions"
    if mirrored_as is not None:
        path += "?" + urlencode({"mirrored_as": mirrored_as})
    try:
        invocation.node.request("POST", path, document)
    except Refused as refused:
        raise failure(refused.reason) from refused
    invocation.banner(STARTED)
    return OK
