"""What a definitions document would change, told before it is taken over.

Owns no state, changes nothing. It says the same of each entry as `broker.definitions.document` then does: what is not
there is made; users, virtual hosts' metadata, permissions, policies and parameters are replaced where they differ;
queues and exchanges that are there stay as they are, whatever the document says. Of passwords it says that they differ,
never what they are. Called by the UI before an import.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from burrowmq.broker.definitions.document import ImportRefused
from burrowmq.broker.inspect.parameters import policy_row, topic_permissions
from burrowmq.broker.inspect.topology import own_bindings
from burrowmq.broker.inspect.values import Row, plain
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.rules.parameter_rules import RefusedValue, ValidationFailed, make_policy
from burrowmq.broker.rules.passwords import fits
from burrowmq.broker.rules.pattern import BadPattern
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.broker.words.exact import exact
from burrowmq.records import NamedTuple

Entry = Mapping[str, Any]
NEW, CHANGED, STAYS, SAME, REFUSED = "new", "changed", "stays", "same", "refused"
QUEUE_FIELDS = {"durable": True, "auto_delete": False, "arguments": {}}
EXCHANGE_FIELDS = {"type": "direct", **QUEUE_FIELDS, "internal": False}
POLICY_FIELDS = ("pattern", "apply-to", "definition", "priority")
RIGHTS = ("configure", "write", "read")


class Difference(NamedTuple):
    """One entry: what becomes of it, and the values that differ as they are and as they would be."""

    section: str
    name: str
    action: str
    before: Row
    after: Row
    reason: str = ""


class _Refused(Exception):
    """This entry cannot be taken over."""


def steps(node: RunningNode, document: Entry, vhost: str | None = None) -> Iterator[Difference]:
    """Each entry in the order of an import, so that the caller can give way to other work between two.

    Raises: ImportRefused for a document that is none.
    """
    view = _View(node)
    for section, look in _SECTIONS.items():
        if vhost is not None and section not in _OF_ONE_VHOST:
            continue
        for entry in _entries(document, section):
            given = dict(entry) if vhost is None else {**entry, "vhost": vhost}
            yield _look(view, section, look, given)
            if section in _MADE:
                view.made.add((section, str(given.get("vhost", "")), str(given.get("name", ""))))


def _entries(document: Entry, section: str) -> Iterator[Entry]:
    found = document.get(section, [])
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ImportRefused(f"{section} must be a list of objects")
    yield from found


def _look(view: _View, section: str, look: _Look, entry: Entry) -> Difference:
    name = _label(section, entry)
    try:
        before, after = look(view, entry)
    except (_Refused, BadPattern, RefusedValue, ValidationFailed) as error:
        return Difference(section, name, REFUSED, {}, {}, str(error))
    if before is None:
        return Difference(section, name, NEW, {}, after)
    left = {key: value for key, value in after.items() if exact(before.get(key)) != exact(value)}
    if not left:
        return Difference(section, name, SAME, {}, {})
    action = STAYS if section in _NEVER_REPLACED else CHANGED
    return Difference(section, name, action, {key: before.get(key) for key in left}, left)


def _label(section: str, entry: Entry) -> str:
    """How a person would call it; the virtual host is told beside it."""
    if section == "bindings":
        key = entry.get("routing_key", "")
        return f"{entry.get('source')} → {entry.get('destination')} ({key})"
    if section == "topic_permissions":
        return f"{entry.get('user')} on {entry.get('exchange')}"
    if section == "parameters":
        return f"{entry.get('component')} {entry.get('name')}"
    return str(entry.get("user" if section == "permissions" else "name", ""))


class _View:
    """The node, and what the document has made before: section, virtual host, name."""

    def __init__(self, node: RunningNode) -> None:
        self.node = node
        self.made: set[tuple[str, str, str]] = set()
        self._bound: dict[tuple[str, str], set[str]] = {}

    def vhost(self, entry: Entry) -> Vhost | None:
        """The virtual host of an entry; None for one that the document makes. Raises: _Refused."""
        name = str(entry.get("vhost", ""))
        if name in self.node.vhosts:
            return self.node.vhosts[name]
        if ("vhosts", "", name) not in self.made:
            raise _Refused(f"no_such_vhost {name}")
        return None

    def user(self, entry: Entry) -> str:
        """The user of an entry. Raises: _Refused."""
        name = str(entry.get("user", ""))
        if name not in self.node.auth.users and ("users", "", name) not in self.made:
            raise _Refused(f"no_such_user {name}")
        return name

    def has(self, kind: str, entry: Entry, name: str) -> bool:
        """Whether a queue or an exchange is there by the time that the entry is looked at."""
        vhost = str(entry.get("vhost", ""))
        owner = self.node.vhosts.get(vhost)
        there: Mapping[str, Any] = {}
        if owner is not None:
            there = owner.queues if kind == "queues" else owner.exchanges
        return name in there or (kind, vhost, name) in self.made

    def is_bound(self, vhost: str, source: str, signature: str) -> bool:
        """Whether an exchange has a binding; its bindings are gone through once."""
        known = self._bound.get((vhost, source))
        if known is None:
            owner = self.node.vhosts.get(vhost)
            exchange = owner.exchanges.get(source) if owner else None
            known = self._bound[vhost, source] = {
                _signature(
                    each.destination_kind,
                    str(each.destination.name),
                    each.routing_key.decode("utf-8", "replace"),
                    plain(each.arguments or {}),
                )
                for each in (own_bindings(owner, exchange) if owner and exchange else ())
            }
        return signature in known


_Look = Callable[["_View", Entry], tuple[Row | None, Row]]


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [each.strip() for each in value.split(",") if each.strip()]
    return [str(each) for each in value] if isinstance(value, list) else []


def _user(view: _View, entry: Entry) -> tuple[Row | None, Row]:
    if "tags" not in entry:
        raise _Refused("tags_not_present")
    if entry.get("password") is not None and entry.get("password_hash") is not None:
        raise _Refused("both_password_and_password_hash_are_provided")
    after: Row = {"tags": _texts(entry["tags"])}
    if "limits" in entry:
        after["limits"] = entry["limits"]
    known = view.node.auth.users.get(str(entry.get("name", "")))
    if known is None:
        return None, after
    if "password_hash" in entry or "password" not in entry:
        is_same = known.password_hash == entry.get("password_hash", "")
    else:
        password = str(entry["password"])
        is_same = fits(known.password_hash, known.hashing_algorithm, password)
    after["password"] = "as it is" if is_same else "another"
    return {"tags": list(known.tags), "limits": dict(known.limits), "password": "as it is"}, after


def _vhost(view: _View, entry: Entry) -> tuple[Row | None, Row]:
    metadata = entry.get("metadata")
    said = {**(metadata if isinstance(metadata, dict) else {}), **entry}
    after: Row = {}
    if "description" in said:
        described = said["description"]
        after["description"] = "" if described is None else str(described)
    if "tags" in said:
        after["tags"] = _texts(said["tags"])
    if said.get("limits"):
        after["limits"] = said["limits"]
    known = view.node.vhosts.get(str(entry.get("name", "")))
    if known is None:
        return None, after
    before = {"description": known.description, "tags": list(known.tags), "limits": known.limits}
    return before, after


def _permission(view: _View, entry: Entry) -> tuple[Row | None, Row]:
    owner, user = view.vhost(entry), view.user(entry)
    after = {right: entry.get(right) for right in RIGHTS}
    known = view.node.auth.permissions.get((owner.name, user)) if owner else None
    return None if known is None else {right: getattr(known, right) for right in RIGHTS}, after


def _topic_permission(view: _View, entry: Entry) -> tuple[Row | None, Row]:
    owner, user = view.vhost(entry), view.user(entry)
    after = {right: entry.get(right) for right in ("write", "read")}
    exchange = str(entry.get("exchange", ""))
    found = topic_permissions(view.node, owner.name, user, exchange) if owner else []
    return (found[0] if found else None), after


def _parameter(view: _View, entry: Entry) -> tuple[Row | None, Row]:
    owner = view.vhost(entry)
    after = {"value": entry.get("value")}
    component, name = entry.get("component"), str(entry.get("name", ""))
    if owner is None:
        return None, after
    if component == "vhost-limits":
        return ({"value": dict(owner.limits)} if owner.limits else None), after
    if component in owner.components:
        known = owner.component_values.get(str(component), {})
        return ({"value": known[name]} if name in known else None), after
    policy = owner.policies.operator_policies.get(name)
    if component != "operator_policy" or policy is None:
        return None, after
    row = policy_row(owner.name, policy)
    wanted = policy_row(owner.name, make_policy(name, entry.get("value") or {}, is_operator=True))
    return {key: row[key] for key in POLICY_FIELDS}, {key: wanted[key] for key in POLICY_FIELDS}


def _global_parameter(view: _View, entry: Entry) -> tuple[Row | None, Row]:
    values, name = view.node.parameters.values, str(entry.get("name", ""))
    return ({"value": values[name]} if name in values else None), {"value": entry.get("value")}


def _policy(view: _View, entry: Entry) -> tuple[Row | None, Row]:
    owner, name = view.vhost(entry), str(entry.get("name", ""))
    wanted = policy_row("", make_policy(name, entry))
    after = {key: wanted[key] for key in POLICY_FIELDS}
    known = owner.policies.policies.get(name) if owner else None
    if owner is None or known is None:
        return None, after
    row = policy_row(owner.name, known)
    return {key: row[key] for key in POLICY_FIELDS}, after


def _queue(view: _View, entry: Entry) -> tuple[Row | None, Row]:
    owner = view.vhost(entry)
    known = owner.queues.get(str(entry.get("name", ""))) if owner else None
    return _declared(known, entry, QUEUE_FIELDS)


def _exchange(view: _View, entry: Entry) -> tuple[Row | None, Row]:
    owner = view.vhost(entry)
    known = owner.exchanges.get(str(entry.get("name", ""))) if owner else None
    return _declared(known, entry, EXCHANGE_FIELDS)


def _declared(known: Any, entry: Entry, fields: Row) -> tuple[Row | None, Row]:
    after = {key: entry.get(key, default) for key, default in fields.items()}
    if known is None:
        return None, after
    before = {key: getattr(known, key) for key in fields}
    return {key: plain({} if value is None else value) for key, value in before.items()}, after


def _binding(view: _View, entry: Entry) -> tuple[Row | None, Row]:
    view.vhost(entry)
    kind = "queue" if entry.get("destination_type", "queue") == "queue" else "exchange"
    source, destination = str(entry.get("source", "")), str(entry.get("destination", ""))
    if not view.has("exchanges", entry, source) or not view.has(f"{kind}s", entry, destination):
        raise _Refused("its source or its destination is not there: it is passed over")
    key, arguments = str(entry.get("routing_key", "")), entry.get("arguments") or {}
    is_there = view.is_bound(
        str(entry["vhost"]), source, _signature(kind, destination, key, arguments)
    )
    return ({} if is_there else None), {}


def _signature(kind: str, destination: str, key: str, arguments: Any) -> str:
    return json.dumps([kind, destination, key, arguments], sort_keys=True)


_SECTIONS: dict[str, _Look] = {
    "users": _user,
    "vhosts": _vhost,
    "permissions": _permission,
    "topic_permissions": _topic_permission,
    "parameters": _parameter,
    "global_parameters": _global_parameter,
    "policies": _policy,
    "queues": _queue,
    "exchanges": _exchange,
    "bindings": _binding,
}
_OF_ONE_VHOST = frozenset({"parameters", "policies", "queues", "exchanges", "bindings"})
_MADE = frozenset({"users", "vhosts", "queues", "exchanges"})
_NEVER_REPLACED = frozenset({"queues", "exchanges"})
