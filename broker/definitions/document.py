"""Taking over a definitions document: what RabbitMQ's export, rabbitmqadmin and `export_definitions` write.

Owns no state. `import_document` makes what is not there yet, in RabbitMQ's order, each thing with the checks of its
own module; `import_file` is for the file that the configuration names. What is there already under the same name stays
as it is (queues, exchanges) or is replaced when it differs (users, permissions, policies, parameters), so that the
same document again changes nothing and writes nothing.

JSON has one kind of integer where AMQP has seven: a binding counts as there when its arguments read the same.
An import is not atomic, as in RabbitMQ: what came before the entry that was refused stays.

Source: rabbit_definitions, rabbit_mgmt_wm_definitions (3.13).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from burrowmq.broker.definitions import parameters
from burrowmq.broker.definitions.restore import create_vhost, put_vhost
from burrowmq.broker.definitions.same_bindings import SameBindings
from burrowmq.broker.exchange import TYPES
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.rules import tags
from burrowmq.broker.rules.auth import Permission, TopicPermission
from burrowmq.broker.rules.parameter_rules import (
    RefusedValue,
    ValidationFailed,
    default_queue_type,
    make_policy,
    user_limits,
    vhost_limits,
)
from burrowmq.broker.rules.password_rules import WeakPassword
from burrowmq.broker.rules.passwords import ALGORITHMS, algorithm_of, fits
from burrowmq.broker.rules.pattern import BadPattern
from burrowmq.broker.vhost import mirrored
from burrowmq.broker.vhost.vhost import Edge, ExchangeDeclaration
from burrowmq.broker.words import json_document
from burrowmq.broker.words.resource import RESERVED_PREFIX
from burrowmq.protocol.errors import AmqpError
from burrowmq.protocol.table import MalformedTable, from_json

if TYPE_CHECKING:
    from burrowmq.broker.rules.auth import Auth
    from burrowmq.broker.vhost.vhost import Vhost
    from burrowmq.broker.words.resource import ResourceKind, StagingEngine
    from burrowmq.protocol.table import FieldTable

Entry = Mapping[str, object]
SHORT_TEXT_BYTES = 255


class ImportRefused(ValueError):
    """An entry cannot be taken over; the reason is RabbitMQ's (text or list)."""

    def __init__(self, reason: str | list[str]) -> None:
        super().__init__(reason if isinstance(reason, str) else " ".join(reason))
        self.reason = reason


class DefinedNode(Protocol):
    """What a document fills."""

    vhosts: dict[str, Vhost]
    auth: Auth
    parameters: parameters.Parameters

    @property
    def engine(self) -> StagingEngine:
        """Where rows are staged."""
        ...

    @property
    def has_cluster(self) -> bool:
        """Whether there may be quorum queues."""
        ...

    def make_new_vhost(self, name: str) -> Vhost:
        """A new vhost, wired up. Raises: RefusedValue, when there may be no more."""
        ...

    def vhost_made(self, vhost: Vhost) -> None:
        """A vhost was made and will last: give it what new ones begin with."""
        ...


def import_file(node: DefinedNode, path: str) -> None:
    """Take over the file that the configuration names, or all of a directory in name order, as RabbitMQ does.

    Raises: ImportRefused, naming the file.
    """
    for name in _files(path):
        try:
            with open(name, encoding="utf-8") as file:
                document = json_document.parse(file.read())
            if not isinstance(document, dict):
                raise ImportRefused("no JSON object")
            import_document(node, document)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ImportRefused(f"definitions in {name} cannot be imported: {reason}") from error


def _files(path: str) -> list[str]:
    """The files that a path stands for; Kubernetes mounts a directory with hidden ones that are no definitions."""
    if not os.path.isdir(path):
        return [path]
    try:
        names = sorted(name for name in os.listdir(path) if not name.startswith("."))
    except OSError as error:
        raise ImportRefused(f"definitions in {path} cannot be read: {error.strerror}") from error
    paths = (os.path.join(path, name) for name in names)
    # A link to nowhere, or to where this user may not go, is somebody's definitions: to be refused, not left out.
    return [each for each in paths if os.path.isfile(each) or not os.path.exists(each)]


def import_document(
    node: DefinedNode,
    document: Entry,
    vhost: str | None = None,
    *,
    is_mirrored_quorum: bool = False,
) -> None:
    """Make everything that the document has; with `vhost`, its queues, exchanges, bindings and policies in that vhost.

    Raises: ImportRefused.
    """
    for _ in import_steps(node, document, vhost, is_mirrored_quorum=is_mirrored_quorum):
        pass


def import_steps(
    node: DefinedNode,
    document: Entry,
    vhost: str | None = None,
    *,
    is_mirrored_quorum: bool = False,
) -> Iterator[None]:
    """`import_document` entry by entry, so that the caller can give way to other work between two.

    With `is_mirrored_quorum` classic queues that the policies would mirror are made quorum queues.

    Raises: ImportRefused.
    """
    if is_mirrored_quorum and not node.has_cluster:
        raise ImportRefused("mirrored queues cannot be made quorum queues: cluster.urls is not set")
    taken: dict[str, Callable[[DefinedNode, Entry], None]] = {
        **_SECTIONS,
        "bindings": partial(_take_binding, same=SameBindings()),
    }
    if is_mirrored_quorum:
        taken["queues"] = partial(_take_queue, is_mirrored_quorum=True)
    for section, take in taken.items():
        if vhost is not None and section not in _OF_ONE_VHOST:
            continue
        for entry in _entries(document, section):
            _take(node, take, entry if vhost is None else {**entry, "vhost": vhost})
            yield


def _take(node: DefinedNode, take: Callable[[DefinedNode, Entry], None], entry: Entry) -> None:
    try:
        # Only JSON can spell half a surrogate pair: no octets stand for it, here or in an answer.
        json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ImportRefused(f"a text is no UTF-8{_place(entry)}") from error
    try:
        take(node, entry)
    except (ValidationFailed, RefusedValue, tags.NotBoolean) as error:
        raise ImportRefused(f"{error}{_place(entry)}") from error
    except AmqpError as error:
        raise ImportRefused(error.reply_text) from error
    except WeakPassword as error:
        raise ImportRefused(f"credential_validation_failed: {error}{_place(entry)}") from error
    except BadPattern as error:
        raise ImportRefused(["invalid_regexp", f"{error}{_place(entry)}"]) from error
    except MalformedTable as error:
        raise ImportRefused(f"{error}{_place(entry)}") from error


def _entries(document: Entry, section: str) -> Iterator[Entry]:
    found = document.get(section, [])
    if not isinstance(found, list):
        raise ImportRefused(f"{section} must be a list")
    for entry in found:
        if not isinstance(entry, dict):
            raise ImportRefused(f"{section} must be a list of objects")
        yield entry


def _place(entry: Entry) -> str:
    """Where in the document, as RabbitMQ appends it to a refusal."""
    parts = [entry.get(key) for key in ("vhost", "component", "user", "name")]
    return f" ({'/'.join(str(part) for part in parts if part is not None)})"


def _text(entry: Entry, key: str, default: str | None = None) -> str:
    value = entry.get(key, default)
    if not isinstance(value, str):
        raise ImportRefused(["key_missing", key])
    return value


def _name(entry: Entry, key: str, default: str | None = None) -> str:
    """What clients name: on the wire its size has one byte."""
    value = _text(entry, key, default)
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise ImportRefused(f"{key} is no UTF-8{_place(entry)}") from error
    if size > SHORT_TEXT_BYTES:
        raise ImportRefused(
            f"{key} should be less than {SHORT_TEXT_BYTES} bytes, actually was {size}"
        )
    return value


def _arguments(entry: Entry) -> FieldTable:
    found = entry.get("arguments", {})
    value = {} if found == [] else from_json(found)  # Erlang has one empty list for both
    if not isinstance(value, dict):
        raise ImportRefused(f"arguments must be an object{_place(entry)}")
    return value


def _flag(entry: Entry, key: str, default: bool) -> bool:
    value = entry.get(key, default)
    if not isinstance(value, bool):
        raise ImportRefused(f"{key} must be true or false{_place(entry)}")
    return value


def _vhost(node: DefinedNode, entry: Entry) -> Vhost:
    name = _text(entry, "vhost")
    found = node.vhosts.get(name)
    if found is None:
        raise ImportRefused(["no_such_vhost", name])
    return found


def _user_name(node: DefinedNode, entry: Entry) -> str:
    name = _text(entry, "user")
    if name not in node.auth.users:
        raise ImportRefused(["no_such_user", name])
    return name


def _take_user(node: DefinedNode, entry: Entry) -> None:
    name, auth, entry = _text(entry, "name"), node.auth, tags.with_tags(entry)
    if "tags" not in entry:
        raise ImportRefused(f"tags_not_present{_place(entry)}")
    if entry.get("password") is not None and entry.get("password_hash") is not None:
        raise ImportRefused(f"both_password_and_password_hash_are_provided{_place(entry)}")
    own = tags.texts(entry["tags"])
    if "password_hash" in entry or "password" not in entry:
        password_hash = _text(entry, "password_hash", "")
        try:  # exports of RabbitMQ up to 3.6.0 do not name the algorithm
            known_by_length = algorithm_of(password_hash)
        except ValueError as error:
            raise ImportRefused(["not_base64", password_hash]) from error
        algorithm = str(entry.get("hashing_algorithm") or known_by_length)
        if algorithm not in ALGORITHMS:
            raise ImportRefused(["unknown_hashing_algorithm", algorithm])
        auth.put_user(name, password_hash, own, algorithm)
    else:
        _take_password(auth, name, entry)
        auth.set_tags(name, own)
    if "limits" in entry:
        auth.add_limits(name, user_limits(entry["limits"]))


def _take_password(auth: Auth, name: str, entry: Entry) -> None:
    """Give a user that password; who has it keeps the hash, whose salt would be another one each time."""
    password, known = _text(entry, "password"), auth.users.get(name)
    if known is not None and fits(known.password_hash, known.hashing_algorithm, password):
        return
    auth.check_password(password)
    if password:
        auth.set_password(name, password)
    else:
        auth.put_user(name, "")  # no password logs in


def _take_vhost(node: DefinedNode, entry: Entry) -> None:
    name = _name(entry, "name")
    metadata = entry.get("metadata")
    said = {**(metadata if isinstance(metadata, dict) else {}), **entry}
    kind = default_queue_type(said.get("default_queue_type"), has_cluster=node.has_cluster)
    vhost = create_vhost(
        name, node.vhosts, node.make_new_vhost, node.engine.definitions, node.vhost_made
    )
    described = said.get("description", vhost.description)
    description = "" if described is None else str(described)
    own = list(tags.texts(said["tags"])) if "tags" in said else vhost.tags
    kind = kind or vhost.default_queue_type
    is_protected = said.get("protected_from_deletion", vhost.is_protected) is True
    new, old = (
        (description, own, kind, is_protected),
        (vhost.description, vhost.tags, vhost.default_queue_type, vhost.is_protected),
    )
    if new != old:
        vhost.description, vhost.tags, vhost.default_queue_type, vhost.is_protected = new
        put_vhost(vhost, node.engine.definitions)
    if entry.get("limits"):
        parameters.set_vhost_limits(vhost, vhost_limits(entry["limits"]))


def _take_permission(node: DefinedNode, entry: Entry) -> None:
    vhost, user = _vhost(node, entry), _user_name(node, entry)
    permission = Permission(
        configure=_text(entry, "configure"), write=_text(entry, "write"), read=_text(entry, "read")
    )
    node.auth.set_permission(vhost.name, user, permission)


def _take_topic_permission(node: DefinedNode, entry: Entry) -> None:
    vhost, user = _vhost(node, entry), _user_name(node, entry)
    permission = TopicPermission(write=_text(entry, "write"), read=_text(entry, "read"))
    node.auth.set_topic_permission(vhost.name, user, _text(entry, "exchange"), permission)


def _take_parameter(node: DefinedNode, entry: Entry) -> None:
    component, name = _text(entry, "component"), _text(entry, "name")
    parameters.set_parameter(_vhost(node, entry), component, name, entry.get("value"))


def _take_global_parameter(node: DefinedNode, entry: Entry) -> None:
    name = _text(entry, "name")
    if not name.startswith(parameters.INTERNAL):
        node.parameters.put(name, entry.get("value"))


def _take_policy(node: DefinedNode, entry: Entry) -> None:
    vhost = _vhost(node, entry)
    parameters.set_policy(vhost, make_policy(_text(entry, "name"), entry))


def _is_skipped(vhost: Vhost, kind: ResourceKind, name: str) -> bool:
    """Whether a new one is passed over, as RabbitMQ does: such a queue is a client's that has gone."""
    is_skipped = name.startswith(RESERVED_PREFIX)
    if is_skipped and vhost.observer is not None:
        vhost.observer.definition_skipped(vhost.name, kind, name)
    return is_skipped


def _take_queue(node: DefinedNode, entry: Entry, *, is_mirrored_quorum: bool = False) -> None:
    vhost, name = _vhost(node, entry), _name(entry, "name")
    if name in vhost.queues or _is_skipped(vhost, "queue", name):
        return
    arguments, kind = dict(_arguments(entry)), entry.get("type")
    if kind not in (None, "classic"):
        arguments.setdefault("x-queue-type", kind if isinstance(kind, str) else json.dumps(kind))
    declaration = QueueDeclaration(
        name=name,
        durable=_flag(entry, "durable", True),
        auto_delete=_flag(entry, "auto_delete", False),
        arguments=arguments,
    )
    vhost.create_queue(
        mirrored.as_policies_say(
            vhost,
            declaration,
            is_typed="x-queue-type" in arguments,
            is_wanted=is_mirrored_quorum,
        )
    )


def _take_exchange(node: DefinedNode, entry: Entry) -> None:
    vhost, name = _vhost(node, entry), _name(entry, "name")
    if name in vhost.exchanges or _is_skipped(vhost, "exchange", name):
        return
    kind = _text(entry, "type")
    if kind not in TYPES:
        raise ImportRefused(f"unknown exchange type '{kind}'")
    vhost.create_exchange(
        ExchangeDeclaration(
            name=name,
            type=kind,
            durable=_flag(entry, "durable", True),
            auto_delete=_flag(entry, "auto_delete", False),
            internal=_flag(entry, "internal", False),
            arguments=_arguments(entry),
        )
    )


def _take_binding(node: DefinedNode, entry: Entry, *, same: SameBindings) -> None:
    vhost = _vhost(node, entry)
    kind = entry.get("destination_type", "queue")
    if kind not in ("queue", "exchange"):
        raise ImportRefused(f"destination_type must be queue or exchange, not {kind!r}")
    edge = Edge(
        _text(entry, "source"),
        "queue" if kind == "queue" else "exchange",
        _text(entry, "destination"),
        _name(entry, "routing_key", "").encode(),
        _arguments(entry),
    )
    source = vhost.exchanges.get(edge.source)
    destinations = vhost.queues if edge.kind == "queue" else vhost.exchanges
    if source is None or edge.destination not in destinations:
        return  # RabbitMQ passes over a binding whose source or destination is missing
    if edge.arguments and (vhost.graph.find(edge) or same.has(source, edge)):
        return
    owner = vhost.queues[edge.destination].exclusive_owner if edge.kind == "queue" else None
    vhost.bind(edge, owner)


_SECTIONS: dict[str, Callable[[DefinedNode, Entry], None]] = {
    "users": _take_user,
    "vhosts": _take_vhost,
    "permissions": _take_permission,
    "topic_permissions": _take_topic_permission,
    "parameters": _take_parameter,
    "global_parameters": _take_global_parameter,
    "policies": _take_policy,
    "queues": _take_queue,
    "exchanges": _take_exchange,
}  # and bindings, last
_OF_ONE_VHOST = frozenset({"parameters", "policies", "queues", "exchanges", "bindings"})
