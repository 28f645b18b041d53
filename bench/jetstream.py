"""A front-end without AMQP: what `bench.cluster` and the tests of `cluster` do through a link, its windows and its pulls.

One link, whose deliveries go by their subjects to the requests that wait, to windows and to consumers; one timer, for
whatever of these is due first. State owned: all of that. Used within one event loop.
"""

import asyncio
import os
from collections.abc import Callable, Sequence

from burrowmq.cluster.api import Document, Refusal, Request
from burrowmq.cluster.intake import Acks, Pulls
from burrowmq.cluster.link import Link, server
from burrowmq.cluster.questions import Questions
from burrowmq.cluster.tickets import Ticket
from burrowmq.cluster.window import Window, WindowLimits
from burrowmq.cluster.wire import PAYLOAD_MAX, Delivered, Greeting

TICK_S = 0.1


class Refused(Exception):
    """JetStream does not do what was asked."""


class FrontEnd:
    """Made within a running loop; `urls` are those of the servers, the first is tried first."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._inbox = b"_INBOX.%b" % os.urandom(6).hex().encode()
        self.name = os.urandom(4).hex().encode()
        self.link = Link([server(url) for url in urls], self, name="bench", version="0")
        self._questions = Questions(self._inbox + b".q")
        self._windows: dict[bytes, tuple[Window, Callable[[Ticket], None]]] = {}
        self._pulls: dict[int, tuple[Pulls, Callable[[list[Delivered]], None]]] = {}
        self.acks = Acks()
        self._timer: asyncio.TimerHandle | None = None
        self._is_stirred = False
        self.is_open = asyncio.Event()
        self.losses: list[str] = []
        self._payload_max = PAYLOAD_MAX
        self.drops_answers = False
        """Answers to publishes are thrown away: as if the connection had broken before they came."""

    def now_ms(self) -> float:
        return self._loop.time() * 1000

    async def start(self) -> None:
        self.link.subscribe(self._inbox + b".>", 1)
        self.link.start()
        await self.is_open.wait()

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self.link.close()

    async def ask(self, request: Request) -> Document:
        """The answer, asked again while no leader is there to give one. Raises: Refused."""
        for _ in range(300):
            await self.is_open.wait()
            found: asyncio.Future[Document | Refusal] = self._loop.create_future()
            self.link.write(self._questions.ask(request, found.set_result, self.now_ms()))
            self._stir()
            answer = await found
            if not isinstance(answer, Refusal):
                return answer
            if answer.code not in (0, 503, 500) and answer.error not in (10005, 10008):
                raise Refused(f"{request.subject.decode()}: {answer}")
            await asyncio.sleep(0.1)
        raise Refused(f"{request.subject.decode()}: no leader")

    def open_window(
        self,
        subject: bytes,
        done: Callable[[Ticket], None],
        kind: type[Window] = Window,
        limits: WindowLimits | None = None,
    ) -> Window:
        number = b"%d" % (len(self._windows) + 1)
        inbox = b"%b.w.%b" % (self._inbox, number)
        window = kind(subject, b"%b-%b" % (self.name, number), inbox, limits)
        window.payload_max = self._payload_max
        self._windows[number] = window, done
        return window

    def open_pulls(
        self, stream: str, consumer: str, taken: Callable[[list[Delivered]], None]
    ) -> Pulls:
        sid = len(self._pulls) + 2
        inbox = b"%b.%d" % (self._inbox.replace(b"_INBOX", b"_PULLS"), sid)
        self.link.subscribe(inbox + b".*", sid)
        pulls = Pulls(stream, consumer, inbox)
        self._pulls[sid] = pulls, taken
        self._stir()
        return pulls

    def publish(self, window: Window, payloads: Sequence[bytes]) -> Ticket:
        ticket = window.add(payloads, self.now_ms())
        self._stir()
        return ticket

    def ack(self, replies: list[bytes]) -> None:
        self.acks.add(replies, self.now_ms())
        self._stir()

    # -- LinkOwner --------------------------------------------------------------------------------------------------

    def opened(self, info: Greeting) -> None:
        self._payload_max = info.max_payload
        for window, _ in self._windows.values():
            window.payload_max = info.max_payload
        self.is_open.set()
        self._stir()

    def received(self, deliveries: list[Delivered]) -> None:
        now_ms = self.now_ms()
        start = len(self._inbox) + 1
        taken: dict[int, list[Delivered]] = {}
        for each in deliveries:
            sid = each.sid
            if sid != 1:
                if self._pulls[sid][0].delivered(each, now_ms):
                    taken.setdefault(sid, []).append(each)
                continue
            kind, _, rest = each.subject[start:].partition(b".")
            number = rest.partition(b".")[0]
            if kind == b"w":
                if not self.drops_answers:
                    self._windows[number][0].answered(each, now_ms)
            else:
                self._questions.answered(each)
        for sid, found in taken.items():
            self._pulls[sid][1](found)
        self._work()

    def drained(self) -> None:
        self._stir()

    def refused(self, text: str) -> None:
        self.losses.append(text)

    def lost(self, reason: str) -> None:
        self.losses.append(reason)
        self.is_open.clear()
        now_ms = self.now_ms()
        self._questions.lost()
        for window, _ in self._windows.values():
            window.lost(now_ms)
        for pulls, _ in self._pulls.values():
            pulls.lost()

    def failed(self, error: Exception) -> None:
        raise error

    # -- the end of a turn ------------------------------------------------------------------------------------------

    def _stir(self) -> None:
        if not self._is_stirred:
            self._is_stirred = True
            self._loop.call_soon(self._work)

    def _work(self) -> None:
        self._is_stirred = False
        now_ms = self.now_ms()
        self._questions.expire(now_ms)
        for window, done in list(self._windows.values()):
            window.expire(now_ms)
            if self.link.is_open:
                out = window.poll(now_ms)
                if out:
                    self.send_burst(out)
            for ticket in window.take_done():
                done(ticket)
        if self.link.is_open:
            parts = [pulls.poll(now_ms) for pulls, _ in self._pulls.values()]
            parts.append(self.acks.poll(now_ms))
            out = b"".join(parts)
            if out:
                self.link.write(out)
        self._set_timer(now_ms)

    def send_burst(self, octets: bytes) -> None:
        """Send what a window wants sent; tests send less."""
        self.link.write(octets)

    def _set_timer(self, now_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        due_ms = now_ms + TICK_S * 1000
        if self.link.is_open:
            for each in (self.acks, *(window for window, _ in self._windows.values())):
                due_ms = min(due_ms, each.due_ms() or due_ms)
        delay_s = max(0.0, (due_ms - now_ms) / 1000)
        self._timer = self._loop.call_later(delay_s, self._work)
