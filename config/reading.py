"""Settings, read one by one: what was taken of them, and everything that is wrong with them.

State, for one configuration: the values by key, the settings they came from (a key that is set again keeps the last
one), the keys that do nothing here, problems, warnings, and the files that were read. Called by `given`, and by
`sources`, which brings what files and the environment say.

Invariants: nothing is written; a setting is taken, named in a warning or a problem, never passed over.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from burrowmq.config import effective, ports, retention, tls, units
from burrowmq.config.compose import COMPOSED
from burrowmq.config.errors import Problem
from burrowmq.config.known import agrees, example_names, why_idle, why_not_here
from burrowmq.config.option import Option
from burrowmq.config.overruled import overruled
from burrowmq.config.schema import NodeConfig, plain_options
from burrowmq.config.setting import Setting

_SUGGESTIONS = 3
DEFINITIONS = frozenset(
    {"load_definitions", "definitions.local.path", "management.load_definitions"}
)
LISTENER_VARIABLES = ("RABBITMQ_NODE_PORT", "RABBITMQ_NODE_IP_ADDRESS")
"""They make a listener where no key does."""
_ALL_KEYS = " (docs/configuration.md and rabbitmq.conf.example list all)"

Values = dict[str, Any]
CheckPattern = Callable[[str], object]
"""It raises ValueError for a text that is no regular expression to whoever will use it."""


class Reading:
    """The values and the problems collected so far."""

    def __init__(self, check_pattern: CheckPattern | None = None) -> None:
        """Take what says whether the node can use a regular expression; without it Python's own are meant."""
        self._check_pattern = check_pattern
        self.values: Values = {}
        self.problems: list[Problem] = []
        self.warnings: list[str] = []
        self.files: list[str] = []
        self.settings: dict[str, Setting] = {}
        self.idle: dict[str, tuple[Setting, str]] = {}
        self._options = {option.name: option for _, _, option in plain_options()}
        self._options.update((option.name, option) for option in COMPOSED)
        self._wild = tuple(
            (re.compile(re.sub(r"\\\$[a-z]+", "[^.]+", re.escape(name))), option)
            for name, option in self._options.items()
            if "$" in name
        )

    def take(self, setting: Setting) -> None:
        """Read one setting's value, or note what is wrong with it; the last one of a key wins."""
        option = self._find(setting.key)
        if option is None:
            self._without_option(setting)
            return
        if setting.value.startswith("encrypted:"):
            self.refuse(
                setting,
                "encrypted values cannot be decrypted here; write the value itself, in a file that only the broker's"
                " user may read",
            )
            return
        why = why_not_here(option.name, setting.value)
        if why is not None:
            text = f"{setting.key} = {setting.value} has no effect here: {why}"
            self.warn(setting, text)
            self.idle[setting.key] = (setting, why)
            return
        try:
            retention.check(setting.key)
            value = self._value(option, setting.value)
        except ValueError as error:
            self.refuse(setting, str(error))
            return
        if "$(" in setting.value:
            self.warn(setting, f"{setting.key}: $(...) is taken as it stands, nothing is put in")
        self.values[setting.key] = value
        self.settings[setting.key] = setting

    def _value(self, option: Option, text: str) -> Any:
        if option.read is not units.pattern or self._check_pattern is None:
            return option.read(text)
        try:
            self._check_pattern(text)
        except ValueError as error:
            raise ValueError(
                f"{text!r} is no regular expression that can be used: {error}"
            ) from None
        return text

    def _without_option(self, setting: Setting) -> None:
        why = why_idle(setting.key)
        if why is None:
            self._unknown(setting)
        elif agrees(setting.key, setting.value):
            self.settings[setting.key] = setting
            self.idle.pop(setting.key, None)
        else:
            self.warn(setting, f"{setting.key} has no effect here: {why}")
            self.settings.pop(setting.key, None)
            self.idle[setting.key] = (setting, why)

    def overrule(self) -> None:
        """Take out what has no effect beside other keys, each with a warning; to be called when all is read."""
        if any(key.startswith("listeners.tcp") for key in self.values):
            for variable in LISTENER_VARIABLES:
                if variable in self.settings:
                    setting, why = self.settings.pop(variable), "listeners.tcp counts"
                    self.warn(setting, f"{variable} has no effect here: {why}")
                    self.idle[variable] = (setting, why)
        for key, why in overruled(self.values).items():
            setting = self.settings.pop(key)
            del self.values[key]
            self.warn(setting, f"{key} has no effect here: {why}")
            self.idle[key] = (setting, why)

    def remark_mechanisms(self, config: NodeConfig) -> None:
        """Say that EXTERNAL is listed where nobody can log in so. It stays listed: no password will do instead."""
        if not config.tls_listeners:
            why = "no TLS listener is named; listeners.ssl.default does"
        elif config.tls.verify == "verify_none":
            why = "no client is asked for a certificate; ssl_options.verify = verify_peer does"
        else:
            return
        for key, setting in self.settings.items():
            if key.startswith("auth_mechanisms.") and setting.value == "EXTERNAL":
                self.warn(setting, f"{key} has no effect here: {why}")
                self.idle[key] = (setting, why)
                return

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
                self.refuse(
                    self._to_blame(f"{prefix}.{error.key}", listener or f"{prefix}.port"),
                    error.reason,
                )
            else:
                self.warnings += tls.open_keys(options)
                self._remark_ciphers(prefix, dict(tls.idle_ciphers(options)))

    def _remark_ciphers(self, prefix: str, idle: dict[str, str]) -> None:
        names = {"management.ssl": (f"{prefix}.ciphers.", "management.listener.ssl_opts.ciphers.")}
        for key, setting in self.settings.items():
            if setting.value in idle and key.startswith(names.get(prefix, f"{prefix}.ciphers.")):
                why = idle[setting.value]
                self.warn(setting, f"{key} has no effect here: {why}")
                self.idle[key] = (setting, why)

    def check_ports(self, config: NodeConfig) -> None:
        """Refuse an address that two parts would listen at; the one that somebody wrote down is to blame."""
        for first, second, endpoint in ports.clashes(config):
            setting, other = ports.written(second, self.settings), first
            if setting is None:
                setting, other = ports.written(first, self.settings), second
            if setting is not None:
                self.refuse(setting, f"port {endpoint.port} is that of {other} too, name another")

        for part, wide, narrow in ports.overlaps(config):
            setting = ports.written(part, self.settings, narrow.host)
            if setting is not None:
                every = f"another of {part} has port {wide.port} of every address"
                self.refuse(setting, f"{every}, leave one of the two out")

    def remark_definitions(self, path: str | None) -> None:
        """Say that a directory of definitions has none: a node without them, and without a first user, starts."""
        if path is None or not os.path.isdir(path):
            return
        with contextlib.suppress(OSError):
            if any(not name.startswith(".") for name in os.listdir(path)):
                return
            for key in DEFINITIONS & self.settings.keys():
                text = f"{key}: there is no file in {path}; a new data directory gets no user then"
                self.warn(self.settings[key], text)

    def effective(self) -> tuple[effective.Effective, ...]:
        """Return what the node will run with, and where each value comes from."""
        return effective.rows(self._options.values(), self.settings, self.idle)

    def _to_blame(self, key: str, listener: str) -> Setting:
        """The setting of a key; when it is missing, that of the listener that needs it, as a place to look at."""
        # Where nobody names management.ssl.port, its listener is that of the old names.
        if key.startswith("management.ssl.") and listener not in self.settings:
            key = key.replace("management.ssl.", "management.listener.ssl_opts.", 1)
            listener = "management.listener.port"
        for name, setting in self.settings.items():
            if name == key or name.startswith(f"{key}."):
                return setting
        where = next(
            (each for name, each in self.settings.items() if name.startswith(listener)), None
        )
        return Setting(key, "", *(("", 0) if where is None else (where.source, where.line)))

    def is_key(self, name: str) -> bool:
        """Whether there is a setting with that name."""
        return self._find(name) is not None

    def _find(self, key: str) -> Option | None:
        found = self._options.get(key)
        if found is not None:
            return None if "$" in key else found
        return next((each for form, each in self._wild if form.fullmatch(key)), None)

    def _unknown(self, setting: Setting) -> None:
        import difflib  # noqa: PLC0415 - for mistakes only

        every = (*self._named_as(setting.key), *example_names())
        nearest = difflib.get_close_matches(setting.key, every, n=_SUGGESTIONS, cutoff=0.6)
        # No guess for a name that is near nothing: `foo` is not a mistyped `log.console`.
        reason = "there is no setting with that name"
        self.refuse(setting, reason if nearest else f"{reason}{_ALL_KEYS}", tuple(nearest))

    def _named_as(self, key: str) -> Iterator[str]:
        """All keys; those with a name of the operator's choice in them have the one that stands in that place here."""
        parts = key.split(".")
        for name in self._options:
            wanted = name.split(".")
            if "$" in name and len(wanted) == len(parts):
                pairs = zip(wanted, parts, strict=True)
                yield ".".join(given if want.startswith("$") else want for want, given in pairs)
            else:
                yield name

    def warn(self, setting: Setting, text: str) -> None:
        """Note what the operator should hear about a setting."""
        self.warnings.append(f"{effective.place(setting)}: {text}")

    def refuse(self, setting: Setting, reason: str, nearest: tuple[str, ...] = ()) -> None:
        """Note what is wrong with a setting."""
        self.problems.append(
            Problem(
                source=setting.source,
                line=setting.line,
                key=setting.key,
                reason=reason,
                nearest=nearest,
            )
        )
