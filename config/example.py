"""rabbitmq.conf.example and docs/configuration.md, made from the schema so that they cannot disagree with it.

Run as `python -m config.example` (`make docs`) from the checkout; a test compares the files with this output.

Invariant: the example file, with every key uncommented, is a configuration that loads and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from burrowmq.config.compose import COMPOSED
from burrowmq.config.environment import IDLE as IDLE_VARIABLES
from burrowmq.config.idle import IDLE
from burrowmq.config.known import NOT_HERE
from burrowmq.config.option import Option
from burrowmq.config.overruled import EMPTY_POLICY, POLICY, RULES
from burrowmq.config.schema import plain_options

EXAMPLE_PATH = "rabbitmq.conf.example"
PAGE_PATH = "docs/configuration.md"

_SHOWN_NAMES = {
    "default_users.$name": "default_users.app",
    "$id": "all",
    "$name": "default",
    "$tag": "administrator",
    "$user": "guest",
    "$n": "1",
}
_SHOWN_VALUES = {
    "listeners.tcp.default": "127.0.0.1:5672",
    "default_user_tags.administrator": "true",
    "loopback_users.guest": "true",
}


def options() -> Iterator[Option]:
    """Yield every key, composed ones first, ours among the others."""
    yield from COMPOSED
    for _, _, option in plain_options():
        yield option


def example_file() -> str:
    """Return a file that shows every key with its default, commented out."""
    lines = [
        "# Every key that BurrowMQ acts on, with its default; `key = value`, `#` starts a comment.",
        "# Keys marked with + are BurrowMQ's own, all others are RabbitMQ's. Written by `make docs`.",
        "# A key with nothing behind the `=` has no default: it is refused until it gets a value.",
    ]
    for option in options():
        key = option.name
        for placeholder, name in _SHOWN_NAMES.items():
            key = key.replace(placeholder, name)
        value = _SHOWN_VALUES.get(key, option.default)
        shown = f"{key} = {value}" if value is not None else f"{key} ="
        mark = "+ " if option.ours else ""
        lines += ["", f"# {mark}{option.doc}", f"# {shown}"]
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the configuration page: sources, the table of keys, and the keys without effect."""
    rows = [
        f"| `{option.name}` | {_cell(option.default)} | {'BurrowMQ' if option.ours else 'RabbitMQ'} | {option.doc} |"
        for option in sorted(options(), key=lambda option: option.name)
    ]
    return "\n".join(
        [_HEAD, "| key | default | from | meaning |", "|---|---|---|---|", *rows, "", _tail()]
    )


def _cell(default: str | None) -> str:
    return "not set" if default is None else f"`{default}`"


def _tail() -> str:
    values = "\n".join(
        f"| `{key}` | {_quoted(idle)} | {reason} |" for key, (idle, reason) in NOT_HERE.items()
    )
    beside = "\n".join(
        f"| {_quoted([f'{key}*' if key.endswith('.') else key for key in rule.keys])} | {rule.reason} |"
        for rule in RULES
    )
    patterns = _quoted([f"{POLICY}$id.{each}_pattern" for each in ("vhost", "queue")])
    beside += f"\n| {patterns} | {EMPTY_POLICY} |"
    keys = "\n".join(f"| {_quoted(sorted(names.split()))} | {reason} |" for reason, names in IDLE)
    return f"""## Values that have no effect here

Each of them is named in a warning at start.

| key | values | why |
|---|---|---|
{values}

## Keys that have no effect beside others

They are taken where the reason does not hold. Each is named in a warning at start.

| keys | why |
|---|---|
{beside}

## RabbitMQ's keys that have no effect here

All other keys of RabbitMQ 3.13.7's schemas, and some of other versions. Each is named in a warning at start, unless its
value says what happens anyway (`vhost_max = infinity`). `$` stands for one part of a name, a final `*` for any rest.

| key | why, and what to do |
|---|---|
{keys}

## Variables that have no effect here

Named in a warning, too: {_quoted(sorted(IDLE_VARIABLES))}.
"""


def _quoted(names: Sequence[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


_HEAD = """# Configuration

<!-- Written by `make docs` from the declarations in config/; do not edit. -->

`burrowmq-server --config FILE` reads RabbitMQ's `rabbitmq.conf` format: `key = value` lines, `#` comments, no
sections, the last of two equal keys wins, with a warning if they are in one file. `.conf` may be left out of the
file's name, and `conf.d/*.conf` beside the file is read after it, in name order. `include FILE` stands for the lines
of another file, or of all that a pattern fits in name order, relative to the file it stands in. `--set key=value`
takes any key and overrides files and environment. Nothing is put in for `$(...)` or `${...}`.

Everything that is wrong is reported together, with file, line, key and the nearest known keys, and the node does not
start (exit status 78). A key that RabbitMQ has and BurrowMQ does not act on is named in a warning that says why, and
what to write instead. A value that begins with `encrypted:` is refused: nothing here can decrypt it.

`burrowctl environment` shows what the node runs with and where each value comes from: file and line, a variable,
`--set` or the default. Values of keys named like secrets are hidden.

## Files beside it

| file | is |
|---|---|
| `rabbitmq-env.conf` | `NAME=value` lines are read as variables, with or without `RABBITMQ_`; the \
environment wins. What needs a shell is named in a warning. |
| `advanced.config` | Erlang terms: not read. A warning names it and the lines of `rabbitmq.conf` to write instead. |
| `rabbitmq.config` | The same, of old: as the configuration itself it is refused. |
| `enabled_plugins` | Read for its names: management, Prometheus and EXTERNAL are built in and always on, \
each other plugin is named in a warning. |

## Variables

| environment variable | is |
|---|---|
| `RABBITMQ_CONFIG_FILE` | `--config` |
| `RABBITMQ_CONFIG_FILES` | the directory or pattern of additional files instead of `conf.d` |
| `RABBITMQ_CONF_ENV_FILE`, `RABBITMQ_ADVANCED_CONFIG_FILE`, `RABBITMQ_ENABLED_PLUGINS_FILE` | another place \
for those files |
| `RABBITMQ_ENABLED_PLUGINS` | the names themselves, separated by commas |
| `RABBITMQ_NODENAME` | `nodename` |
| `RABBITMQ_USE_LONGNAME=true` | the host's whole name behind the `@` |
| `RABBITMQ_MNESIA_DIR`, `BURROWMQ_DATA_DIR` | `data_dir` |
| `RABBITMQ_MNESIA_BASE` | the directory above the data directory, which is named after the node |
| `RABBITMQ_LOG_BASE` | `log.dir` |
| `RABBITMQ_LOGS` | `log.file`; `-`: standard output, `-stderr`: standard error |
| `RABBITMQ_LOG` | `log.default.level` |
| `RABBITMQ_PID_FILE` | a file for the number of the process, while it runs |
| `RABBITMQ_NODE_PORT`, `RABBITMQ_NODE_IP_ADDRESS` | the AMQP listener when no key names one |
| `BURROWMQ_BIND=*` | listeners that no key names bind every interface (the image sets it) |
| `RABBITMQ_DEFAULT_USER`, `_PASS`, `_VHOST` | `default_user`, `default_pass`, `default_vhost` |

## Values

Sizes: bytes, or a whole number with a unit. For memory and disk limits `kB MB GB TB` and a bare `k M G T` \
are powers of
1000 and `KiB MiB GiB TiB` powers of 1024, as in RabbitMQ 3.13; for buffers, frames and messages every unit is a power
of 1024. Times are whole numbers in the unit that the table names.

Without a listener key the broker binds this machine only; a bare port binds every interface.

## Keys

"""


def main() -> None:
    """Write both files below the current directory."""
    Path(EXAMPLE_PATH).write_text(example_file(), encoding="utf-8")
    Path(PAGE_PATH).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
