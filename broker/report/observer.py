"""Every event of the broker that is worth a log line, as a typed method.

The core calls these and never logs; `broker.report.log` turns them into structlog events, tests record them. Nothing
here is called per message. Implementations must not raise. Fixed vocabulary: this file.
"""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """What happened: a method is named by a noun and a verb in the past tense."""

    def connection_accepted(self, connection: str) -> None:
        """A socket was accepted."""

    def connection_authenticated(self, connection: str, user: str, vhost: str, client: str) -> None:
        """connection.open succeeded."""

    def login_refused(self, connection: str, mechanism: str, reason: str) -> None:
        """A login failed; the reason is for the log only."""

    def connection_closed(self, connection: str, user: str, vhost: str, reason: str) -> None:
        """A connection ended; empty reason for a clean close."""

    def connection_failed(self, connection: str, reply_code: int, text: str, user: str) -> None:
        """We close a connection because of an error; empty user when nobody has logged in."""

    def channel_failed(
        self, connection: str, channel: int, reply_code: int, text: str, method: str, user: str
    ) -> None:
        """We close a channel because of an error; `method` is empty when no method of the client's caused it."""

    def consumer_timed_out(
        self, connection: str, channel: int, consumer: str, queue: str, tag: int, timeout_ms: int
    ) -> None:
        """A delivery was not acknowledged in time; its channel is closed."""

    def bug_found(self, connection: str, error: BaseException) -> None:
        """An exception that nothing in the broker should raise: the connection is closed with 541."""

    def queue_fault(self, vhost: str, queue: str, kind: str, reason: str) -> None:
        """The disk refuses what one queue needs; it is tried again until it does not."""

    def queue_fault_over(self, vhost: str, queue: str, kind: str) -> None:
        """The disk serves a queue again."""

    def alarm_set(self, resource: str, detail: str) -> None:
        """A resource alarm went on: publishers are blocked; `detail` says how much there is of it and its limit."""

    def alarm_cleared(self, resource: str, detail: str) -> None:
        """A resource alarm went off."""

    def change_made(self, user: str, method: str, path: str, body: str) -> None:
        """Somebody changed the node through the HTTP API or with burrowctl; `body` is "" where the path says enough."""

    def node_starting(self, version: str, name: str, data_dir: str, config_files: str) -> None:
        """The start begins, with these settings."""

    def limits_known(self, memory: str, disk: str, files: str, sockets: int) -> None:
        """The limits that this node works with, and how far they are."""

    def dead_letter_cycle_cut(self, vhost: str, queue: str) -> None:
        """Messages are dropped because they come round to this queue without a reject: said once for each queue."""

    def dead_letter_impossible(self, vhost: str, queue: str, reason: str) -> None:
        """Messages of this queue are dropped: their new routing key is beyond what the wire carries. Said once."""

    def shovel_running(self, vhost: str, name: str) -> None:
        """Both links of a shovel are open, and it consumes."""

    def shovel_failed(self, vhost: str, name: str, reason: str) -> None:
        """A shovel's links could not be opened, or one ended; it tries again, if it is to."""

    def shovel_ended(self, vhost: str, name: str) -> None:
        """A shovel has moved what it was to move, and is gone."""

    def cluster_connected(self, address: str, server: str) -> None:
        """There is a connection to the cluster that keeps replicated queues."""

    def cluster_lost(self, reason: str) -> None:
        """There is none any more, or could not be made; the node goes on trying."""

    def cluster_refuses(self, text: str) -> None:
        """There is a connection, and the servers refuse what it is for: once for each kind, while that goes on."""

    def stream_lost(self, vhost: str, queue: str, messages: int | None) -> None:
        """A queue's stream was deleted, though not by its queue's deletion, and was made anew, empty.

        `messages` are those that it had when it was last looked at; None where it was not.
        """

    def definition_not_shared(self, kind: str, key: str, reason: str) -> None:
        """The servers do not take a definition: it is taken back, or stays at this front-end alone."""

    def definitions_lost(self, count: int) -> None:
        """The servers have so many agreed definitions no more that nobody has deleted; they are offered again."""

    def migration_began(self, vhost: str, queue: str) -> None:
        """A classic queue's messages go to the quorum queue that it is to be, from their first or after a start."""

    def migration_waits(self, vhost: str, queue: str, reason: str) -> None:
        """A start cannot go on with one."""

    def migration_ended(self, vhost: str, queue: str, moved_count: int) -> None:
        """It is a quorum queue, or was deleted; so many messages were moved since the node's start."""

    def policy_without_effect(self, vhost: str, policy: str, reason: str) -> None:
        """A policy was set whose keys of mirroring do nothing here."""

    def queue_not_mirrored(self, vhost: str, queue: str, reason: str) -> None:
        """A policy would have a new queue made a quorum queue, and it is a classic one."""

    def record_unreadable(self, vhost: str, queue: str, sequence: int, reason: str) -> None:
        """A message in a queue's stream is none of ours; it is left out."""

    def definition_unusable(self, kind: str, key: str, reason: str) -> None:
        """A stored definition could not be used and was left alone."""

    def definition_skipped(self, vhost: str, kind: str, name: str) -> None:
        """A queue or exchange of an imported document is not made, since only a server gives such names."""

    def queue_undefined(self, vhost: str, queue: str, directory: str, messages: int) -> None:
        """A start has found messages of a queue that nobody has deleted and no definition tells of; they are kept.

        `queue` is empty where the file with its name is damaged, too.
        """

    def configuration_warning(self, text: str) -> None:
        """The configuration has a key that RabbitMQ knows and that is not honoured here."""

    def http_listener_started(self, part: str, address: str, is_tls: bool) -> None:
        """The HTTP API or the metrics listen; `part` is RabbitMQ's word for it."""

    def listener_started(self, address: str, protocol: str) -> None:
        """A socket listens."""

    def node_started(self, name: str, codec: str, seconds: float) -> None:
        """Ready for clients."""

    def application_stopped(self, name: str) -> None:
        """Stopped, and the process waits for the next start."""

    def node_stopped(self, name: str) -> None:
        """Stopped cleanly."""

    def store_failed(self, reason: str) -> None:
        """The store gave up: connections are closed, and the process ends."""

    def invariant_broken(self, sentence: str) -> None:
        """A check of the node's own state failed (BURROWMQ_VERIFY=1): the process ends. Any thread."""
