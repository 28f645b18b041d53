"""The node's shovels, which are loaded when the first one is configured.

Until then nothing of shovels, nor of the links that they use, is imported. This is the node's end of the component
`shovel` of runtime parameters: it says which values are legal, and passes on every one that is set or cleared.

State owned: the shovels, once there are some; those of the configuration until they start.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Protocol

from burrowmq.broker.definitions.document import ImportRefused
from burrowmq.broker.definitions.parameters import SHOVEL, clear_parameter
from burrowmq.broker.rules.auth import NODE_USER
from burrowmq.broker.rules.parameter_rules import ValidationFailed
from burrowmq.broker.words import json_document

if TYPE_CHECKING:
    from burrowmq.broker.peer.wire import Peer
    from burrowmq.broker.report.observer import Observer
    from burrowmq.broker.rules.auth import Auth, User
    from burrowmq.broker.session.session import Session
    from burrowmq.broker.shovel.shovels import Shovels
    from burrowmq.broker.turn.clock import Entropy, Scheduler
    from burrowmq.broker.vhost.vhost import Vhost
    from burrowmq.config.schema import NodeConfig


class ShovelNode(Protocol):
    """What shovels need of their node."""

    name: str
    config: NodeConfig
    auth: Auth
    vhosts: dict[str, Vhost]

    @property
    def observer(self) -> Observer:
        """What is told of runs that begin and end."""
        ...

    @property
    def entropy(self) -> Entropy:
        """Chance."""
        ...

    @property
    def scheduler(self) -> Scheduler:
        """Time."""
        ...

    @property
    def cluster_name(self) -> str:
        """The name that is written into messages."""
        ...

    def open_session(self, peer: Peer) -> Session:
        """A link into the node."""
        ...


class NodeShovels:
    """The component `shovel`."""

    def __init__(self, node: ShovelNode) -> None:
        self._node = node
        self._static: dict[str, object] = {}
        self._found: Shovels | None = None
        self._has_started = False

    @property
    def found(self) -> Shovels | None:
        """The shovels, if there are any or were."""
        return self._found

    def read_static(self, path: str) -> None:
        """Read those of the configuration, which the start then begins. Raises: ImportRefused."""
        where = f"static_shovels, {path}"
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            document = json_document.parse(text)
        except OSError as error:
            raise ImportRefused(f"{where}: {error.strerror}") from error
        except ValueError as error:
            raise ImportRefused(f"{where}: {error}") from error
        if not isinstance(document, dict):
            raise ImportRefused(f"{where}: no JSON object of names and shovels")
        for name, value in document.items():
            try:
                self.check("/", name, value, None)
            except ValidationFailed as refusal:
                told = [
                    f"line {_line_of(text, name, each)}: {_without_secrets(each, value)}"
                    for each in refusal.objections
                ]
                raise ImportRefused(f"{where}, shovel {name}: {'; '.join(told)}") from refusal
        self._static = document

    def start(self) -> None:
        """Start those that the node finds when it starts: after it listens, since they may lead into it."""
        self._has_started = True
        for name, value in self._static.items():
            self._loaded().put("", name, value, is_static=True)
        for vhost in self._node.vhosts.values():
            for name, value in vhost.component(SHOVEL).items():
                self._loaded().put(vhost.name, name, value)

    async def stop(self) -> None:
        """End them; what was not acked is with its source again."""
        self._has_started = False
        if self._found is not None:
            await self._found.stop()

    def abandon(self) -> None:
        """End them as if the process were killed."""
        self._has_started = False
        if self._found is not None:
            self._found.abandon()

    # -- Component --------------------------------------------------------------------------------------------------

    def check(self, vhost: str, name: str, value: object, user: User | None) -> None:
        """Refuse what no shovel can work by. Raises: ValidationFailed."""
        from burrowmq.broker.shovel.rules import validate  # noqa: PLC0415 - loaded when needed

        auth, vhosts = self._node.auth, self._node.vhosts
        who = NODE_USER if user is None else user

        def may_enter(target: str) -> bool:
            return target in vhosts and auth.may_enter(who, target)

        validate(name, value, who.name, may_enter)

    def changed(self, vhost: str, name: str, value: object) -> None:
        """A parameter was set."""
        if self._has_started:
            self._loaded().put(vhost, name, value)

    def cleared(self, vhost: str, name: str) -> None:
        """A parameter is gone."""
        if self._found is not None:
            self._found.remove(vhost, name)

    def _loaded(self) -> Shovels:
        if self._found is None:
            from burrowmq.broker.link.connect import Opener  # noqa: PLC0415 - loaded when needed
            from burrowmq.broker.shovel.shovels import (  # noqa: PLC0415 - loaded when needed
                Shovels,
                Surroundings,
            )

            node = self._node
            opener = Opener(
                open_session=node.open_session,
                node_name=node.name,
                max_message_size=node.config.max_message_size_bytes,
            )
            self._found = Shovels(
                Surroundings(
                    opener=opener,
                    cluster_name=lambda: node.cluster_name,
                    token=node.entropy.token,
                    observer=node.observer,
                    wall_ms=node.scheduler.wall_ms,
                    forget=self._forget,
                )
            )
        return self._found

    def _forget(self, vhost: str, name: str) -> None:
        found = self._node.vhosts.get(vhost)
        if found is not None:
            clear_parameter(found, SHOVEL, name)
            self._node.scheduler.touch()


def _line_of(text: str, name: str, objection: str) -> int:
    """Where in the file that is: the key that an objection begins with, else the shovel's name."""
    names = "|".join(
        re.escape(json.dumps(name, ensure_ascii=is_ascii)) for is_ascii in (True, False)
    )
    begin = re.search(rf"(?:{names})\s*:\s*\{{", text)
    if begin is None:
        begin = re.search(rf"(?:{names})\s*:", text)
    at = 0 if begin is None else begin.start()
    key = re.search(rf'"{re.escape(objection.split(" ", 1)[0])}"\s*:', text[at:])
    return text.count("\n", 0, at + (0 if key is None else key.start())) + 1


def _without_secrets(text: str, value: object) -> str:
    """Objections as a log may have them: without the passwords of the definition's URIs."""
    from burrowmq.broker.link.uri import public  # noqa: PLC0415 - nothing of links is loaded without shovels

    given = value if isinstance(value, dict) else {}
    for key in ("src-uri", "dest-uri"):
        uris = given.get(key)
        for uri in uris if isinstance(uris, list) else [uris]:
            if isinstance(uri, str) and uri:
                # Between quotes only: a short one may be a part of the sentence, too.
                text = text.replace(f'"{uri}"', f'"{public(uri)}"')
    return text
