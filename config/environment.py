"""The environment of RabbitMQ's launcher and image: which key each variable stands for, and rabbitmq-env.conf.

`gather` takes the `NAME=value` lines of rabbitmq-env.conf (RabbitMQ's launcher has a shell run it; here nothing runs),
the real environment wins over it. Called by `load`, before any file. No state; the environment is an argument.

Source: RabbitMQ's configuration guide, rabbit_env.erl, docker-entrypoint.sh of the official image.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from burrowmq.config import effective, units
from burrowmq.config.setting import Setting
from burrowmq.config.units import Reader
from burrowmq.records import dataclass

PREFIX = "RABBITMQ_"

# Variables that stand for one key each.
KEYS = {
    "RABBITMQ_NODENAME": "nodename",
    "RABBITMQ_DEFAULT_USER": "default_user",
    "RABBITMQ_DEFAULT_PASS": "default_pass",
    "RABBITMQ_DEFAULT_VHOST": "default_vhost",
    "RABBITMQ_LOG_BASE": "log.dir",
    "BURROWMQ_DATA_DIR": "data_dir",
    "RABBITMQ_MNESIA_DIR": "data_dir",
}
# These make a listener when no key does (`compose` reads them); here they are only checked.
READERS: Mapping[str, Reader[object]] = {
    "RABBITMQ_NODE_PORT": units.port,
    "RABBITMQ_NODE_IP_ADDRESS": units.host,
    "RABBITMQ_USE_LONGNAME": units.flag,
    "BURROWMQ_BIND": units.choice("*"),
}
# Read elsewhere in this package, or nothing to speak of: the image and the scripts of RabbitMQ set them.
READ_ELSEWHERE = frozenset(
    f"{PREFIX}{name}"
    for name in [
        "CONFIG_FILE",
        "CONFIG_FILES",
        "ADVANCED_CONFIG_FILE",
        "CONF_ENV_FILE",
        "MNESIA_BASE",
        "LOGS",
        "LOG",
        "ENABLED_PLUGINS_FILE",
        "ENABLED_PLUGINS",
        "PID_FILE",
        "HOME",
        "VERSION",
        "DATA_DIR",
        "SCRIPTS_DIR",
        "SYS_PREFIX",
    ]
)
IDLE = {
    f"{PREFIX}{name}": reason
    for reason, names in (
        (
            "nodes do not talk to each other, so there is no cookie and no port for it",
            "ERLANG_COOKIE DIST_PORT CTL_DIST_PORT_MIN CTL_DIST_PORT_MAX",
        ),
        (
            "there is no Erlang runtime",
            (
                "SERVER_ERL_ARGS SERVER_ADDITIONAL_ERL_ARGS SERVER_START_ARGS CTL_ERL_ARGS ALLOC_ARGS"
                " IO_THREAD_POOL_SIZE MAX_NUMBER_OF_PROCESSES MAX_NUMBER_OF_ATOMS DISTRIBUTION_BUFFER_SIZE"
                " SCHEDULER_BIND_TYPE HIPE_COMPILE BOOT_MODULE SERVER_CODE_PATH"
            ),
        ),
        (
            "nothing is installed or unpacked at a start",
            "PLUGINS_DIR PLUGINS_EXPAND_DIR SCHEMA_DIR GENERATED_CONFIG_DIR",
        ),
        ("all features are on", "FEATURE_FLAGS FEATURE_FLAGS_FILE"),
        (
            "classic queues are below data_dir, others are kept by the servers of cluster.urls",
            "STREAM_DIR QUORUM_DIR",
        ),
        ("the product keeps its name", "PRODUCT_NAME PRODUCT_VERSION MOTD_FILE"),
        ("the file goes when the process does", "KEEP_PID_FILE_ON_EXIT"),
        ("the log has it", "UPGRADE_LOG SASL_LOGS"),
        ("write the key vm_memory_high_watermark.relative", "VM_MEMORY_HIGH_WATERMARK"),
        (
            "write the key of the same name, ssl_options.* or management.ssl.*",
            " ".join(
                f"{part}_{name}"
                for part in ("SSL", "MANAGEMENT_SSL")
                for name in [
                    "CACERTFILE",
                    "CERTFILE",
                    "KEYFILE",
                    "DEPTH",
                    "VERIFY",
                    "FAIL_IF_NO_PEER_CERT",
                ]
            ),
        ),
        (
            "write the value itself into the variable without _FILE, or default_pass into a file below conf.d",
            "DEFAULT_USER_FILE DEFAULT_PASS_FILE DEFAULT_VHOST_FILE",
        ),
    )
    for name in names.split()
}
_EVERY = (*KEYS, *READERS, *sorted(READ_ELSEWHERE), *IDLE)
_EVERY_OF_OURS = (
    *(name for name in _EVERY if name.startswith("BURROWMQ_")),
    "BURROWMQ_PURE",
    "BURROWMQ_VERIFY",
    "BURROWMQ_MANAGEMENT_URL",
)
_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z")
_SHELL = re.compile(r"[$`]|(?<!\\)[;&|<>()]")
_SIZE_MAX = 1 << 20


@dataclass(slots=True)
class Environment:
    """Variables with where each was written; `problems` and `warnings` say what of rabbitmq-env.conf was not taken."""

    values: dict[str, str]
    places: dict[str, Setting] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    unreadable: Setting | None = None

    def setting(self, variable: str, key: str) -> Setting:
        """The value of a variable as a setting of `key`."""
        place = self.places.get(variable)
        source, line = (variable, 0) if place is None else (place.source, place.line)
        return Setting(key, self.values[variable], source, line)


def gather(environ: Mapping[str, str], config_path: str | None) -> Environment:
    """Return the environment, with what rabbitmq-env.conf adds to it."""
    found = Environment(dict(environ))
    named = environ.get("RABBITMQ_CONF_ENV_FILE")
    path = named
    if not path and config_path:
        path = os.path.join(os.path.dirname(config_path), "rabbitmq-env.conf")
    if path and (named or os.path.isfile(path)):
        _read_env_file(path, environ, found)
    return found


def _read_env_file(path: str, environ: Mapping[str, str], found: Environment) -> None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(_SIZE_MAX).splitlines()
    except OSError as error:
        found.unreadable = Setting("", error.strerror or "", path, 0)
        return
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        taken = _assignment(stripped)
        if taken is None:
            text = "is for a shell and has no effect: only NAME=value lines are read"
            found.warnings.append(f"{path}:{number}: {stripped[:80]!r} {text}")
            continue
        name, value = taken
        name = name if name.startswith(PREFIX) else f"{PREFIX}{name}"
        if not environ.get(name):
            found.values[name] = value
            found.places[name] = Setting(name, value, path, number)


def _assignment(line: str) -> tuple[str, str] | None:
    match = _ASSIGNMENT.match(line)
    if match is None or _SHELL.search(match[2]):
        return None
    import shlex  # noqa: PLC0415 - for a file that few have

    try:
        words = shlex.split(match[2], comments=True)
    except ValueError:
        return None
    return (match[1], "".join(words)) if len(words) < 2 else None


def log_settings(environment: Environment) -> Iterator[Setting]:
    """Yield the settings that RABBITMQ_LOGS (a place) and RABBITMQ_LOG (a level) stand for."""
    where = environment.values.get("RABBITMQ_LOGS")
    if where:
        setting = environment.setting("RABBITMQ_LOGS", "log.file")
        if where in {"-", "-stderr"}:
            yield setting._replace(value="false")
            yield setting._replace(key="log.console", value="true")
            stream = "stdout" if where == "-" else "stderr"
            yield setting._replace(key="log.console.stdio", value=stream)
        else:
            yield setting
    level = environment.values.get("RABBITMQ_LOG")
    if level:
        # `debug,+color,connection=info`: the level of everything is the part that names nothing.
        plain = [part for part in level.split(",") if "=" not in part and part[:1] not in "+-"]
        if plain:
            setting = environment.setting("RABBITMQ_LOG", "log.default.level")
            yield setting._replace(value=plain[-1])


def remarks(environment: Environment) -> Iterator[str]:
    """Yield what the operator should hear about variables that do nothing, or that look mistyped."""
    yield from environment.warnings
    for part in environment.values.get("RABBITMQ_LOG", "").split(","):
        if "=" in part:
            where = effective.place(environment.setting("RABBITMQ_LOG", ""))
            yield f"{where}: {part} has no effect here: all lines of the log have one level"
    for name in sorted(environment.values):
        every = _EVERY if name.startswith(PREFIX) else _EVERY_OF_OURS
        if not name.startswith((PREFIX, "BURROWMQ_")) or not environment.values[name]:
            continue
        place = environment.places.get(name)
        where = "" if place is None else f"{place.source}:{place.line}: "
        if name in IDLE:
            yield f"{where}{name} has no effect here: {IDLE[name]}"
        elif name not in every:
            import difflib  # noqa: PLC0415 - for mistakes only

            # Others may mean it for something else (Kubernetes names services so): only near misses are told.
            nearest = difflib.get_close_matches(name, every, n=1, cutoff=0.88)
            if nearest:
                yield f"{where}{name} is no variable that is read; did you mean {nearest[0]}?"
