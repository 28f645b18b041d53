"""File, environment and command line, read into one NodeConfig or one ConfigError with everything that is wrong.

Later wins: RabbitMQ's default, rabbitmq.conf, its conf.d/*.conf in name order, the environment variables of
RabbitMQ's launcher (rabbitmq-env.conf, then the real ones), `--set`, `--data-dir`. An unknown key is an error with the
nearest names; a key that RabbitMQ has and this broker does not act on is a warning. Called once, by `broker.__main__`.

Invariants: the environment is an argument and is never read otherwise; nothing is written; every problem of
every source is reported together. Source: RabbitMQ's configuration guide and rabbit_env.erl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from burrowmq.config import environment
from burrowmq.config.given import Loaded, made_of
from burrowmq.config.reading import CheckPattern, Reading
from burrowmq.config.sources import Sources
from burrowmq.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """The command line of burrowmq-server, parsed but not checked."""

    config_path: str | None
    data_dir: str | None
    overrides: tuple[tuple[str, str], ...]


def parse_argv(argv: Sequence[str], version: str = "") -> Invocation:
    """Return what the arguments after the program's name say; exits with status 2 on bad ones, 0 after --help."""
    import argparse  # noqa: PLC0415 - an embedded broker has no command line

    parser = argparse.ArgumentParser(
        prog="burrowmq-server",
        description="An AMQP 0-9-1 broker that behaves as RabbitMQ 3.13 with classic queues."
        " Runs in the foreground and logs to standard error.",
        epilog="Without a configuration: AMQP 5672, management 15672, metrics 15692, on this machine only, user and"
        " password guest. SIGTERM or `burrowctl shutdown` stops it. Exit status: 0 stopped cleanly,"
        " 1 cannot start or cannot close its store, 2 wrong arguments, 74 its disk failed, 78 bad configuration.",
    )
    parser.add_argument("--config", metavar="FILE", help="rabbitmq.conf to read")
    parser.add_argument(
        "--data-dir", metavar="DIR", help="directory that holds all data (default: ./data)"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="any key of rabbitmq.conf; overrides the file",
    )
    parser.add_argument("--version", action="version", version=f"burrowmq {version}".strip())
    arguments = parser.parse_args(argv)
    overrides = []
    for pair in arguments.set:
        key, equals, value = pair.partition("=")
        if not equals:
            parser.error(f"--set {pair}: expected key=value")
        overrides.append((key.strip(), value.strip()))
    return Invocation(
        config_path=arguments.config, data_dir=arguments.data_dir, overrides=tuple(overrides)
    )


def load(
    path: str | None,
    environ: Mapping[str, str],
    overrides: Sequence[tuple[str, str]],
    data_dir: str | None,
    check_pattern: CheckPattern | None = None,
) -> Loaded:
    """Return the configuration made of all sources; `check_pattern` raises ValueError for what is none to the node.

    Raises: ConfigError with every problem found; a missing file counts as one when it was named.
    """
    reading = Reading(check_pattern)
    found = environment.gather(environ, path or environ.get("RABBITMQ_CONFIG_FILE"))
    sources = Sources(reading, found)
    path = path or found.values.get("RABBITMQ_CONFIG_FILE") or None
    sources.read_files(path)
    sources.read_beside(path)
    sources.read_environment()
    return made_of(reading, overrides, data_dir, found.values)
