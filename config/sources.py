"""Files and the environment, read setting by setting into a `Reading`.

State, for one `load`: the files that are being read. Called by `load` only; an embedded broker, which is configured
without them, does not load this. Invariants: nothing is written; a setting is taken, named in a warning or a problem,
never passed over.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import select
import stat

from burrowmq.config import erlang_file, plugins, sysctl
from burrowmq.config.environment import KEYS, READERS, Environment, log_settings, remarks
from burrowmq.config.reading import Reading
from burrowmq.config.setting import Setting
from burrowmq.config.sysctl import Include

FILES_MAX = 256
FILE_SIZE_MAX = 4 << 20
NO_ZERO_BYTE = "a file's name has no zero byte"
PIPE_PATIENCE_S = 10.0
"""How long a pipe is waited for: whatever a shell runs for `--config <(...)` may have to ask somebody first."""


class Sources:
    """rabbitmq.conf and what lies beside it, and the variables of RabbitMQ's launcher."""

    def __init__(self, reading: Reading, environment: Environment) -> None:
        self._reading = reading
        self._environment = environment
        self._open: list[str] = []

    def read_files(self, path: str | None) -> None:
        """Read the named file (`.conf` may be left out), and its conf.d or those that a variable names instead."""
        if path is not None and not os.path.isfile(path):
            path = next(filter(os.path.isfile, (f"{path}.conf", f"{path}.config")), path)
        named = self._environment.values.get("RABBITMQ_CONFIG_FILES")
        more = named or ("" if path is None else os.path.join(os.path.dirname(path), "conf.d"))
        folder, pattern = (more, "*.conf") if os.path.isdir(more) else ("", more)
        found = self._found(folder, pattern)
        if named and not found and not glob.has_magic(pattern):
            self._reading.warnings.append(f"RABBITMQ_CONFIG_FILES: there is no file {named}")
        for name in (*([] if path is None else [path]), *found):
            self._read_file(name)

    def read_beside(self, path: str | None) -> None:
        """Say what of advanced.config and enabled_plugins has no effect, the named ones or those beside the file."""
        folder = None if path is None else os.path.dirname(path)
        for variable, name, look in (
            ("RABBITMQ_ADVANCED_CONFIG_FILE", "advanced.config", self._look_at_terms),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "enabled_plugins", self._look_at_plugins),
        ):
            named = self._environment.values.get(variable)
            if named and not os.path.isfile(named) and os.path.isfile(f"{named}.config"):
                named = f"{named}.config"
            beside = named or (None if folder is None else os.path.join(folder, name))
            if beside and os.path.isfile(beside):
                content = self._content(beside)
                if content is not None:
                    look(beside, content)
            elif named:
                self._reading.warnings.append(f"{variable}: there is no file {named}")
        listed = self._environment.values.get("RABBITMQ_ENABLED_PLUGINS", "")
        if listed and listed != "ALL":
            self._remark_plugins("RABBITMQ_ENABLED_PLUGINS", re.findall(r"[^,\s]+", listed))

    def _look_at_terms(self, name: str, content: str) -> None:
        if not erlang_file.is_empty(content):
            instead = erlang_file.instead(content, self._reading.is_key)
            self._reading.warnings.append(
                f"{name}: Erlang terms have no effect here: write key = value lines in rabbitmq.conf instead{instead}"
            )

    def _look_at_plugins(self, name: str, content: str) -> None:
        try:
            found = plugins.parse(content)
        except ValueError as error:
            self._reading.refuse(Setting("", "", name, 0), str(error))
        else:
            self._remark_plugins(name, found)

    def _remark_plugins(self, source: str, names: list[str]) -> None:
        found = (plugins.remark(name) for name in names)
        self._reading.warnings += [f"{source}: {text}" for text in found if text]

    def _found(self, folder: str, pattern: str, at: Setting | None = None) -> list[str]:
        """The files that a pattern fits, or the one that has it for its name; `folder` is no pattern.

        A directory that hides them is a problem: what they set would be missing.
        """
        itself = os.path.join(folder, pattern)
        if os.path.isfile(itself):
            return [itself]
        directory = os.path.dirname(itself) or os.curdir
        try:
            if glob.has_magic(pattern):
                os.scandir(directory).close()
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            text = f"{directory} {reason}" if at else reason
            self._reading.refuse(at or Setting("", "", directory, 0), text)
        except ValueError:
            self._reading.refuse(at or Setting("", "", directory, 0), NO_ZERO_BYTE)
            return []
        return sorted(glob.glob(os.path.join(glob.escape(folder), pattern)))

    def _content(self, name: str, at: Setting | None = None) -> str | None:
        try:
            with open(name, encoding="utf-8", opener=_open) as file:
                content = file.read(FILE_SIZE_MAX + 1)
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            self._reading.refuse(
                at or Setting("", "", name, 0), f"{name} {reason}" if at else reason
            )
            return None
        except UnicodeDecodeError as error:
            self._reading.refuse(
                Setting("", "", name, error.object.count(b"\n", 0, error.start) + 1),
                f"is not UTF-8 text at byte {error.start}",
            )
            return None
        except ValueError:
            self._reading.refuse(at or Setting("", "", name, 0), NO_ZERO_BYTE)
            return None
        if len(content) > FILE_SIZE_MAX:
            self._reading.refuse(
                Setting("", "", name, 0), f"is longer than {FILE_SIZE_MAX} characters"
            )
            return None
        return content

    def _read_file(self, name: str, at: Setting | None = None) -> None:
        content = self._content(name, at)
        if content is None:
            return
        if erlang_file.is_erlang(content):
            instead = erlang_file.instead(content, self._reading.is_key)
            self._reading.refuse(
                Setting("", "", name, 0),
                "is a file of Erlang terms (advanced.config, or rabbitmq.config of old), which is not read;"
                f" write key = value lines in a rabbitmq.conf{instead}",
            )
            return
        path = os.path.abspath(name)
        self._reading.files.append(path)
        self._open.append(path)
        entries, problems = sysctl.parse(content, name)
        before = len(self._reading.problems)
        self._reading.problems += problems
        lines: dict[str, int] = {}
        for entry in entries:
            if isinstance(entry, Include):
                self._include(entry)
                continue
            if entry.key in lines:
                earlier = f"line {lines[entry.key]}"
                self._reading.warn(entry, f"{entry.key} is set again, {earlier} has no effect")
            lines[entry.key] = entry.line
            self._reading.take(entry)
        self._open.pop()
        self._reading.problems[before:] = sorted(
            self._reading.problems[before:],
            key=lambda problem: (problem.source != name, problem.line),
        )

    def _include(self, include: Include) -> None:
        """Read the file that a line names, or those that its pattern fits in name order; relative to that file."""
        at = Setting("include", include.path, include.source, include.line)
        folder = os.path.dirname(include.source)
        wanted = os.path.join(folder, include.path)
        is_pattern = glob.has_magic(include.path)
        for name in self._found(folder, include.path, at) if is_pattern else [wanted]:
            if os.path.abspath(name) in self._open:
                self._reading.refuse(at, f"{name} includes itself")
            elif len(self._reading.files) >= FILES_MAX:
                self._reading.refuse(at, f"there are more than {FILES_MAX} files")
                return
            else:
                self._read_file(name, at)

    def read_environment(self) -> None:
        """Take the launcher's variables as settings of the keys that they stand for."""
        if self._environment.unreadable is not None:
            place = self._environment.unreadable
            self._reading.refuse(place._replace(value=""), f"cannot be read: {place.value}")
        for variable, key in KEYS.items():
            if self._environment.values.get(variable):
                self._reading.take(self._environment.setting(variable, key))
        for variable, read in READERS.items():
            value = self._environment.values.get(variable)
            try:
                if value and value != "auto":
                    read(value)
                    self._reading.settings[variable] = self._environment.setting(variable, variable)
            except ValueError as error:
                self._reading.refuse(self._environment.setting(variable, ""), str(error))
        for setting in log_settings(self._environment):
            self._reading.take(setting)
        self._reading.warnings += remarks(self._environment)


def _open(path: str, flags: int) -> int:
    """Open it; a pipe to which nobody writes is given up, where opening it would wait for ever."""
    number = os.open(path, flags | os.O_NONBLOCK)
    if stat.S_ISFIFO(os.fstat(number).st_mode):
        poll = select.poll()
        poll.register(number, select.POLLIN)
        if not poll.poll(PIPE_PATIENCE_S * 1000):
            os.close(number)
            raise TimeoutError(errno.ETIMEDOUT, "nobody writes to that pipe")
    os.set_blocking(number, True)
    return number
