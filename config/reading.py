"""All sources, read setting by setting: what was taken of them, and everything that is wrong with them.

State, for one `load`: the values by key, the settings they came from (a key that is set again keeps the last one), the
keys that do nothing here, problems, warnings, and the files that were read. Called by `load` only.

Invariants: nothing is written; a setting is taken, named in a warning or a problem, never passed over.
"""

from __future__ import annotations

import glob
import os
import re
from typing import Any

from burrowmq.config import effective, erlang_file, plugins, sysctl, tls
from burrowmq.config.compose import COMPOSED
from burrowmq.config.environment import KEYS, READERS, Environment, log_settings, remarks
from burrowmq.config.errors import Problem
from burrowmq.config.known import agrees, example_names, why_idle, why_not_here
from burrowmq.config.option import Option
from burrowmq.config.overruled import overruled
from burrowmq.config.schema import NodeConfig, plain_options
from burrowmq.config.sysctl import Include, Setting

FILES_MAX = 256
FILE_SIZE_MAX = 4 << 20
_SUGGESTIONS = 3
_ALL_KEYS = " (docs/configuration.md and rabbitmq.conf.example list all)"

Values = dict[str, Any]


class Reading:
    """The values and the problems collected so far."""

    def __init__(self) -> None:
        self.values: Values = {}
        self.problems: list[Problem] = []
        self.warnings: list[str] = []
        self.files: list[str] = []
        self.settings: dict[str, Setting] = {}
        self.idle: dict[str, tuple[Setting, str]] = {}
        self._open: list[str] = []
        self._options = {option.name: option for _, _, option in plain_options()}
        self._options.update((option.name, option) for option in COMPOSED)
        self._wild = tuple(
            (re.compile(re.sub(r"\\\$[a-z]+", "[^.]+", re.escape(name))), option)
            for name, option in self._options.items()
            if "$" in name
        )

    # -- files --------------------------------------------------------------------------------------------------

    def read_files(self, path: str, environ: Environment) -> None:
        """Read the named file (`.conf` may be left out), its conf.d, and what lies beside it."""
        if not os.path.isfile(path):
            path = next(filter(os.path.isfile, (f"{path}.conf", f"{path}.config")), path)
        folder = os.path.dirname(path)
        more = environ.values.get("RABBITMQ_CONFIG_FILES") or os.path.join(folder, "conf.d")
        names = os.path.join(more, "*.conf") if os.path.isdir(more) else more
        for name in (path, *sorted(glob.glob(names))):
            self._read_file(name)

    def read_beside(self, path: str | None, environ: Environment) -> None:
        """Say what of advanced.config and enabled_plugins has no effect, the named ones or those beside the file."""
        folder = None if path is None else os.path.dirname(path)
        for variable, name, look in (
            ("RABBITMQ_ADVANCED_CONFIG_FILE", "advanced.config", self._look_at_terms),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "enabled_plugins", self._look_at_plugins),
        ):
            named = environ.values.get(variable)
            if named and not os.path.isfile(named) and os.path.isfile(f"{named}.config"):
                named = f"{named}.config"
            beside = named or (None if folder is None else os.path.join(folder, name))
            if beside and os.path.isfile(beside):
                content = self._content(beside)
                if content is not None:
                    look(beside, content)
            elif named:
                self.warnings.append(f"{variable}: there is no file {named}")
        listed = environ.values.get("RABBITMQ_ENABLED_PLUGINS", "")
        if listed and listed != "ALL":
            self._remark_plugins("RABBITMQ_ENABLED_PLUGINS", re.split(r"[,\s]+", listed.strip()))

    def _look_at_terms(self, name: str, content: str) -> None:
        if not erlang_file.is_empty(content):
            instead = erlang_file.instead(content, self._is_key)
            self.warnings.append(
                f"{name}: Erlang terms have no effect here: write key = value lines in rabbitmq.conf instead{instead}"
            )

    def _look_at_plugins(self, name: str, content: str) -> None:
        try:
            found = plugins.parse(content)
        except ValueError as error:
            self._refuse(Setting("", "", name, 0), str(error))
        else:
            self._remark_plugins(name, found)

    def _remark_plugins(self, source: str, names: list[str]) -> None:
        found = (plugins.remark(name) for name in names)
        self.warnings += [f"{source}: {text}" for text in found if text]

    def _content(self, name: str, at: Setting | None = None) -> str | None:
        try:
            with open(name, encoding="utf-8") as file:
                content = file.read(FILE_SIZE_MAX + 1)
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            self._refuse(at or Setting("", "", name, 0), f"{name} {reason}" if at else reason)
            return None
        except UnicodeDecodeError as error:
            self._refuse(Setting("", "", name, 0), f"is not UTF-8 text at byte {error.start}")
            return None
        except ValueError:
            self._refuse(at or Setting("", "", name, 0), "a file's name has no zero byte")
            return None
        if len(content) > FILE_SIZE_MAX:
            self._refuse(Setting("", "", name, 0), f"is longer than {FILE_SIZE_MAX} characters")
            return None
        return content

    def _read_file(self, name: str, at: Setting | None = None) -> None:
        content = self._content(name, at)
        if content is None:
            return
        if erlang_file.is_erlang(content):
            instead = erlang_file.instead(content, self._is_key)
            self._refuse(
                Setting("", "", name, 0),
                "is a file of Erlang terms (advanced.config, or rabbitmq.config of old), which is not read;"
                f" write key = value lines in a rabbitmq.conf{instead}",
            )
            return
        path = os.path.abspath(name)
        self.files.append(path)
        self._open.append(path)
        entries, problems = sysctl.parse(content, name)
        before = len(self.problems)
        self.problems += problems
        lines: dict[str, int] = {}
        for entry in entries:
            if isinstance(entry, Include):
                self._include(entry)
                continue
            if entry.key in lines:
                earlier = f"line {lines[entry.key]}"
                self._warn(entry, f"{entry.key} is set again, {earlier} has no effect")
            lines[entry.key] = entry.line
            self.take(entry)
        self._open.pop()
        self.problems[before:] = sorted(
            self.problems[before:], key=lambda problem: (problem.source != name, problem.line)
        )

    def _include(self, include: Include) -> None:
        """Read the file that a line names, or those that its pattern fits in name order; relative to that file."""
        at = Setting("include", include.path, include.source, include.line)
        wanted = os.path.join(os.path.dirname(include.source), include.path)
        for name in sorted(glob.glob(wanted)) if glob.has_magic(wanted) else [wanted]:
            if os.path.abspath(name) in self._open:
                self._refuse(at, f"{name} includes itself")
            elif len(self.files) >= FILES_MAX:
                self._refuse(at, f"there are more than {FILES_MAX} files")
                return
            else:
                self._read_file(name, at)

    # -- the environment ----------------------------------------------------------------------------------------

    def read_environment(self, environ: Environment) -> None:
        """Take the launcher's variables as settings of the keys that they stand for."""
        if environ.unreadable is not None:
            place = environ.unreadable
            self._refuse(place._replace(value=""), f"cannot be read: {place.value}")
        for variable, key in KEYS.items():
            if environ.values.get(variable):
                self.take(environ.setting(variable, key))
        for variable, read in READERS.items():
            value = environ.values.get(variable)
            try:
                if value and value != "auto":
                    read(value)
                    self.settings[variable] = environ.setting(variable, variable)
            except ValueError as error:
                self._refuse(environ.setting(variable, ""), str(error))
        for setting in log_settings(environ):
            self.take(setting)
        self.warnings += remarks(environ)

    # -- one setting --------------------------------------------------------------------------------------------

    def take(self, setting: Setting) -> None:
        """Read one setting's value, or note what is wrong with it; the last one of a key wins."""
        option = self._find(setting.key)
        if option is None:
            self._without_option(setting)
            return
        if setting.value.startswith("encrypted:"):
            self._refuse(
                setting,
                "encrypted values cannot be decrypted here; write the value itself, in a file that only the broker's"
                " user may read",
            )
            return
        why = why_not_here(option.name, setting.value)
        if why is not None:
            text = f"{setting.key} = {setting.value} has no effect here: {why}"
            self._warn(setting, text)
            self.idle[setting.key] = (setting, why)
            return
        try:
            value = option.read(setting.value)
        except ValueError as error:
            self._refuse(setting, str(error))
            return
        if "$(" in setting.value:
            self._warn(setting, f"{setting.key}: $(...) is taken as it stands, nothing is put in")
        self.values[setting.key] = value
        self.settings[setting.key] = setting

    def _without_option(self, setting: Setting) -> None:
        why = why_idle(setting.key)
        if why is None:
            self._unknown(setting)
        elif agrees(setting.key, setting.value):
            self.settings[setting.key] = setting
            self.idle.pop(setting.key, None)
        else:
            self._warn(setting, f"{setting.key} has no effect here: {why}")
            self.settings.pop(setting.key, None)
            self.idle[setting.key] = (setting, why)

    def overrule(self) -> None:
        """Take out what has no effect beside other keys, each with a warning; to be called when all is read."""
        for key, why in overruled(self.values).items():
            setting = self.settings.pop(key)
            del self.values[key]
            self._warn(setting, f"{key} has no effect here: {why}")
            self.idle[key] = (setting, why)

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

    def effective(self) -> tuple[effective.Effective, ...]:
        """Return what the node will run with, and where each value comes from."""
        return effective.rows(self._options.values(), self.settings, self.idle)

    def _to_blame(self, key: str, listener: str) -> Setting:
        """The setting of a key; when it is missing, that of the listener that needs it, as a place to look at."""
        for name, setting in self.settings.items():
            if name == key or name.startswith(f"{key}."):
                return setting
        where = next(
            (each for name, each in self.settings.items() if name.startswith(listener)), None
        )
        return Setting(key, "", *(("", 0) if where is None else (where.source, where.line)))

    def _is_key(self, name: str) -> bool:
        return self._find(name) is not None

    def _find(self, key: str) -> Option | None:
        found = self._options.get(key)
        if found is not None:
            return None if "$" in key else found
        return next((each for form, each in self._wild if form.fullmatch(key)), None)

    def _unknown(self, setting: Setting) -> None:
        import difflib  # noqa: PLC0415 - for mistakes only

        every = (*self._options, *example_names())
        nearest = difflib.get_close_matches(setting.key, every, n=_SUGGESTIONS, cutoff=0.6)
        # No guess for a name that is near nothing: `foo` is not a mistyped `log.console`.
        reason = "there is no setting with that name"
        self._refuse(setting, reason if nearest else f"{reason}{_ALL_KEYS}", tuple(nearest))

    def _warn(self, setting: Setting, text: str) -> None:
        self.warnings.append(f"{effective.place(setting)}: {text}")

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
