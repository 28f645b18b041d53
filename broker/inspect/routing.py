"""Where a message would go, and why it would not go elsewhere: a publish that is only told of.

`explain` asks the vhost for the route, as a publish does, and then walks the exchanges that the route goes through:
each binding is tried alone, in an exchange of the source's own type that has no other, so that the answer about it is
the one that routing gives. Only the words about what did not match are made here.

Owns no state. It is a generator so that a hundred thousand bindings cost nobody a pause: after each binding it yields,
and its caller decides when to give way. What changes meanwhile may be told of or not; the queues are those of the
moment of the question. Called by the UI's page of an exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import field
from functools import partial

from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.exchange.binding import Binding
from burrowmq.broker.exchange.headers import HeadersMatch, comparable
from burrowmq.broker.exchange.topic import HASH, STAR, split_words
from burrowmq.broker.inspect.topology import binding_row, implicit_binding_row
from burrowmq.broker.inspect.values import Row, plain
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.vhost.router import is_elsewhere, is_no_queue
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.protocol.properties import Properties
from burrowmq.protocol.table import FieldTable, type_name
from burrowmq.records import dataclass

ROWS_MAX = 200
"""Bindings of one exchange that are told of, of those that match and of those that do not; the rest are counted."""
QUEUES_MAX = 500
EXCHANGES_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A message that nobody sends; of the bindings that do not match, only those to `about` are told of."""

    routing_key: str
    headers: FieldTable = field(default_factory=dict)
    about: str = ""

    def keys(self) -> list[tuple[bytes, str]]:
        """The routing key and those of CC and BCC, each with where it comes from. Raises: PreconditionFailed."""
        found = [(_octets(self.routing_key), "routing key")]
        for name in ("CC", "BCC"):
            value = self.headers.get(name, [])
            if not isinstance(value, list):
                kind = type_name(value)
                raise PreconditionFailed(
                    f'invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}'
                )
            found += [(_octets(key), name) for key in value if isinstance(key, str)]
        return found


def explain(vhost: Vhost, exchange: Exchange, question: Question) -> Generator[None, None, Row]:
    """The queues that the message would reach, each with the bindings that lead there, and what did not match.

    Raises: PreconditionFailed for a CC or BCC header that is no list.
    """
    keys = question.keys()
    octets = tuple(key for key, _ in keys)
    look = partial(Properties, headers=question.headers)
    routed = [each for each in vhost.route(exchange, octets, look) if not _is_history(each)]
    queues = {target.name: _target(target) for target in routed[:QUEUES_MAX]}
    steps: list[Row] = []
    seen, waiting = {exchange.name}, [(exchange, "published to")]
    while waiting:
        current, how = waiting.pop(0)
        step: Row = {"exchange": current.name, "type": current.type, "how": how}
        following: list[tuple[str, str]] = []
        yield from _look(vhost, current, octets, question, step)
        for row in step["matched"]:
            if row["destination_type"] == "exchange":
                following.append((row["destination"], f"bound to '{current.name}'"))
            elif row["destination"] in queues:
                queues[row["destination"]]["by"].append(row)
        step["alternate"] = _alternate(vhost, current, is_taken=not step["matched_count"])
        if step["alternate"] and step["alternate"]["is_taken"]:
            following.append((step["alternate"]["name"], f"alternate of '{current.name}'"))
        for name, why in following:
            if name not in seen and name in vhost.exchanges:
                seen.add(name)
                waiting.append((vhost.exchanges[name], why))
        if len(steps) < EXCHANGES_MAX:
            steps.append(step)
    return {
        "exchange": exchange.name,
        "keys": [{"key": _text(key), "from": origin} for key, origin in keys],
        "queues": list(queues.values()),
        "queue_count": len(routed),
        "steps": steps,
        "step_count": len(seen),
    }


def _look(
    vhost: Vhost, exchange: Exchange, keys: Sequence[bytes], question: Question, step: Row
) -> Iterator[None]:
    """Try each binding of one exchange alone."""
    matched: list[Row] = []
    missed: list[Row] = []
    counts = {"matched_count": 0, "missed_count": 0}
    chosen = _chosen(exchange, keys, question.headers)
    for row_of, binding in _bindings(vhost, exchange, keys):
        yield
        if binding is None or chosen is None:
            key = None if binding is None else _matching(exchange, binding, keys, question.headers)
        else:
            key = keys[0] if binding.destination in chosen else None
        if binding is None or key is not None:
            counts["matched_count"] += 1
            # An exchange is walked to, however many queues come before it.
            if len(matched) < ROWS_MAX or (binding and binding.destination_kind == "exchange"):
                row = row_of()
                matched.append(
                    {**row, "matched_key": row["routing_key"] if key is None else _text(key)}
                )
            continue
        counts["missed_count"] += 1
        if len(missed) < ROWS_MAX and question.about in binding.destination.name:
            why = why_not(exchange, binding, keys, question.headers)
            missed.append({**row_of(), "why": why})
    step.update(counts, matched=matched, missed=missed)


def _bindings(
    vhost: Vhost, exchange: Exchange, keys: Sequence[bytes]
) -> Iterator[tuple[Callable[[], Row], Binding | None]]:
    """Each binding with what makes its row; the default exchange's implicit ones are those that the keys name."""
    if exchange.name:
        for binding in list(exchange.bindings):
            yield partial(binding_row, vhost, exchange.name, binding), binding
        return
    for key in dict.fromkeys(keys):
        for target in exchange.match(key, None):
            yield partial(implicit_binding_row, vhost, target.name), None


def _chosen(exchange: Exchange, keys: Sequence[bytes], headers: FieldTable) -> set[object] | None:
    """Where an exchange sends the message that looks at all its bindings together; by chance: anywhere."""
    if not exchange.picks_one:
        return None
    if exchange.is_each and exchange.ignores_keys and not exchange.arguments.get("hash-property"):
        return {binding.destination for binding in exchange.bindings}
    return set(exchange.match_all(tuple(keys), partial(Properties, headers=headers)))


def _is_history(target: object) -> bool:
    return is_no_queue(target) and not getattr(target, "name", "")


def _matching(
    exchange: Exchange, binding: Binding, keys: Sequence[bytes], headers: FieldTable
) -> bytes | None:
    """The first key that routing takes this binding for, None when there is none."""
    alone = type(exchange)(exchange.name)
    alone.bind(binding)
    for key in keys:
        if any(True for _ in alone.match(key, partial(Properties, headers=headers))):
            return key
    return None


def _target(target: QueuePort) -> Row:
    """A queue that is reached, here or at another front-end; or a consumer that waits for direct replies."""
    if is_no_queue(target):
        kind = "direct reply"
    else:
        kind = "queue elsewhere" if is_elsewhere(target) else "queue"
    return {"name": target.name, "kind": kind, "by": []}


def _alternate(vhost: Vhost, exchange: Exchange, *, is_taken: bool) -> Row | None:
    if exchange.alternate is None:
        return None
    exists = exchange.alternate in vhost.exchanges
    return {"name": exchange.alternate, "exists": exists, "is_taken": is_taken and exists}


def why_not(
    exchange: Exchange, binding: Binding, keys: Sequence[bytes], headers: FieldTable
) -> str:
    """One sentence on why a binding does not match."""
    if exchange.picks_one:
        return "the message's hash names another binding"
    if exchange.needs_headers:
        return _missing_headers(binding, headers)
    if exchange.type == "topic":
        return _other_words(binding.routing_key, keys)
    return f"wants the key '{_text(binding.routing_key)}' exactly"


def _missing_headers(binding: Binding, headers: FieldTable) -> str:
    """What of the binding's arguments the headers do not satisfy."""
    question = HeadersMatch(binding.arguments)
    told = []
    for name, wanted in question.wanted:
        if name not in headers:
            told.append(f"'{name}' is absent")
        elif wanted is not None and comparable(headers[name]) != wanted:
            is_told = _of(headers[name]), _of(binding.arguments[name])
            told.append(f"'{name}' is {is_told[0]}, not {is_told[1]}")
    if question.is_any:
        return "none of its headers fits" + (f": {'; '.join(told)}" if told else "")
    return "; ".join(told)


def _of(value: object) -> str:
    """A header's value with its type: 1 and "1" look alike otherwise."""
    return f"'{value}'" if isinstance(value, str) else f"{plain(value)}"


def _other_words(pattern: bytes, keys: Sequence[bytes]) -> str:
    """Where pattern and key part; with several keys, or a `#`, just the pattern."""
    wanted, found = split_words(pattern), split_words(keys[0])
    if len(keys) == 1 and HASH not in wanted:
        if len(wanted) != len(found):
            return f"wants {_words(len(wanted))}, the key has {len(found)}"
        for place, (word, given) in enumerate(zip(wanted, found, strict=True), start=1):
            if word not in {STAR, given}:
                return f"word {place} is '{_text(given)}', not '{_text(word)}'"
    return f"the pattern '{_text(pattern)}' does not cover the key"


def _words(count: int) -> str:
    return "1 word" if count == 1 else f"{count} words"


def _text(key: bytes) -> str:
    return key.decode("utf-8", "replace")


def _octets(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")
