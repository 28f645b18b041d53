"""Dead letters that are dropped on their way, as the log hears of them: of each queue once, however many they are.

A queue with a TTL that dead-letters to itself drops all that it is given, thousands a second, for as long as nobody
looks. One line says it all; who set that up finds it, and everything else that the log has. State: what was said, at
most `SAID_MAX` of it, after which all is forgotten and said anew: names may be of queues that come and go. One for each
of those who pass dead letters on (`broker.vhost.republish`, `broker.vhost.sure_letters`).

Source: rabbit_dead_letter (log_cycle_once).
"""

from __future__ import annotations

from burrowmq.broker.report.observer import Observer

SAID_MAX = 1000


class DroppedLetters:
    """Those of one virtual host."""

    def __init__(self, vhost: str, observer: Observer) -> None:
        self._vhost = vhost
        self._observer = observer
        self._said: set[tuple[str, str]] = set()

    def cycle_cut(self, queue: str) -> None:
        """One came round to a queue without a reject."""
        if self._is_new(queue, ""):
            self._observer.dead_letter_cycle_cut(self._vhost, queue)

    def impossible(self, queue: str, reason: str) -> None:
        """One of a queue's is beyond what the wire carries."""
        if self._is_new(queue, reason):
            self._observer.dead_letter_impossible(self._vhost, queue, reason)

    def _is_new(self, queue: str, reason: str) -> bool:
        what = queue, reason
        if what in self._said:
            return False
        if len(self._said) >= SAID_MAX:
            self._said.clear()
        self._said.add(what)
        return True
