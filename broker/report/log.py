"""The observers' structlog implementation: lines for people (plain) or programs (JSON).

One method per event, constant names, fixed keys (connection, channel, vhost, queue, user). Never per message, never
bodies or passwords. Called on the loop, and by the store from its threads: structlog's loggers are safe there. It is
loaded with the first sink: a node that logs nowhere (`burrowmq.Broker`) starts without it.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import structlog

LEVELS = {
    "debug": 10, "info": 20, "notice": 20, "warning": 30, "error": 40, "critical": 50,
    "alert": 50, "emergency": 50, "none": 50,
}  # fmt: skip


def _console(_: Any, __: str, event: structlog.typing.EventDict) -> str:
    stamp = event.pop("timestamp", "")
    level = event.pop("level", "info")
    text = event.pop("event", "")
    trace = event.pop("exception", None)
    pairs = " ".join(f"{key}={_plain(value)}" for key, value in event.items())
    line = f"{stamp} [{level}] {text}" + (f" {pairs}" if pairs else "")
    return line + ("\n" + trace if trace else "")


def _plain(value: object) -> str:
    text = str(value)
    text = (
        text.encode("unicode_escape", "backslashreplace").decode()
        if not text.isprintable()
        else text
    )
    return repr(text) if " " in text or not text else text


def make_logger(level: str = "info", fmt: str = "plain", stream: TextIO | None = None) -> Any:
    """A logger of that level; `fmt` is plain or json. Cheap: no global structlog configuration."""
    import structlog  # noqa: PLC0415 - see above

    renderer: Any = structlog.processors.JSONRenderer() if fmt == "json" else _console
    logger = structlog.wrap_logger(
        structlog.WriteLogger(stream or sys.stderr),
        processors=[
            *([_drop] if level == "none" else []),
            structlog.processors.add_log_level,
            _Stamp(),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
    )
    return logger.bind()  # what is wrapped would be put together anew for each line


class _Stamp:
    """The local time, as `%Y-%m-%d %H:%M:%S.%f%z`; what stays the same for a second is written once in it.

    structlog's own takes as long as all else that becomes of a line, and who connects and leaves costs two lines.
    """

    def __init__(self) -> None:
        self._parts = (-1, "", "")

    def __call__(
        self, _: Any, __: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        parts = self._parts  # one object: lines are written by several threads
        if parts[0] != second:
            local = time.localtime(second)
            parts = second, time.strftime("%Y-%m-%d %H:%M:%S", local), time.strftime("%z", local)
            self._parts = parts
        event["timestamp"] = f"{parts[1]}.{nanoseconds // 1000:06d}{parts[2]}"
        return event


def _drop(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    from structlog import DropEvent  # noqa: PLC0415 - see above

    raise DropEvent


class LogObserver:
    """Observer and StoreObserver that write log lines."""

    def __init__(self, logger: Any) -> None:
        self._log = logger

    def set_level(self, level: str) -> None:
        """The least severe level that is logged from now on, where the logger can change it."""
        self._log.set_level(level)

    # -- broker -------------------------------------------------------------------------------------------------

    def connection_accepted(self, connection: str) -> None:
        """A socket was accepted."""
        self._log.debug("connection_accepted", connection=connection)

    def connection_authenticated(self, connection: str, user: str, vhost: str, client: str) -> None:
        """connection.open succeeded."""
        self._log.info(
            "connection_opened", connection=connection, user=user, vhost=vhost, client=client
        )

    def login_refused(self, connection: str, mechanism: str, reason: str) -> None:
        """A login failed."""
        self._log.error("login_refused", connection=connection, mechanism=mechanism, reason=reason)

    def connection_closed(self, connection: str, user: str, vhost: str, reason: str) -> None:
        """A connection ended."""
        if reason:
            self._log.warning(
                "connection_closed", connection=connection, user=user, vhost=vhost, reason=reason
            )
        else:
            self._log.info("connection_closed", connection=connection, user=user, vhost=vhost)

    def connection_failed(self, connection: str, reply_code: int, text: str, user: str) -> None:
        """We close a connection because of an error."""
        self._log.error(
            "connection_failed", connection=connection, user=user, reply_code=reply_code, text=text
        )

    def channel_failed(
        self, connection: str, channel: int, reply_code: int, text: str, method: str, user: str
    ) -> None:
        """We close a channel because of an error."""
        self._log.error(
            "channel_closed",
            connection=connection,
            channel=channel,
            user=user,
            method=method,
            reply_code=reply_code,
            text=text,
        )

    def consumer_timed_out(
        self, connection: str, channel: int, consumer: str, queue: str, tag: int, timeout_ms: int
    ) -> None:
        """A delivery was not acknowledged in time."""
        self._log.warning(
            "consumer_timed_out",
            connection=connection,
            channel=channel,
            consumer=consumer,
            queue=queue,
            delivery_tag=tag,
            timeout_ms=timeout_ms,
        )

    def bug_found(self, connection: str, error: BaseException) -> None:
        """An exception that nothing in the broker should raise."""
        self._log.error("bug_found", connection=connection, exc_info=error)

    def alarm_set(self, resource: str, detail: str) -> None:
        """A resource alarm went on."""
        effect = "publishers are blocked until it clears"
        self._log.warning("alarm_set", resource=resource, detail=detail, effect=effect)

    def alarm_cleared(self, resource: str, detail: str) -> None:
        """A resource alarm went off."""
        self._log.warning("alarm_cleared", resource=resource, detail=detail)

    def change_made(self, user: str, method: str, path: str, body: str) -> None:
        """Somebody changed the node."""
        more = {"body": body} if body else {}
        self._log.info("change_made", user=user, method=method, path=path, **more)

    def node_starting(self, version: str, name: str, data_dir: str, config_files: str) -> None:
        """The start begins."""
        self._log.info(
            f"Starting BurrowMQ {version}", node=name, data_dir=data_dir, config_files=config_files
        )

    def start_failed(self, reason: str) -> None:
        """The node cannot start."""
        self._log.critical("start_failed", reason=reason)

    def limits_known(self, memory: str, disk: str, files: str, sockets: int) -> None:
        """The limits that this node works with, and how far they are."""
        self._log.info("limits_known", memory=memory, disk=disk, files=files, sockets=sockets)

    def dead_letter_cycle_cut(self, vhost: str, queue: str) -> None:
        """Messages are dropped because they come round without a reject."""
        text = "a dead letter came round to this queue, and was dropped; this is said once for each queue"
        self._log.warning("dead_letter_cycle_cut", vhost=vhost, queue=queue, text=text)

    def dead_letter_impossible(self, vhost: str, queue: str, reason: str) -> None:
        """Messages are dropped because their new routing key is beyond what the wire carries."""
        self._log.warning("dead_letter_impossible", vhost=vhost, queue=queue, reason=reason)

    def shovel_running(self, vhost: str, name: str) -> None:
        """Both links of a shovel are open, and it consumes."""
        self._log.info("shovel_running", vhost=vhost, shovel=name)

    def shovel_failed(self, vhost: str, name: str, reason: str) -> None:
        """A shovel's links could not be opened, or one ended."""
        self._log.warning("shovel_failed", vhost=vhost, shovel=name, reason=reason)

    def shovel_ended(self, vhost: str, name: str) -> None:
        """A shovel has moved what it was to move."""
        self._log.info("shovel_ended", vhost=vhost, shovel=name)

    def cluster_connected(self, address: str, server: str) -> None:
        """There is a connection to the cluster."""
        self._log.info("cluster_connected", address=address, server=server)

    def cluster_lost(self, reason: str) -> None:
        """There is none any more, or could not be made."""
        self._log.warning("cluster_lost", reason=reason)

    def cluster_refuses(self, text: str) -> None:
        """The servers refuse what the connection is for."""
        self._log.error("cluster_refuses", reason=text)

    def stream_lost(self, vhost: str, queue: str, messages: int | None) -> None:
        """A queue's stream was deleted and made anew."""
        self._log.warning(
            "stream_lost",
            vhost=vhost,
            queue=queue,
            messages="not known" if messages is None else messages,
            text="its stream was deleted at the servers with all messages, and is made anew, empty",
        )

    def definition_not_shared(self, kind: str, key: str, reason: str) -> None:
        """The servers do not take a definition."""
        self._log.error("definition_not_shared", kind=kind, key=key, reason=reason)

    def definitions_lost(self, count: int) -> None:
        """The servers have lost some."""
        self._log.error(
            "definitions_lost",
            count=count,
            text="the servers have lost definitions that were agreed; this node gives them its own again",
        )

    def migration_began(self, vhost: str, queue: str) -> None:
        """A classic queue is on its way to be a quorum queue."""
        self._log.info("migration_began", vhost=vhost, queue=queue)

    def migration_waits(self, vhost: str, queue: str, reason: str) -> None:
        """A start cannot go on with one."""
        self._log.error("migration_waits", vhost=vhost, queue=queue, reason=reason)

    def migration_ended(self, vhost: str, queue: str, moved_count: int) -> None:
        """It is one, or was deleted."""
        self._log.info("migration_ended", vhost=vhost, queue=queue, moved_count=moved_count)

    def policy_without_effect(self, vhost: str, policy: str, reason: str) -> None:
        """A policy was set whose keys of mirroring do nothing here."""
        self._log.warning("policy_without_effect", vhost=vhost, policy=policy, reason=reason)

    def queue_not_mirrored(self, vhost: str, queue: str, reason: str) -> None:
        """A policy would have a new queue made a quorum queue, and it is a classic one."""
        self._log.warning("queue_not_mirrored", vhost=vhost, queue=queue, reason=reason)

    def record_unreadable(self, vhost: str, queue: str, sequence: int, reason: str) -> None:
        """A message in a queue's stream is left out."""
        self._log.error(
            "record_unreadable", vhost=vhost, queue=queue, sequence=sequence, reason=reason
        )

    def definition_unusable(self, kind: str, key: str, reason: str) -> None:
        """A stored definition could not be used."""
        self._log.error("definition_unusable", kind=kind, key=key, reason=reason)

    def definition_skipped(self, vhost: str, kind: str, name: str) -> None:
        """A queue or exchange of an imported document is not made."""
        reason = "names that begin with amq. are the server's"
        self._log.warning("definition_skipped", vhost=vhost, kind=kind, name=name, reason=reason)

    def queue_undefined(self, vhost: str, queue: str, directory: str, messages: int) -> None:
        """A start has found messages of a queue without a definition."""
        self._log.error(
            "queue_undefined",
            vhost=vhost,
            queue=queue,
            directory=directory,
            messages=messages,
            text="its definition is lost: declare the queue to have its messages, or to delete it",
        )

    def configuration_warning(self, text: str) -> None:
        """The configuration has a key that is not honoured here."""
        self._log.warning("configuration_warning", text=text)

    def http_listener_started(self, part: str, address: str, is_tls: bool) -> None:
        """The HTTP API or the metrics listen."""
        kind = "HTTPS" if is_tls else "HTTP (non-TLS)"
        self._log.info(f"{part}: {kind} listener started on {address}")

    def listener_started(self, address: str, protocol: str) -> None:
        """A socket listens."""
        # Testcontainers and others wait for these words.
        kind = "TLS (SSL)" if protocol.endswith("ssl") else "TCP"
        self._log.info(f"started {kind} listener on {address}", protocol=protocol)

    def node_started(self, name: str, codec: str, seconds: float) -> None:
        """Ready for clients."""
        self._log.info("Server startup complete", node=name, codec=codec, seconds=round(seconds, 3))

    def application_stopped(self, name: str) -> None:
        """Stopped, and the process waits for the next start."""
        self._log.info("application_stopped", node=name, effect="start_app starts it again")

    def node_stopped(self, name: str) -> None:
        """Stopped cleanly."""
        self._log.info("node_stopped", node=name)

    def memory_exhausted(self) -> None:
        """The process is about to end."""
        effect = "the process ends at once, and its next start finds what was confirmed"
        self._log.critical("memory_exhausted", effect=effect)

    def store_failed(self, reason: str) -> None:
        """The store gave up."""
        effect = "the node ends, and its next start finds what was confirmed"
        self._log.critical("store_failed", reason=reason, effect=effect)

    def invariant_broken(self, sentence: str) -> None:
        """A self-check failed."""
        self._log.critical("invariant_broken", sentence=sentence)

    # -- store --------------------------------------------------------------------------------------------------

    def segment_rolled(self, store: str, segment: int) -> None:
        """A segment was sealed."""
        self._log.debug("segment_rolled", store=store, segment=segment)

    def segment_deleted(self, store: str, segment: int) -> None:
        """A segment's file is gone."""
        self._log.debug("segment_deleted", store=store, segment=segment)

    def compaction_finished(
        self, store: str, segment: int, freed_bytes: int, copied_bytes: int
    ) -> None:
        """A segment was rewritten."""
        self._log.debug(
            "compaction_finished",
            store=store,
            segment=segment,
            freed_bytes=freed_bytes,
            copied_bytes=copied_bytes,
        )

    def compaction_failed(self, store: str, reason: str) -> None:
        """See StoreObserver."""
        self._log.error("compaction_failed", store=store, reason=reason)

    def record_lost(self, place: str, seq_or_handle: int, reason: str) -> None:
        """A record could not be read."""
        self._log.error("record_lost", place=place, id=seq_or_handle, reason=reason)

    def file_damaged(self, path: str, what: str) -> None:
        """The scrubber found damage that belongs to no message."""
        self._log.error("file_damaged", path=path, what=what)

    def scrub_finished(self, bytes_read: int, found: int, unread: int, duration_ms: float) -> None:
        """Everything that is stored was read again."""
        log = self._log.warning if found or unread else self._log.info
        log(
            "scrub_finished",
            bytes=bytes_read,
            found=found,
            unread_queues=unread,
            duration_ms=int(duration_ms),
        )

    def message_set_aside(self, vhost: str, queue: str, seq: int, name: str, reason: str) -> None:
        """See StoreObserver."""
        self._log.error(
            "message_set_aside",
            vhost=vhost,
            queue=queue,
            id=seq,
            quarantine=name,
            reason=reason,
        )

    def queue_fault(self, vhost: str, queue: str, kind: str, reason: str) -> None:
        """See Observer."""
        self._log.error("queue_fault", vhost=vhost, queue=queue, kind=kind, reason=reason)

    def queue_fault_over(self, vhost: str, queue: str, kind: str) -> None:
        """See Observer."""
        self._log.warning("queue_fault_over", vhost=vhost, queue=queue, kind=kind)

    def index_unreadable(self, place: str, reason: str) -> None:
        """See StoreObserver."""
        self._log.error("index_unreadable", place=place, reason=reason)

    def recovery_finished(self, clean: bool, messages: int, lost: int, duration_ms: float) -> None:
        """The store is open."""
        self._log.info(
            "recovery_finished",
            clean=clean,
            messages=messages,
            lost=lost,
            duration_ms=round(duration_ms, 1),
        )

    def sync_failed(self, path: str, reason: str) -> None:
        """An fdatasync failed."""
        self._log.error("sync_failed", path=path, reason=reason)

    def space_exhausted(self, reason: str, is_exhausted: bool) -> None:
        """The disk is full, or writable again."""
        if is_exhausted:
            self._log.error("space_exhausted", reason=reason)
        else:
            self._log.warning("space_exhausted_over")
