"""What is in force for the queues of a virtual host: the arguments of each met with its policy.

State owned: the versions of queues that were declared under another default (a changed default is for new queues
only), and the settings that are known, so that equal ones are one object: a hundred thousand queues mostly have one of
a few. Called by `broker.vhost.vhost` when a queue is made and when policies change; the queue puts it in force.

Source: RabbitMQ's rabbit_policy and rabbit_queue_decorator.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from burrowmq.broker.queue.rules import settings as queue_settings
from burrowmq.broker.queue.rules.quorum import QUORUM, policy_kind
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.words.resource import pack_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from burrowmq.broker.queue.port import QueuePort
    from burrowmq.broker.queue.rules.settings import Settings
    from burrowmq.broker.rules.policy import EffectivePolicy, PolicyKind, PolicySet
    from burrowmq.broker.words.resource import Row
    from burrowmq.protocol.table import FieldTable

KNOWN_MAX = 1024


class RowOptions(Protocol):
    """What the node decides."""

    @property
    def default_queue_version(self) -> int:
        """Of queues that are declared now."""
        ...


class RowOwner(Protocol):
    """A virtual host, as its queues' rows see it."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def options(self) -> RowOptions:
        """What the node decides for it."""
        ...

    @property
    def former_arguments(self) -> Mapping[str, FieldTable]:
        """By queue: see `QueueDeclaration`."""
        ...


class QueueSettings:
    """Those of one virtual host."""

    def __init__(
        self,
        policies: PolicySet,
        default_version: int,
        former_arguments: Mapping[str, FieldTable] = MappingProxyType({}),
    ) -> None:
        self._policies = policies
        self._former_arguments = former_arguments
        self._default_version = default_version
        self._versions: dict[str, int] = {}
        self._known: dict[Settings, Settings] = {}

    def kind(self, queue_name: str, arguments: FieldTable) -> PolicyKind:
        """As what policies know a queue."""
        found = policy_kind(arguments)
        return "was_classic" if found == QUORUM and queue_name in self._former_arguments else found

    def policy(self, queue_name: str, arguments: FieldTable) -> EffectivePolicy:
        """The policy in force for a queue."""
        return self._policies.effective(self.kind(queue_name, arguments), queue_name)

    def of(self, queue_name: str, arguments: FieldTable) -> Settings:
        """What is in force for a queue of this name and these arguments."""
        found = queue_settings.compute(
            arguments,
            self.policy(queue_name, arguments).definition,
            self._versions.get(queue_name, self._default_version),
        )
        return self._shared(found)

    def of_successor(self, queue_name: str, arguments: FieldTable) -> Settings:
        """What would be in force for a quorum queue of these arguments that takes a classic one's place."""
        policy = self._policies.effective("was_classic", queue_name)
        return self._shared(queue_settings.compute(arguments, policy.definition))

    def after_change(self, queue: QueuePort) -> Settings:
        """What is in force for a queue that is there, now that policies have changed."""
        settings = self.of(queue.name, queue.arguments)
        if settings.mode != queue.settings.mode and not self._says_mode(queue):
            # RabbitMQ: a policy that no longer speaks of the mode leaves the last one until the node restarts.
            settings = self._shared(replace(settings, mode=queue.settings.mode))
        return settings

    def remember_version(self, queue_name: str, version: int | None) -> None:
        """The default version when the queue was declared; None for one that is declared now."""
        if version is not None and version != self._default_version:
            self._versions[queue_name] = version

    def forget(self, queue: QueuePort) -> None:
        """The queue is deleted: another one of its name is a new one."""
        self._versions.pop(queue.name, None)
        self._policies.forget(self.kind(queue.name, queue.arguments), queue.name)

    def _says_mode(self, queue: QueuePort) -> bool:
        return (
            "x-queue-mode" in queue.arguments
            or "queue-mode" in self.policy(queue.name, queue.arguments).definition
        )

    def _shared(self, found: Settings) -> Settings:
        known = self._known
        if len(known) >= KNOWN_MAX:
            known.clear()
        return known.setdefault(found, found)


def queue_row(vhost: RowOwner, queue: QueueDeclaration | QueuePort, made_ms: int) -> Row:
    """What the definition store has of a queue."""
    former = vhost.former_arguments.get(queue.name)
    if isinstance(queue, QueueDeclaration):
        former = queue.former_arguments
    row: Row = {
        "vhost": vhost.name,
        "name": queue.name,
        "auto_delete": queue.auto_delete,
        "arguments": pack_arguments(queue.arguments),
        "version": vhost.options.default_queue_version,
        "made_ms": made_ms,
    }
    if former is not None:
        row["former_arguments"] = pack_arguments(former)
    return row
