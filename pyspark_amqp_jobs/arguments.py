"""What several jobs can be told on the command line.

Owns no state. Options of the sources that have no argument of their own go with `--option NAME=VALUE`.
"""

from __future__ import annotations

import argparse


class BadArguments(Exception):
    """Arguments that contradict each other."""


def pair(text: str) -> tuple[str, str]:
    """Return (name, value) of NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def add_broker(parser: argparse.ArgumentParser) -> None:
    """Which broker."""
    parser.add_argument(
        "--uri", default="amqp://localhost", help="amqp[s]://user@host/vhost, several with commas"
    )
    parser.add_argument("--password-file", metavar="FILE", help="read on the machines that connect")
    parser.add_argument("--password-env", metavar="NAME", help="a variable there with the password")
    parser.add_argument(
        "--option", metavar="NAME=VALUE", type=pair, action="append", default=[],
        help='another option of format("amqp"), such as amqp.tls.cacertfile=FILE',
    )  # fmt: skip


def broker_options(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the options of format("amqp") that name the broker."""
    found = {"amqp.uri": str(arguments.uri)}
    if arguments.password_file:
        found["amqp.passwordFile"] = arguments.password_file
    if arguments.password_env:
        found["amqp.passwordEnv"] = arguments.password_env
    return {**found, **dict(arguments.option)}


def add_input(parser: argparse.ArgumentParser, *, has_store: bool = True) -> None:
    """Where messages come from: an archive, a look at queues, or a store."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--from", dest="archive", metavar="PARQUET", help="an archive")
    group.add_argument(
        "--queue", metavar="QUEUES", help="look at queues, which keep their messages"
    )
    if has_store:
        group.add_argument("--store", metavar="DIR", help="a data directory or a backup")
        parser.add_argument("--queues", metavar="QUEUES", help="with --store: only these")
    parser.add_argument(
        "--limit",
        type=int,
        default=100_000,
        help="with --queue: look at this many of each (default 100000)",
    )
    add_broker(parser)


def add_html(parser: argparse.ArgumentParser) -> None:
    """A page beside the table."""
    parser.add_argument("--html", metavar="FILE", help="write the report as a page, too")
