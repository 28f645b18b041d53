"""The node as a whole: its alarms' limits, its listeners, its log, its backups, its scrubber, its end.

Owns no state. What is set here holds until the next start, except the cluster's name, which is kept; a lasting setting
belongs into the configuration file.
"""

from __future__ import annotations

from datetime import UTC, datetime

from burrowmq.broker.node.node import START_ERRORS, Node, reason_of
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.product import VERSION
from burrowmq.management.answers.reply import ApiError, bad_request
from burrowmq.management.commands import sessions
from burrowmq.management.commands.commit import staged
from burrowmq.storage.errors import StorageError
from burrowmq.storage.types import BackupJob, JsonValue

LOG_LEVELS = ("debug", "info", "warning", "error", "critical", "none")


def set_memory_watermark(node: RunningNode, relative: float | None, absolute_bytes: int) -> None:
    """Move the memory high watermark: a share of the memory there is, or a number of bytes. In force at once."""
    node.monitor.limits.set_memory(relative=relative, absolute_bytes=absolute_bytes)
    node.monitor.look()


def set_disk_free_limit(node: RunningNode, relative: float | None, absolute_bytes: int) -> None:
    """Move the limit of free disk space: a multiple of the memory there is, or a number of bytes."""
    limits = node.monitor.limits
    if relative is not None:
        absolute_bytes = int(limits.memory_total_bytes * relative)
    limits.disk_free_bytes = absolute_bytes
    node.monitor.look()


def set_cluster_name(node: RunningNode, name: str) -> None:
    """Give the cluster another name."""
    node.set_cluster_name(name)


def set_log_level(node: RunningNode, level: str) -> bool:
    """Log from this level on; False when there is no such level."""
    if level not in LOG_LEVELS:
        return False
    node.observer.set_level(level)
    return True


async def accept_connections(node: RunningNode, is_accepting: bool) -> None:
    """Close the AMQP listeners, or open them again; connections stay as they are. Raises: ApiError 400."""
    if not is_accepting:
        node.acceptor.suspend()
        return
    try:
        await node.acceptor.resume()
    except OSError as error:
        raise bad_request(f"cannot listen: {error}") from error


async def maintain(node: RunningNode, is_on: bool) -> None:
    """Take no clients and close those that are connected, or take clients again. Raises: ApiError 400."""
    await accept_connections(node, not is_on)
    node.is_under_maintenance = is_on
    if is_on:
        await sessions.close_sessions(list(node.sessions), "Node was put into maintenance mode")


def watch_disk(node: RunningNode, is_on: bool) -> None:
    """Look at free disk space, or no more."""
    node.monitor.watch_disk(is_on=is_on)


def forget_logins(node: RunningNode) -> None:
    """Count logins from zero again."""
    node.metrics.auth_attempts = node.metrics.auth_failures = 0


def backup_refusal(node: RunningNode, directory: str) -> str:
    """Why a backup cannot go to a directory, empty when it can. Reads the directory."""
    try:
        node.engine.check_backup(directory)
    except (StorageError, OSError) as error:
        return str(error)
    return ""


def start_backup(node: RunningNode, directory: str) -> BackupJob:
    """Have everything staged so far backed up; the job. Raises: ApiError 400."""
    labels: dict[str, JsonValue] = {
        "product": "BurrowMQ",
        "version": VERSION,
        "node": node.name,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        job = node.engine.start_backup(directory, labels)
    except StorageError as error:
        raise bad_request(str(error)) from error
    staged(node)
    return job


def start_scrub(node: RunningNode) -> None:
    """Have everything that is stored read again, beginning now. Raises: ApiError 400."""
    try:
        node.engine.start_scrub()
    except StorageError as error:
        raise bad_request(str(error)) from error


async def stop_application(host: Node) -> None:
    """Stop the application and keep the process; harmless when stopped. Raises: ApiError 500."""
    if not await host.stop_application():
        raise ApiError(500, "not_clean", "the store was not closed cleanly; see the log")


async def start_application(host: Node) -> None:
    """Start it again; harmless when it runs. Raises: ApiError 500 with the reason why it cannot."""
    try:
        await host.start_application()
    except START_ERRORS as error:
        raise ApiError(500, "cannot_start", reason_of(error)) from error


def stop_process(host: Node) -> None:
    """Ask for a clean stop, as SIGTERM does."""
    host.request_stop()
