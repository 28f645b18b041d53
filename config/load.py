"""File, environment and command line, read into one NodeConfig or one ConfigError with everything that is wrong.

Later wins: RabbitMQ's default, rabbitmq.conf, its conf.d/*.conf in name order, the environment variables of
RabbitMQ's launcher, `--set`, `--data-dir`. An unknown key is an error with the nearest names; a key that
RabbitMQ has and this broker does not act on is a warning. Called once, by `broker.__main__`.

Invariants: the environment is an argument and is never read otherwise; nothing is written; every problem of
every source is reported together. Source: RabbitMQ's configuration guide and rabbit_env.erl.
"""

from __future__ import annotations

import argparse
import difflib
import glob
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from burrowmq.config import compose, sysctl, tls, units
from burrowmq.config.compose import COMPOSED
from burrowmq.config.errors import ConfigError, Problem
from burrowmq.config.known import has_effect, is_known
from burrowmq.config.option import Option
from burrowmq.config.schema import NodeConfig, plain_options
from burrowmq.config.sysctl import Setting
from burrowmq.config.units import Reader

# Variables of RabbitMQ's launcher that stand for one key each.
ENVIRONMENT_KEYS = {
    "RABBITMQ_NODENAME": "nodename",
    "RABBITMQ_DEFAULT_USER": "default_user",
    "RABBITMQ_DEFAULT_PASS": "default_pass",
    "RABBITMQ_DEFAULT_VHOST": "default_vhost",
    "RABBITMQ_LOG_BASE": "log.dir",
    "BURROWMQ_DATA_DIR": "data_dir",
    "RABBITMQ_MNESIA_DIR": "data_dir",
}
# These two make a listener when no key does (`compose` reads them); here they are only checked.
ENVIRONMENT_READERS: Mapping[str, Reader[object]] = {
    "RABBITMQ_NODE_PORT": units.port,
    "RABBITMQ_NODE_IP_ADDRESS": units.host,
}
IGNORED_ENVIRONMENT = ("RABBITMQ_ADVANCED_CONFIG_FILE", "RABBITMQ_CONF_ENV_FILE")
COMMAND_LINE = "--set"
_SUGGESTIONS = 3
_ALL_KEYS = " (docs/configuration.md and rabbitmq.conf.example list all)"

Values = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A usable configuration and what the operator should hear about it."""

    config: NodeConfig
    warnings: tuple[str, ...]
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """The command line of burrowmq-server, parsed but not checked."""

    config_path: str | None
    data_dir: str | None
    overrides: tuple[tuple[str, str], ...]


def parse_argv(argv: Sequence[str], version: str = "") -> Invocation:
    """Return what the arguments after the program's name say; exits with status 2 on bad ones, 0 after --help."""
    parser = argparse.ArgumentParser(
        prog="burrowmq-server",
        description="An AMQP 0-9-1 broker that behaves as RabbitMQ 3.13 with classic queues."
        " Runs in the foreground and logs to standard error.",
        epilog="Without a configuration: AMQP 5672, management 15672, metrics 15692, on this machine only, user and"
        " password guest. SIGTERM or `burrowctl shutdown` stops it. Exit status: 0 stopped cleanly,"
        " 2 wrong arguments, 78 bad configuration, 1 cannot start or cannot close its store.",
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
) -> Loaded:
    """Return the configuration made of all sources.

    Raises: ConfigError with every problem found; a missing file counts as one when it was named.
    """
    reading = _Reading()
    path = path or environ.get("RABBITMQ_CONFIG_FILE") or None
    if path is not None:
        reading.read_files(path, environ)
    reading.read_environment(environ)
    for key, value in overrides:
        reading.take(Setting(key, value, COMMAND_LINE, 0))
    if data_dir is not None:
        reading.take(Setting("data_dir", data_dir, "--data-dir", 0))
    config = compose.node_config(reading.values, environ)
    if not reading.problems:
        reading.try_tls(config)
    if reading.problems:
        raise ConfigError(tuple(reading.problems))
    return Loaded(config=config, warnings=tuple(reading.warnings), files=tuple(reading.files))


class _Reading:
    """The values and the problems collected so far."""

    def __init__(self) -> None:
        self.values: Values = {}
        self.problems: list[Problem] = []
        self.warnings: list[str] = []
        self.files: list[str] = []
        self._settings: dict[str, Setting] = {}
        self._options = {option.name: option for _, _, option in plain_options()}
        self._options.update((option.name, option) for option in COMPOSED)
        self._wild = tuple(
            (re.compile(re.sub(r"\\\$[a-z]+", "[^.]+", re.escape(name))), option)
            for name, option in self._options.items()
            if "$" in name
        )

    def read_files(self, path: str, environ: Mapping[str, str]) -> None:
        """Read the named file (`.conf` may be left out) and then its conf.d."""
        if not os.path.isfile(path) and os.path.isfile(f"{path}.conf"):
            path = f"{path}.conf"
        more = environ.get("RABBITMQ_CONFIG_FILES") or os.path.join(os.path.dirname(path), "conf.d")
        names = os.path.join(more, "*.conf") if os.path.isdir(more) else more
        for name in (path, *sorted(glob.glob(names))):
            self._read_file(name)

    def _read_file(self, name: str) -> None:
        try:
            with open(name, encoding="utf-8") as file:
                content = file.read()
        except OSError as error:
            self._refuse(Setting("", "", name, 0), f"cannot be read: {error.strerror}")
            return
        except UnicodeDecodeError as error:
            self._refuse(Setting("", "", name, 0), f"is not UTF-8 text at byte {error.start}")
            return
        self.files.append(os.path.abspath(name))
        settings, problems = sysctl.parse(content, name)
        before = len(self.problems)
        self.problems += problems
        lines: dict[str, int] = {}
        for setting in settings:
            if setting.key in lines:
                earlier = f"line {lines[setting.key]}"
                self._warn(setting, f"{setting.key} is set again, {earlier} has no effect")
            lines[setting.key] = setting.line
            self.take(setting)
        self.problems[before:] = sorted(self.problems[before:], key=lambda problem: problem.line)

    def read_environment(self, environ: Mapping[str, str]) -> None:
        """Take the launcher's variables as settings of the keys that they stand for."""
        for variable, key in ENVIRONMENT_KEYS.items():
            if environ.get(variable):
                self.take(Setting(key, environ[variable], variable, 0))
        for variable, read in ENVIRONMENT_READERS.items():
            try:
                if environ.get(variable):
                    read(environ[variable])
            except ValueError as error:
                self._refuse(Setting("", "", variable, 0), str(error))
        self.warnings += [
            f"{name} has no effect here" for name in IGNORED_ENVIRONMENT if environ.get(name)
        ]

    def take(self, setting: Setting) -> None:
        """Read one setting's value, or note what is wrong with it; the last one of a key wins."""
        option = self._find(setting.key)
        if option is None:
            self._unknown(setting)
            return
        try:
            value = option.read(setting.value)
        except ValueError as error:
            self._refuse(setting, str(error))
            return
        if has_effect(option.name, setting.value):
            self.values[setting.key] = value
            self._settings[setting.key] = setting
        else:
            self._warn(setting, f"{setting.key} = {setting.value} has no effect yet")

    def try_tls(self, config: NodeConfig) -> None:
        """Make the context of every TLS listener once: files that cannot be used are errors of their keys."""
        for prefix, endpoints, options, listener in (
            ("ssl_options", config.tls_listeners, config.tls, "listeners.ssl."),
            ("management.ssl", config.management.tls_listeners, config.management.tls, ""),
            ("prometheus.ssl", config.prometheus.tls_listeners, config.prometheus.tls, ""),
        ):
            if not endpoints:
                continue
            try:
                tls.make_context(options)
            except tls.BadTls as error:
                self._refuse(
                    self._to_blame(f"{prefix}.{error.key}", listener or f"{prefix}.port"),
                    error.reason,
                )
            else:
                self.warnings += tls.open_keys(options)

    def _to_blame(self, key: str, listener: str) -> Setting:
        """The setting of a key; when it is missing, that of the listener that needs it, as a place to look at."""
        for name, setting in self._settings.items():
            if name == key or name.startswith(f"{key}."):
                return setting
        where = next(
            (each for name, each in self._settings.items() if name.startswith(listener)), None
        )
        return Setting(key, "", *(("", 0) if where is None else (where.source, where.line)))

    def _find(self, key: str) -> Option | None:
        found = self._options.get(key)
        if found is not None:
            return None if "$" in key else found
        return next((each for form, each in self._wild if form.fullmatch(key)), None)

    def _unknown(self, setting: Setting) -> None:
        if is_known(setting.key):
            self._warn(setting, f"{setting.key} is a RabbitMQ setting that has no effect here")
            return
        nearest = difflib.get_close_matches(setting.key, self._options, n=_SUGGESTIONS, cutoff=0.6)
        # No guess for a name that is near nothing: `foo` is not a mistyped `log.console`.
        reason = "there is no setting with that name"
        self._refuse(setting, reason if nearest else f"{reason}{_ALL_KEYS}", tuple(nearest))

    def _warn(self, setting: Setting, text: str) -> None:
        place = f"{setting.source}:{setting.line}" if setting.line else setting.source
        self.warnings.append(f"{place}: {text}")

    def _refuse(self, setting: Setting, reason: str, nearest: tuple[str, ...] = ()) -> None:
        self.problems.append(
            Problem(
                source=setting.source,
                line=setting.line,
                key=setting.key,
                reason=reason,
                nearest=nearest,
            )
        )
