"""The changes that the API can make to the node.

Owns no state; called by API handlers after they have checked the caller's tags. The only module of management that
calls the broker's methods: a rename there is one edit here. Refusals of the broker become `ApiError` with its own
words. Changes of durable things are staged in the batch being collected; `durable` waits for it, before the reply.
"""

from __future__ import annotations

import asyncio
import gc
import os
from datetime import UTC, datetime
from typing import Any

from broker import certificate, inspect, parameters
from broker.auth import (
    ALGORITHMS,
    SALT_SIZE,
    LoginRefused,
    Permission,
    TopicPermission,
    algorithm_of,
    hash_password,
)
from broker.definition_document import ImportRefused, import_steps
from broker.definitions import create_vhost, put_vhost
from broker.parameter_rules import (
    RefusedValue,
    ValidationFailed,
    default_queue_type,
    make_policy,
    user_limits,
    vhost_limits,
)
from broker.pattern import BadPattern, compile_pattern
from broker.product import VERSION
from broker.queue.settings import QueueDeclaration, with_default_type
from broker.resource import row_key
from broker.trace import Tracer
from broker.vhost import Edge, ExchangeDeclaration
from management import status
from management.reply import ApiError, Call, bad_request, not_found
from protocol.table import from_json
from storage.errors import StorageError

COMMIT_TIMEOUT_S = 10.0
# Entries of a definitions document that are taken over before other work gets its turn.
ENTRIES_PER_TURN = 50


def refusal_of(error: Exception) -> ApiError | None:
    """The HTTP answer to a refusal by the broker; None for any other error."""
    if isinstance(error, LoginRefused):
        return ApiError(401, "not_authorised", str(error))
    if isinstance(error, ValidationFailed | RefusedValue):
        return bad_request(str(error))
    if isinstance(error, ImportRefused):
        return bad_request(error.reason)
    if isinstance(error, BadPattern):
        return bad_request(str(error))
    code = getattr(error, "reply_code", None)
    if code is None:
        return None
    text = str(error)
    if int(code) == 404:
        return ApiError(404, "not_found", text)
    if int(code) == 403:
        return ApiError(401, "not_authorised", text)
    return bad_request(text)


def authenticate(node: Any, name: str, password: str, *, is_loopback: bool = True) -> Any:
    """The user. Raises: LoginRefused."""
    return node.auth.authenticate(name, password, is_loopback=is_loopback)


def require(call: Call, vhost: str, access: str, kind: str, name: str) -> None:
    """The AMQP permission of the caller; burrowctl has every one. Raises: AccessRefused."""
    if call.caller.is_trusted:
        return
    call.node.auth.check(call.node.auth.users[call.caller.name], vhost, access, kind, name)


def _staged(node: Any) -> None:
    """Something may have been staged in the store, or become deliverable: let the turn end see to it."""
    node.turn.touch()


async def durable(node: Any) -> None:
    """Return when everything staged so far is on disk. Raises: ApiError 503 when the store does not answer."""
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_committed() -> None:
        if not waiter.done():
            waiter.set_result(None)

    node.engine.require_sync()
    node.turn.when_committed(node.engine.epoch, on_committed)
    node.turn.touch()
    try:
        await asyncio.wait_for(waiter, COMMIT_TIMEOUT_S)
    except TimeoutError as error:
        raise ApiError(
            503, "store_failed", "the change was not written to disk; see the log"
        ) from error


# -- queues, exchanges, bindings ---------------------------------------------------------------------------------


def queue_of(node: Any, vhost: str, name: str) -> Any:
    """The queue object. Raises: ApiError 404."""
    found = node.vhosts[vhost].queues.get(name)
    if found is None:
        raise not_found()
    return found


def declare_queue(
    node: Any, vhost: str, name: str, durable: bool, auto_delete: bool, arguments: dict[str, Any]
) -> bool:
    """Whether it is new. Raises: AmqpError."""
    owner = node.vhosts[vhost]
    is_new = name not in owner.queues
    if is_new and name.startswith("amq."):
        raise ApiError(401, "not_authorised", "Access refused.")
    owner.declare_queue(
        QueueDeclaration(
            name=name,
            durable=durable,
            auto_delete=auto_delete,
            arguments=with_default_type(from_json(arguments), owner.default_queue_type),
        )
    )
    _staged(node)
    return is_new


def purge(node: Any, vhost: str, name: str) -> int:
    """Drop the ready messages."""
    purged = int(queue_of(node, vhost, name).purge())
    _staged(node)
    return purged


def delete_queue(node: Any, vhost: str, name: str) -> None:
    """Delete a queue with what is in it."""
    node.vhosts[vhost].delete_queue(queue_of(node, vhost, name))
    _staged(node)


def declare_exchange(
    node: Any,
    vhost: str,
    name: str,
    kind: str,
    flags: tuple[bool, bool, bool],
    arguments: dict[str, Any],
) -> bool:
    """Whether it is new; `flags` are durable, auto_delete and internal. Raises: AmqpError."""
    owner = node.vhosts[vhost]
    is_new = name not in owner.exchanges
    if is_new and (name.startswith("amq.") or not name):
        raise ApiError(401, "not_authorised", "Access refused.")
    if kind not in {"direct", "fanout", "topic", "headers"}:
        raise bad_request(f"unknown exchange type '{kind}'")
    durable, auto_delete, internal = flags
    owner.declare_exchange(
        ExchangeDeclaration(
            name=name,
            type=kind,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=from_json(arguments),
        )
    )
    _staged(node)
    return is_new


def delete_exchange(node: Any, vhost: str, name: str, if_unused: bool) -> None:
    """Delete one of the user's exchanges. Raises: ApiError, AmqpError."""
    if not name or name.startswith("amq."):
        raise ApiError(401, "not_authorised", "Access refused.")
    owner = node.vhosts[vhost]
    owner.delete_exchange(owner.exchanges[name], if_unused=if_unused)
    _staged(node)


def bind(
    node: Any,
    vhost: str,
    source: str,
    destination: tuple[str, str],
    key: str,
    arguments: dict[str, Any],
) -> None:
    """Bind; `destination` is (kind, name). Raises: AmqpError."""
    kind, name = destination
    edge = Edge(
        source,
        "queue" if kind == "queue" else "exchange",
        name,
        key.encode("utf-8", "surrogateescape"),
        from_json(arguments),
    )
    node.vhosts[vhost].bind(edge)
    _staged(node)


def unbind(node: Any, vhost: str, binding: Any) -> None:
    """Remove a binding that `inspect.find_binding` found."""
    node.vhosts[vhost].unbind(
        Edge(
            binding.source.name,
            binding.destination_kind,
            binding.destination.name,
            binding.routing_key,
            binding.arguments,
        ),
        # An exclusive queue's owner may do so over AMQP; an administrator may here.
        getattr(binding.destination, "exclusive_owner", None),
    )
    _staged(node)


# -- vhosts and users --------------------------------------------------------------------------------------------


def add_vhost(node: Any, name: str, creator: str | None) -> None:
    """Make a vhost; its creator may do everything in it."""
    create_vhost(name, node.vhosts, node.make_vhost, node.engine.definitions)
    if creator is not None:
        put_permission(node, name, creator, [".*", ".*", ".*"])
    _staged(node)


def delete_vhost(node: Any, name: str) -> None:
    """Delete a vhost with everything in it; its connections are closed."""
    close_sessions(inspect.each_session(node, name), f"vhost '{name}' is deleted")
    owner = node.vhosts.pop(name)
    for queue in list(owner.queues.values()):
        owner.delete_queue(queue)
    for exchange in [each for each in owner.exchanges.values() if each.name]:
        owner.delete_exchange(exchange)
    parameters.forget_vhost(owner)
    node.auth.delete_vhost(name)
    node.engine.definitions.delete("vhost", row_key(name))
    node.engine.delete_vhost(name)
    _staged(node)


def queue_type(value: Any) -> str:
    """A vhost's default queue type. Raises: RefusedValue."""
    return default_queue_type(value)


def describe_vhost(
    node: Any,
    name: str,
    description: str | None,
    tags: list[str] | None,
    queue_type: str | None = None,
) -> None:
    """Change a vhost's metadata; None keeps what there is."""
    owner = node.vhosts[name]
    if queue_type is not None:
        owner.default_queue_type = queue_type
    if description is not None:
        owner.description = description
    if tags is not None:
        owner.tags = tags
    put_vhost(owner, node.engine.definitions)
    _staged(node)


def set_tracing(node: Any, name: str, is_on: bool) -> None:
    """Turn the firehose of a vhost on or off; not kept over a restart, as in RabbitMQ."""
    owner = node.vhosts[name]
    if is_on != (owner.tracer is not None):
        owner.tracer = Tracer(owner, node.name, node.turn) if is_on else None


def put_user(
    node: Any,
    name: str,
    password: str | None,
    password_hash: str | None,
    tags: list[str],
    algorithm: str | None = None,
) -> bool:
    """Make or change a user; whether it is new. Neither password nor hash: no password logs in. Raises: ApiError."""
    is_new = name not in node.auth.users
    if password:
        node.auth.set_password(name, password)
        node.auth.set_tags(name, tuple(tags))
    else:
        password_hash = password_hash or ""
        try:
            algorithm = algorithm or algorithm_of(password_hash)
        except ValueError as error:
            raise bad_request(["not_base64", password_hash]) from error
        if algorithm not in ALGORITHMS:
            raise bad_request(["unknown_hashing_algorithm", algorithm])
        node.auth.put_user(name, password_hash, tuple(tags), algorithm)
    _staged(node)
    return is_new


def delete_user(node: Any, name: str) -> None:
    """Remove a user with all permissions; the user's connections are closed."""
    node.auth.delete_user(name)
    chosen = [session for session in node.sessions if inspect.user_name(session) == name]
    close_sessions(chosen, f"user '{name}' is deleted")
    _staged(node)


def put_permission(node: Any, vhost: str, user: str, patterns: list[str]) -> None:
    """Say what a user may do in a vhost: configure, write, read. Raises: BadPattern."""
    configure, write, read = patterns
    node.auth.set_permission(vhost, user, Permission(configure=configure, write=write, read=read))
    _staged(node)


def delete_permission(node: Any, vhost: str, user: str) -> None:
    """Take a user's access to a vhost."""
    node.auth.clear_permission(vhost, user)
    _staged(node)


def put_topic_permission(node: Any, vhost: str, user: str, exchange: str, keys: list[str]) -> None:
    """Say which routing keys a user may write and read with an exchange. Raises: ApiError."""
    write, read = keys
    for pattern in keys:
        try:
            compile_pattern(pattern)
        except BadPattern as error:
            raise bad_request(["invalid_regexp", pattern, [str(error), error.place]]) from error
    node.auth.set_topic_permission(vhost, user, exchange, TopicPermission(write=write, read=read))
    _staged(node)


def delete_topic_permission(node: Any, vhost: str, user: str, exchange: str | None) -> None:
    """Remove a user's topic permissions in a vhost, all or those of one exchange."""
    node.auth.clear_topic_permissions(vhost, user, exchange)
    _staged(node)


# -- policies, parameters, limits, definitions -------------------------------------------------------------------


def put_policy(
    node: Any, vhost: str, name: str, document: dict[str, Any], *, is_operator: bool
) -> bool:
    """Make or replace a policy; whether it is new. Raises: ValidationFailed."""
    policy = make_policy(name, document, is_operator=is_operator)
    is_new = parameters.set_policy(node.vhosts[vhost], policy, is_operator=is_operator)
    _staged(node)
    return is_new


def delete_policy(node: Any, vhost: str, name: str, *, is_operator: bool) -> None:
    """Remove a policy. Raises: ApiError 404."""
    if not parameters.clear_policy(node.vhosts[vhost], name, is_operator=is_operator):
        raise not_found()
    _staged(node)


def put_parameter(node: Any, vhost: str, component: str, name: str, value: Any) -> bool:
    """Set a parameter; whether it is new. Raises: ValidationFailed, RefusedValue."""
    is_new = parameters.set_parameter(node.vhosts[vhost], component, name, value)
    _staged(node)
    return is_new


def delete_parameter(node: Any, vhost: str, component: str, name: str) -> None:
    """Remove a parameter. Raises: ApiError 404, RefusedValue."""
    if not parameters.clear_parameter(node.vhosts[vhost], component, name):
        raise not_found()
    _staged(node)


def put_global_parameter(node: Any, name: str, value: Any) -> bool:
    """Set a global parameter; whether it is new."""
    is_new: bool = node.parameters.put(name, value)
    _staged(node)
    return is_new


def delete_global_parameter(node: Any, name: str) -> None:
    """Remove a global parameter. Raises: ApiError 404."""
    if not node.parameters.remove(name):
        raise not_found()
    _staged(node)


def set_vhost_limits(node: Any, vhost: str, limits: Any) -> None:
    """Replace a vhost's limits. Raises: ValidationFailed."""
    parameters.set_vhost_limits(node.vhosts[vhost], vhost_limits(limits))
    _staged(node)


def set_user_limits(node: Any, user: str, limits: Any) -> None:
    """Replace a user's limits. Raises: RefusedValue."""
    node.auth.set_limits(user, user_limits(limits))
    _staged(node)


async def import_definitions(node: Any, document: dict[str, Any], vhost: str | None) -> None:
    """Take over a definitions document, giving way to other work every few entries. Raises: ImportRefused."""
    for count, _ in enumerate(import_steps(node, document, vhost), start=1):
        if count % ENTRIES_PER_TURN == 0:
            _staged(node)
            await asyncio.sleep(0)
    _staged(node)


# -- connections and the node ------------------------------------------------------------------------------------


def sessions_named(node: Any, name: str) -> list[Any]:
    """The sessions with a connection name (one, unless addresses are reused)."""
    return [session for session in node.sessions if session.name == name]


def sessions_with_pid(node: Any, pid: str) -> list[Any]:
    """The session behind a pid that a list showed."""
    return [session for session in node.sessions if inspect.pid(node, session) == pid]


def close_sessions(sessions: list[Any], reason: str) -> int:
    """Close connections as an operator would: 320 CONNECTION_FORCED with just the reason."""
    for session in sessions:
        session.force_close(reason)
    return len(sessions)


def backup_refusal(node: Any, directory: str) -> str:
    """Why a directory is no place for a backup, empty when it is one. Looks at files."""
    try:
        node.engine.check_backup(directory)
    except (StorageError, OSError) as error:
        return str(error)
    return ""


def start_backup(node: Any, directory: str) -> Any:
    """Have everything staged so far backed up; the job. Raises: ApiError 400."""
    labels = {
        "product": "BurrowMQ",
        "version": VERSION,
        "node": node.name,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        job = node.engine.start_backup(directory, labels)
    except StorageError as error:
        raise bad_request(str(error)) from error
    _staged(node)
    return job


LOG_LEVELS = ("debug", "info", "warning", "error", "critical", "none")


def set_memory_watermark(node: Any, relative: float | None, absolute_bytes: int) -> None:
    """Move the memory high watermark: a share of the memory there is, or a number of bytes. In force at once."""
    node.monitor.limits.set_memory(relative=relative, absolute_bytes=absolute_bytes)
    node.monitor.look()


def set_disk_free_limit(node: Any, relative: float | None, absolute_bytes: int) -> None:
    """Move the limit of free disk space: a multiple of the memory there is, or a number of bytes."""
    limits = node.monitor.limits
    if relative is not None:
        absolute_bytes = int(limits.memory_total_bytes * relative)
    limits.disk_free_bytes = absolute_bytes
    node.monitor.look()


def set_cluster_name(node: Any, name: str) -> None:
    """Give the cluster another name."""
    node.set_cluster_name(name)


def set_log_level(node: Any, level: str) -> bool:
    """Log from this level on; False when there is no such level."""
    if level not in LOG_LEVELS:
        return False
    node.observer.set_level(level)
    return True


def hash_of(node: Any, password: str) -> str:
    """The hash of a password as definitions carry it."""
    return hash_password(password, node.entropy.token(SALT_SIZE))


async def accept_connections(node: Any, is_accepting: bool) -> None:
    """Close the AMQP listeners, or open them again; connections stay as they are. Raises: ApiError 400."""
    if not is_accepting:
        node.acceptor.suspend()
        return
    try:
        await node.acceptor.resume()
    except OSError as error:
        raise bad_request(f"cannot listen: {error}") from error


def collect_garbage() -> None:
    """Have Python look for cycles in everything."""
    gc.collect()


def os_environment() -> dict[str, str]:
    """Variables of RabbitMQ's and our names; the value of a secret is left out."""
    return {
        name: "(hidden)" if any(word in name for word in ("PASS", "COOKIE", "SECRET")) else value
        for name, value in os.environ.items()
        if name.startswith(("RABBITMQ_", "BURROWMQ_"))
    }


def certificates(node: Any) -> list[dict[str, Any]]:
    """The listeners with TLS, the names of their files replaced by what is in them; never a key."""
    rows = []
    for row in status.certificates(node):
        for name in ("certfile", "cacertfile"):
            if name in row:
                row[name] = certificate.pem_blocks(row[name])
        rows.append(row)
    return rows


LOG_TAIL_BYTES = 1 << 20


def log_tail(node: Any, count: int) -> list[str]:
    """The last lines of the log file. Raises: ApiError 400 when the log goes to standard error only."""
    path = node.config.log.file_path
    if path is None:
        raise bad_request("the log goes to standard error, where this node cannot read it again")
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_TAIL_BYTES))
            lines = file.read(LOG_TAIL_BYTES).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise bad_request(f"{path} cannot be read: {error.strerror}") from error
    return lines[-count:] if count else []


def stop_node(node: Any) -> None:
    """Ask for a clean stop, as SIGTERM does."""
    node.request_stop()
