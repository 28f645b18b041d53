"""/api/burrowmq/*: what burrowctl needs and RabbitMQ's API does not have.

Owns no state. `list/KIND` gives rows of exactly the columns asked for, in their order, with rabbitmqctl's column names,
process ids and AMQP tables that keep order and types (with `octets=true` the octets of their texts as well). Everything
here is for administrators.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.product import RABBITMQ_VERSION
from burrowmq.broker.rules.policy import PolicyKind
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers import quorum, status
from burrowmq.management.answers.reply import (
    Call,
    Route,
    bad_request,
    dump,
    no_content,
    not_found,
    number_of,
    reply,
    reply_long,
)

Row = dict[str, Any]

# rabbitmqctl's names for columns where the HTTP API has other ones.
RENAMED: dict[str, dict[str, str]] = {
    "bindings": {
        "source_name": "source",
        "destination_name": "destination",
        "destination_kind": "destination_type",
    },
}


def _tables(call: Call) -> inspect.Table:
    """How AMQP tables are given: texts as they are, or by their octets."""
    return inspect.octets if call.flag("octets") else inspect.typed


def _exchanges(call: Call, vhost: str | None) -> Iterable[Row]:
    return inspect.exchanges(call.node, vhost, _tables(call))


def _bindings(call: Call, vhost: str | None) -> Iterator[Row]:
    tables = _tables(call)

    def by_name(arguments: Row) -> Any:
        """The arguments of a binding by name, the order in which RabbitMQ keeps them."""
        return tables(dict(sorted(arguments.items())))

    for row in inspect.bindings(call.node, vhost, by_name):
        row["source_kind"] = "exchange"
        yield row


def _consumers(call: Call, vhost: str | None) -> Iterable[Row]:
    return inspect.consumers(call.node, vhost, _tables(call))


def _connections(call: Call, vhost: str | None) -> Iterator[Row]:
    for row in inspect.connections(call.node, None, _tables(call)):
        row["protocol"] = {"tuple": [0, 9, 1]}
        yield row


def _channels(call: Call, vhost: str | None) -> Iterable[Row]:
    return inspect.channels(call.node)


def _vhosts(call: Call, vhost: str | None) -> Iterable[Row]:
    return inspect.vhosts(call.node)


def _users(call: Call, vhost: str | None) -> Iterator[Row]:
    for row in inspect.users(call.node):
        yield {"user": row["name"], "tags": row["tags"]}


def _permissions(call: Call, vhost: str | None) -> Iterable[Row]:
    user = call.query("user") or None
    return inspect.each_permission(call.node, _known_vhost(call, vhost), user)


def _known_vhost(call: Call, vhost: str | None) -> str | None:
    if vhost is not None and vhost not in call.node.vhosts:
        raise bad_request(f"Virtual host '{vhost}' does not exist")
    return vhost


def _policies(call: Call, vhost: str | None) -> Iterator[Row]:
    return _by_priority(inspect.policies(call.node, _known_vhost(call, vhost)))


def _operator_policies(call: Call, vhost: str | None) -> Iterator[Row]:
    found = inspect.policies(call.node, _known_vhost(call, vhost), is_operator=True)
    return _by_priority(found)


def _by_priority(rows: Iterable[Row]) -> Iterator[Row]:
    for row in sorted(rows, key=lambda row: row["priority"]):
        yield {**row, "definition": dump(row["definition"]).decode()}


def _parameters(call: Call, vhost: str | None) -> Iterator[Row]:
    for row in inspect.parameters(call.node, _known_vhost(call, vhost)):
        yield {**row, "value": dump(row["value"]).decode()}


def _global_parameters(call: Call, vhost: str | None) -> Iterator[Row]:
    for row in inspect.global_parameters(call.node):
        yield {**row, "value": dump(row["value"]).decode()}


def _topic_permissions(call: Call, vhost: str | None) -> Iterable[Row]:
    user = call.query("user") or None
    return inspect.each_topic_permission(call.node, _known_vhost(call, vhost), user)


_POLICY_KINDS: dict[str, PolicyKind] = {"queue": "queue", "exchange": "exchange"}


def _matching_policies(call: Call, vhost: str | None) -> list[Row]:
    """Policies and operator policies that match an object's name, those in force first."""
    owner = None if vhost is None else call.node.vhosts.get(vhost)
    kind = _POLICY_KINDS.get(call.query("kind", "queue"))
    if owner is None or kind is None:
        raise bad_request(f"no such virtual host or kind: {vhost}, {call.query('kind', 'queue')}")
    queue = owner.queues.get(call.query("name"))
    if kind == "queue" and queue is not None:
        kind = owner.settings.kind(queue.name, queue.arguments)
    rows: list[Row] = []
    for is_operator in (False, True):
        found = owner.policies.of_kind(is_operator=is_operator)
        rows += [
            {**row, "definition": dump(row["definition"]).decode()}
            for row in inspect.policies(call.node, vhost, is_operator=is_operator)
            if found[row["name"]].matches(kind, call.query("name"))
        ]
    return sorted(rows, key=lambda row: -row["priority"])


LISTS: dict[str, Callable[[Call, str | None], Iterable[Row]]] = {
    "exchanges": _exchanges,
    "bindings": _bindings,
    "connections": _connections,
    "channels": _channels,
    "consumers": _consumers,
    "vhosts": _vhosts,
    "users": _users,
    "permissions": _permissions,
    "policies": _policies,
    "operator_policies": _operator_policies,
    "matching_policies": _matching_policies,
    "parameters": _parameters,
    "global_parameters": _global_parameters,
    "topic_permissions": _topic_permissions,
}


async def listing(call: Call) -> web.StreamResponse:
    """Rows as lists of values. A vhost that does not exist has no rows, as in RabbitMQ."""
    kind, vhost = call.path("kind"), call.query("vhost") or None
    columns = [name for name in call.query("columns").split(",") if name]
    if not columns:
        raise bad_request("columns are missing")
    found: Iterable[Row]
    if kind == "queues":
        unknown = [name for name in columns if name not in inspect.CTL_QUEUE_COLUMNS]
        if unknown:
            raise bad_request(f"Info key(s) {','.join(unknown)} are not supported")
        found = inspect.iter_queues(call.node, vhost, columns, _tables(call))
    elif kind in LISTS:
        found = LISTS[kind](call, vhost)
    else:
        raise not_found()
    names = RENAMED.get(kind, {})
    keys = [names.get(name, name) for name in columns]
    return await reply_long(
        call,
        found,
        lambda row: [row.get(key) for key in keys],
        {"columns": columns, "rows": None},
    )


async def node_status(call: Call) -> web.Response:
    """The status document."""
    return reply(status.document(call.node))


async def cluster(call: Call) -> web.Response:
    """The cluster that keeps quorum queues; null without one. Asks it: takes seconds where something is down."""
    return reply(await quorum.cluster_document(call.node))


async def rebalance(call: Call) -> web.Response:
    """Share out who leads queues of a `kind` whose names and virtual hosts fit; gives how many each leads then."""
    body = await call.body()
    kind, vhosts, queues = (
        str(body.get(key, default))
        for key, default in (("kind", "all"), ("vhost_pattern", ""), ("queue_pattern", ""))
    )
    return reply(await commands.leaders.rebalance(call.node, kind, vhosts, queues))


async def ready(call: Call) -> web.Response:
    """Answers once the listeners are open, which is after recovery; the node's name and process."""
    return reply({"node": call.node.name, "pid": os.getpid(), "version": RABBITMQ_VERSION})


async def environment(call: Call) -> web.Response:
    """The configuration as the node has it, and key by key with where each value comes from; passwords left out."""
    process = call.host.process
    rows = [row._asdict() for row in process.effective]
    return reply({"burrowmq": _settings(process.config), "effective": rows})


def _settings(config: object) -> Any:
    if isinstance(config, set | frozenset):
        config = sorted(config)
    if isinstance(config, list | tuple):
        return [_settings(item) for item in config]
    if not is_dataclass(config):
        return inspect.plain(config)
    names = (field.name for field in fields(config) if "password" not in field.name)
    return {name: _settings(getattr(config, name)) for name in names}


async def shutdown(call: Call) -> web.Response:
    """Stop the node as SIGTERM does, after this reply has left."""
    asyncio.get_running_loop().call_later(0.05, commands.node.stop_process, call.host)
    return reply({"node": call.host.process.name, "pid": os.getpid()}, 202)


async def process(call: Call) -> web.Response:
    """The process, whether the application runs in it or not: `state` says so."""
    return reply(status.process_document(call.host))


async def stop_app(call: Call) -> web.Response:
    """Stop the application; answers when it has stopped."""
    await commands.node.stop_application(call.host)
    return no_content()


async def start_app(call: Call) -> web.Response:
    """Start the application again; answers when clients can connect, or with the reason why they cannot."""
    await commands.node.start_application(call.host)
    return no_content()


async def close_connections(call: Call) -> web.Response:
    """Close connections: by pid, by vhost, by user or all, at most `limit`."""
    body = await call.body()
    reason = str(body.get("reason", ""))
    limit = number_of(body, "limit") if "limit" in body else 0
    if not 0 <= limit < 1 << 62:
        raise bad_request(["not_positive", "limit"])
    if "pid" in body:
        chosen = commands.sessions.sessions_with_pid(call.node, str(body["pid"]))
    else:
        chosen = inspect.each_session(call.node, body.get("vhost"))
        if "user" in body:
            chosen = [session for session in chosen if inspect.user_name(session) == body["user"]]
    chosen = list(itertools.islice(chosen, limit or None))
    return reply({"closed": await commands.sessions.close_sessions(chosen, reason)})


async def authenticate(call: Call) -> web.Response:
    """Whether a user name and password are right."""
    body = await call.body()
    commands.users.authenticate(
        call.node, str(body.get("username", "")), str(body.get("password", ""))
    )
    return reply({"status": "ok"})


async def delete_queue(call: Call) -> web.Response:
    """Delete a queue; says how many ready messages went with it."""
    body = await call.body()
    vhost, name = str(body.get("vhost", "/")), str(body.get("name", ""))
    if vhost not in call.node.vhosts:
        raise not_found()
    found = commands.topology.queue_of(call.node, vhost, name)
    await commands.commit.counted(found)
    if body.get("if_unused") and len(found.consumers):
        raise bad_request("Queue is in use")
    if body.get("if_empty") and found.ready_count:
        raise bad_request("Queue is not empty")
    ready_count = int(found.ready_count)
    await commands.topology.end_queue(call.node, found)
    return reply({"messages": ready_count})


async def set_vhost_limits(call: Call) -> web.Response:
    """Replace all limits of a vhost."""
    vhost, body = call.target_vhost(), await call.body()
    commands.parameters.set_vhost_limits(call.node, vhost, body.get("value"))
    return no_content()


async def set_user_limits(call: Call) -> web.Response:
    """Add to the limits of a user, or remove some: `{"value": {...}}`, `{"clear": "all" or a name}`."""
    user, body = call.path("user"), await call.body()
    if user not in call.node.auth.users:
        raise not_found()
    limits, cleared = dict(call.node.auth.users[user].limits), body.get("clear")
    if cleared == "all":
        limits = {}
    elif cleared is not None:
        limits.pop(str(cleared), None)
    value = body.get("value", {})
    given = {**limits, **value} if isinstance(value, dict) else value
    commands.users.set_user_limits(call.node, user, given)
    return no_content()


ROUTES = (
    Route("GET", "/api/burrowmq/list/{kind}", listing, "administrator"),
    Route("GET", "/api/burrowmq/status", node_status, "administrator"),
    Route("GET", "/api/burrowmq/cluster", cluster, "monitoring"),
    Route("POST", "/api/burrowmq/rebalance", rebalance, "administrator"),
    Route("GET", "/api/burrowmq/ready", ready),
    Route("GET", "/api/burrowmq/process", process, "management", True),
    Route("GET", "/api/burrowmq/environment", environment, "administrator", True),
    Route("POST", "/api/burrowmq/shutdown", shutdown, "administrator", True),
    Route("POST", "/api/burrowmq/stop-app", stop_app, "trusted", True),
    Route("POST", "/api/burrowmq/start-app", start_app, "trusted", True),
    Route(
        "POST", "/api/burrowmq/close-connections", close_connections, "administrator", is_kept=False
    ),
    Route("POST", "/api/burrowmq/authenticate", authenticate, "administrator", is_kept=False),
    Route("POST", "/api/burrowmq/delete-queue", delete_queue, "administrator"),
    Route("POST", "/api/burrowmq/vhost-limits/{vhost}", set_vhost_limits, "administrator"),
    Route("POST", "/api/burrowmq/user-limits/{user}", set_user_limits, "administrator"),
)
