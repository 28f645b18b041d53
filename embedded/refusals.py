"""Publishes that are to be refused: the next so many in a virtual host are answered with basic.nack and go nowhere.

It counts what comes on channels in confirm mode; on others there is nobody to answer. Nothing of it is there, for any
connection, before somebody asks for a refusal; from then on each connection's runs go through `take`
(`Session.intercept`). State owned: how many are left, by virtual host. Called on the loop.
"""

from __future__ import annotations

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.session.session import Session
from burrowmq.protocol.codec import PublishRun, body_bytes


class Refusals:
    """Those of one node."""

    def __init__(self) -> None:
        self._left: dict[str, int] = {}
        self._is_on = False

    def next(self, running: RunningNode, vhost: str, count: int) -> None:
        """Refuse the next `count` publishes in a virtual host, whatever was asked before."""
        self._left[vhost] = count
        if not self._is_on:
            self._is_on = True
            running.on_session = self._intercept
            for session in running.sessions:
                self._intercept(session)

    def forget(self, vhost: str) -> None:
        """A virtual host is gone."""
        self._left.pop(vhost, None)

    def _intercept(self, session: Session) -> None:
        session.intercept(self.take)

    def take(self, channel: Channel, run: PublishRun) -> PublishRun | None:
        """Refuse as many of a run as are left to be; the rest of it."""
        vhost = channel.vhost.name
        left, confirms = self._left.get(vhost, 0), channel.confirms
        if not left or confirms is None or channel.transaction is not None:
            return run
        count = min(left, len(run.messages))
        self._left[vhost] = left - count
        confirms.add_refused(list(range(count)), count, 0)
        channel.session.scheduler.confirms_dirty(channel)
        rest = run.messages[count:]
        if not rest:
            return None
        size = body_bytes(rest)
        return PublishRun(run.channel, rest[0].address, run.flags, rest, size, run.is_mixed)
