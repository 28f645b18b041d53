"""Settings that somebody gives one by one, made into a configuration: the command line's, or an embedded broker's.

`load` has read files and the environment before; an embedded broker has none. No state. Invariants: nothing is read but
the files that a TLS listener names; every problem is reported together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from burrowmq.config import compose
from burrowmq.config.effective import Effective
from burrowmq.config.errors import ConfigError
from burrowmq.config.reading import CheckPattern, Reading
from burrowmq.config.schema import NodeConfig
from burrowmq.config.setting import Setting
from burrowmq.records import dataclass

COMMAND_LINE = "--set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A usable configuration, what the operator should hear about it, and where each value comes from."""

    config: NodeConfig
    warnings: tuple[str, ...]
    files: tuple[str, ...] = ()
    effective: tuple[Effective, ...] = ()
    pid_file: str | None = None


def given(
    settings: Sequence[tuple[str, str]],
    data_dir: str,
    check_pattern: CheckPattern | None = None,
    *,
    source: str = COMMAND_LINE,
) -> Loaded:
    """Return the configuration that these settings make; `source` is what whoever gave them calls the place.

    Raises: ConfigError with every problem found.
    """
    return made_of(Reading(check_pattern), settings, data_dir, {}, source)


def made_of(
    reading: Reading,
    overrides: Sequence[tuple[str, str]],
    data_dir: str | None,
    environ: Mapping[str, str],
    source: str = COMMAND_LINE,
) -> Loaded:
    """Return the configuration made of what was read, and of settings, from `source`, that win over it.

    Raises: ConfigError with every problem found.
    """
    for key, value in overrides:
        reading.take(Setting(key, value, source, 0))
    if data_dir is not None:
        reading.take(Setting("data_dir", data_dir, "--data-dir", 0))
    reading.overrule()
    config = compose.node_config(reading.values, environ)
    if not reading.problems:
        reading.try_tls(config)
        reading.check_ports(config)
        reading.remark_mechanisms(config)
        reading.remark_definitions(config.load_definitions)
    if reading.problems:
        raise ConfigError(tuple(reading.problems))
    return Loaded(
        config=config,
        warnings=tuple(reading.warnings),
        files=tuple(reading.files),
        effective=reading.effective(),
        pid_file=environ.get("RABBITMQ_PID_FILE") or None,
    )
