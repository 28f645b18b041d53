"""Is a burst that is sent again stored once, in order? `python -m tests.cluster.resend [--cycles 20] [--window first-id]`.

Three real nats-servers, a stream of three replicas, one publisher that numbers its messages. A cycle breaks something while
bursts are on their way: the connection, before, within and after the octets of a burst, with the answer thrown away or
not; a server, by kill -9 or SIGSTOP: the stream's leader, the one that is connected, all. Then everything is put right, and
the whole stream is read. It has to hold the numbers of all confirmed messages, each once, in the order in which they were
published. With `--window` other ways of publishing are tried, to see what they do.

Prints a line for each cycle, and the sums. Exit status 1 when something was lost, doubled, invented or out of order.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from bench.jetstream import FrontEnd
from bench.nats_servers import NatsCluster, NatsServer
from burrowmq.cluster import api
from burrowmq.cluster.tickets import Ticket
from burrowmq.cluster.window import Window
from burrowmq.cluster.wire import Delivered, decode_headers, encode_publish

STREAM, SUBJECT = "Q_resend", "q.resend"
OPEN_MAX = 2_000
PADDING = b"x" * 200
QUIET_S = 60.0


class WithoutId(Window):
    """Atomic batches that nothing tells apart from those sent before."""

    def _encoded(self, burst):
        octets = super()._encoded(burst)
        return octets.replace(b"Nats-Msg-Id:", b"Nats-Msg-No:")


class SameBatchId(Window):
    """Atomic batches whose attempts have one batch id."""

    def _encoded(self, burst):
        attempt = burst.attempt
        octets = super()._encoded(burst)
        if len(burst.payloads) == 1:
            return octets
        own = b"%b.%d.%d\r\n" % (self._name, burst.number, attempt)
        first = b"%b.%d.%0*d\r\n" % (self._name, burst.number, len(b"%d" % attempt), 1)
        return octets.replace(b"Nats-Batch-Id: " + own, b"Nats-Batch-Id: " + first)


class EachWithId(Window):
    """No batches: each message has an id and an answer, and what has not been answered is sent again, in order."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._left: set[int] = set()

    def _encoded(self, burst):
        if burst.attempt == 1:
            self._left = set(range(len(burst.payloads)))
        parts = []
        for place in sorted(self._left):
            reply = b"%b.%d.%d.%d" % (self._inbox, burst.number, burst.attempt, place)
            head = api.single_headers(b"%b.%d.%d" % (self._name, burst.number, place))
            parts.append(encode_publish(self._subject, burst.payloads[place], reply, head))
        return b"".join(parts)

    def answered(self, delivered, now_ms):
        numbers = delivered.subject[len(self._inbox) + 1 :].split(b".")
        burst = self._burst
        if burst is None or numbers[0] != b"%d" % burst.number:
            return
        found = api.publish_answer(delivered)
        if found.outcome is api.Outcome.STORED:
            self._left.discard(int(numbers[2]))
            if not self._left:
                self._end(burst, is_stored=True)
        else:
            burst.next_ms = min(burst.next_ms, now_ms + 100)


WINDOWS: dict[str, type[Window]] = {
    "first-id": Window,
    "no-id": WithoutId,
    "same-batch-id": SameBatchId,
    "each-id": EachWithId,
}


class CutFrontEnd(FrontEnd):
    """Breaks its own connection at a burst when it is told to."""

    def __init__(self, urls: list[str], chance: random.Random) -> None:
        super().__init__(urls)
        self._chance = chance
        self._cut = ""
        self.has_cut = asyncio.Event()

    def cut_next(self, how: str) -> None:
        self._cut = how
        self.has_cut.clear()

    def send_burst(self, octets: bytes) -> None:
        cut, self._cut = self._cut, ""
        self.has_cut.set()
        if cut == "within":
            octets = octets[: self._chance.randrange(len(octets))]
        self.link.write(octets)
        if cut in ("within", "behind"):
            self.break_off()
        elif cut:  # the servers have it, and nobody hears of it
            self.drops_answers = True
            self._loop.call_later(self._chance.uniform(0.0, 0.02), self.break_off)

    def break_off(self) -> None:
        self.drops_answers = False
        if self.link._socket is not None:
            transport = self.link._socket.transport
            # What was written goes out, and the connection ends behind it: the servers get a burst whole, or cut off.
            transport.close()


@dataclass
class Tally:
    """What was published, and what was said of it."""

    next_number: int = 1
    confirmed: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    open_count: int = 0
    by_ticket: dict[Ticket, range] = field(default_factory=dict)
    longest_gap_s: float = 0.0
    last_s: float = 0.0
    is_answered: asyncio.Event = field(default_factory=asyncio.Event)

    def done(self, ticket: Ticket) -> None:
        numbers = self.by_ticket.pop(ticket)
        refused = {numbers[place] for place in ticket.refused}
        self.refused |= refused
        self.confirmed.update(set(numbers) - refused)
        self.open_count -= len(numbers)
        if not self.open_count:
            self.is_answered.set()
        now_s = time.monotonic()
        self.longest_gap_s = max(self.longest_gap_s, now_s - self.last_s)
        self.last_s = now_s


class Trial:
    """One cluster, one publisher."""

    def __init__(self, cluster: NatsCluster, options: argparse.Namespace) -> None:
        self.cluster = cluster
        self.chance = random.Random(options.seed)
        self.tally = Tally()
        self._kind = WINDOWS[options.window]
        self._duplicate_window_ms = options.duplicate_window_ms
        self.front = CutFrontEnd([each.url for each in cluster.servers], self.chance)
        self._publishing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.front.start()
        settings = api.StreamSettings(
            name=STREAM,
            subjects=(SUBJECT,),
            is_work_queue=False,
            duplicate_window_ms=self._duplicate_window_ms,
        )
        await self.front.ask(api.create_stream(settings))
        self.window = self.front.open_window(SUBJECT.encode(), self.tally.done, self._kind)
        self._go = asyncio.Event()
        self._publishing = asyncio.create_task(self._publish())

    async def _publish(self) -> None:
        tally = self.tally
        while True:
            await self._go.wait()
            while tally.open_count < OPEN_MAX and self._go.is_set():
                count = self.chance.choice((1, 1, 2, 10, 60, 200))
                numbers = range(tally.next_number, tally.next_number + count)
                tally.next_number += count
                tally.open_count += count
                tally.is_answered.clear()
                run = [b"%d %b" % (number, PADDING) for number in numbers]
                tally.by_ticket[self.front.publish(self.window, run)] = numbers
                if self.chance.random() < 0.2:
                    await asyncio.sleep(0.002)
            await asyncio.sleep(0.001)

    async def cycle(self, how: str) -> str:
        """Publish, break something, put it right, wait for all answers."""
        self.tally.last_s = time.monotonic()
        self.tally.longest_gap_s = 0.0
        self._go.set()
        await asyncio.sleep(self.chance.uniform(0.05, 0.3))
        detail = await HOW[how](self)
        await asyncio.sleep(0.1)
        self._go.clear()
        async with asyncio.timeout(QUIET_S):
            await self.tally.is_answered.wait()
        return detail

    def connected(self) -> NatsServer:
        """The server that the link has chosen, which is there."""
        label = self.front.link.server_label
        return next(each for each in self.cluster.servers if label and each.url.endswith(label))

    async def leader(self) -> NatsServer:
        state = await self.front.ask(api.stream_state(STREAM))
        return self.cluster.by_name(state["cluster"]["leader"])

    async def close(self) -> None:
        if self._publishing is not None:
            self._publishing.cancel()
            await asyncio.wait([self._publishing])
        await self.front.close()

    async def stored(self) -> list[int]:
        """The numbers in the stream, in its order."""
        found: list[int] = []
        sequence = 1
        state = await self.front.ask(api.stream_state(STREAM))
        last = state["state"]["last_seq"]
        reader = Reader(self.front)
        while sequence <= last:
            part, sequence = await reader.some(sequence)
            found += part
        assert len(found) == state["state"]["messages"], "read whole"
        return found


class Reader:
    """Reads a stream by direct gets of many."""

    def __init__(self, front: FrontEnd) -> None:
        self._front = front
        self._inbox = front._inbox + b".r"
        self._parts: list[Delivered] = []
        self._ended = asyncio.Event()
        front._questions, self._questions = self, front._questions

    def answered(self, delivered: Delivered) -> None:
        if not delivered.subject.startswith(self._inbox):
            self._questions.answered(delivered)
            return
        self._parts.append(delivered)
        if not delivered.payload:
            self._ended.set()

    def ask(self, *arguments):
        return self._questions.ask(*arguments)

    def expire(self, now_ms):
        self._questions.expire(now_ms)

    def lost(self):
        self._questions.lost()
        self._ended.set()

    async def some(self, sequence: int) -> tuple[list[int], int]:
        for _ in range(100):
            await self._front.is_open.wait()
            self._parts.clear()
            self._ended.clear()
            body = json.dumps({"seq": sequence, "batch": 1000}).encode()
            subject = f"$JS.API.DIRECT.GET.{STREAM}".encode()
            self._front.link.write(encode_publish(subject, body, self._inbox + b".1"))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await self._ended.wait()
            messages = [each for each in self._parts if each.payload]
            if messages:
                numbers = [int(each.payload.split(b" ", 1)[0]) for each in messages]
                last = decode_headers(messages[-1].headers).values["Nats-Sequence"]
                return numbers, int(last) + 1
            await asyncio.sleep(0.2)
        raise RuntimeError("the stream cannot be read")


async def _cut(trial: Trial) -> str:
    kinds = []
    for _ in range(10):
        kinds.append(trial.chance.choice(("within", "behind", "unheard", "unheard")))
        trial.front.cut_next(kinds[-1])
        await trial.front.has_cut.wait()
        await asyncio.sleep(trial.chance.uniform(0.0, 0.1))
    return f"{len(kinds)} cuts"


async def _gone(trial: Trial, servers: list[NatsServer], seconds: float) -> None:
    for each in servers:
        each.kill()
    await asyncio.sleep(seconds)
    for each in servers:
        await asyncio.to_thread(each.start)


async def _kill_leader(trial: Trial) -> str:
    leader = await trial.leader()
    is_cut = trial.chance.random() < 0.5
    if is_cut:  # and what was under way is unheard
        trial.front.cut_next("unheard")
        await asyncio.sleep(trial.chance.uniform(0.0, 0.01))
    await _gone(trial, [leader], trial.chance.uniform(0.0, 3.0))
    return f"killed {leader.name}{' after a cut' if is_cut else ''}"


async def _kill_connected(trial: Trial) -> str:
    await trial.front.is_open.wait()
    connected = trial.connected()
    await _gone(trial, [connected], trial.chance.uniform(0.0, 1.0))
    return f"killed {connected.name}, which is connected"


async def _kill_all(trial: Trial) -> str:
    await _gone(trial, trial.cluster.servers, 0.2)
    return "killed all"


async def _pause_leader(trial: Trial) -> str:
    leader = await trial.leader()
    leader.pause()
    seconds = trial.chance.uniform(2.0, 15.0)
    await asyncio.sleep(seconds)
    leader.resume()
    return f"stopped {leader.name} for {seconds:.1f} s"


async def _late(trial: Trial) -> str:
    """A server stops with a burst in its socket, and reads that when another has long taken it."""
    front = trial.front
    for _ in range(20):
        leader = await trial.leader()
        if not leader.url.endswith(front.link.server_label):
            break
        front.break_off()
        await asyncio.sleep(0.2)
    connected = trial.connected()
    connected.pause()
    await asyncio.sleep(8.0)
    connected.resume()
    await asyncio.sleep(1.0)
    return f"stopped {connected.name}, which is connected"


async def _step_down(trial: Trial) -> str:
    for _ in range(3):
        await trial.front.ask(api.step_down(STREAM))
        await asyncio.sleep(trial.chance.uniform(0.0, 0.5))
    return "3 step-downs"


HOW: dict[str, Callable[[Trial], Awaitable[str]]] = {
    "cut": _cut,
    "leader": _kill_leader,
    "connected": _kill_connected,
    "all": _kill_all,
    "pause": _pause_leader,
    "step-down": _step_down,
    "late": _late,
}


@dataclass(frozen=True)
class Verdict:
    """What the stream holds, beside what was said."""

    confirmed: int
    refused: int
    lost: int
    doubled: int
    invented: int
    out_of_order: int

    @property
    def is_sound(self) -> bool:
        return not (self.lost or self.doubled or self.invented or self.out_of_order)


def judge(tally: Tally, stored: list[int]) -> Verdict:
    there = set(stored)
    once = list(dict.fromkeys(stored))
    return Verdict(
        confirmed=len(tally.confirmed),
        refused=len(tally.refused),
        lost=len(tally.confirmed - there),
        doubled=len(stored) - len(there),
        invented=len(there - tally.confirmed - tally.refused),
        out_of_order=sum(after < before for before, after in pairwise(once)),
    )


async def run(directory: Path, options: argparse.Namespace) -> Verdict:
    hows = options.how.split(",")
    cluster = NatsCluster(directory)
    cluster.start()
    trial = Trial(cluster, options)
    try:
        await trial.start()
        for number in range(options.cycles):
            how = hows[number % len(hows)]
            resent = trial.window.resent_count
            detail = await trial.cycle(how)
            verdict = judge(trial.tally, await trial.stored())
            print(
                f"{number + 1:4} {how:10} {detail}: {trial.window.resent_count - resent} resent,"
                f" longest gap {trial.tally.longest_gap_s:.1f} s, {verdict}",
                flush=True,
            )
        return judge(trial.tally, await trial.stored())
    finally:
        await trial.close()
        cluster.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.resend", description=__doc__)
    parser.add_argument("--cycles", type=int, default=12)
    parser.add_argument("--how", default=",".join(HOW), help=f"of {', '.join(HOW)}; in turn")
    parser.add_argument("--window", choices=list(WINDOWS), default="first-id")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--duplicate-window-ms", type=int, default=120_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="burrowmq-resend-") as directory:
        verdict = asyncio.run(run(Path(directory), options))
    print(verdict)
    return 0 if verdict.is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
