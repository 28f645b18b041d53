"""JetStream in memory, as far as a front-end can tell: streams, a consumer each, pulls, acknowledgements, batches.

For what real servers do not do when they are told to: answer late, not at all, or the same message twice. State owned:
the streams, and the links that were made with `FakeJetStream.link` in place of `cluster.link.Link`. What it has to say
is said in `run`, never within a call. `tests/cluster` meets real servers.
"""

from __future__ import annotations

import itertools
import json
import ssl
import sys
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from burrowmq.cluster.wire import Delivered, Greeting, decode_headers, encode_headers
from tests.support.fake_bucket import FakeBucket
from tests.support.fake_readers import Retained

_NOBODY = b"NATS/1.0 503\r\n\r\n"
"""Where nobody listens."""


class FakeLink:
    """What a front-end takes for its link."""

    is_congested = False
    server_label = "fake:4222"

    def __init__(self, world: FakeJetStream, owner: Any) -> None:
        self.world = world
        self.owner = owner
        self.is_open = False
        self.left: list[str] = []
        self.subscriptions: dict[int, bytes] = {}

    def start(self) -> None:
        self.open()

    async def close(self) -> None:
        self.is_open = False

    def abandon(self) -> None:
        self.is_open = False

    def open(self) -> None:
        self.is_open = True
        self.owner.opened(
            Greeting(
                server_id="N", server_name="n", version="2.15.2",
                max_payload=self.world.payload_max, has_headers=True, has_jetstream=True, needs_tls=False, needs_login=False,
                is_leaving=False, urls=(),
            )
        )  # fmt: skip

    def lose(self) -> None:
        """The connection breaks."""
        self.is_open = False
        self.world.forget(self)
        self.owner.lost("cut")

    def leave(self, reason: str) -> None:
        """It goes to the next server, whose world is the same."""
        self.left.append(reason)
        self.lose()
        self.open()

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def subscribe(self, subject: bytes, sid: int) -> None:
        self.subscriptions[sid] = subject.rstrip(b"*>")

    def unsubscribe(self, sid: int) -> None:
        self.subscriptions.pop(sid, None)

    def write(self, data: bytes) -> None:
        if self.is_open and data:
            self.world.take(self, data)

    def sid_of(self, subject: bytes) -> int:
        """Which subscription it comes by; 0 for one that has ended."""
        found = [sid for sid, start in self.subscriptions.items() if subject.startswith(start)]
        return found[0] if found else 0


_MADE = itertools.count(1)


class Stream:
    """One, and its consumer."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.created = str(next(_MADE))  # no other stream's, also where that is gone
        self.last = 0
        self.messages: dict[int, bytes] = {}
        """Those that are not acknowledged."""
        self.stored_ms: dict[int, int] = {}
        self.kept: dict[int, bytes] = {}
        """Those that are, until they are trimmed."""
        self.ready: deque[int] = deque()
        self.counts: dict[int, int] = {}
        self.pulls: deque[list[Any]] = deque()  # link, reply, how many
        self.octets_left: dict[tuple[FakeLink, bytes], int] = {}
        self.has_consumer = False
        self.is_pinned = False
        """Only one client at a time is given messages."""
        self.pin = ""
        self.pin_until_ms = 0
        self.pull_ids: dict[tuple[FakeLink, bytes], str | None] = {}  # None for those of no group
        self.retained = Retained()
        """What is in it if its oldest go, and who reads them."""

    @property
    def is_retained(self) -> bool:
        return bool(self.config["discard"] == "old")

    def state(self) -> dict[str, int]:
        held = self.messages | self.kept | self.retained.held
        return {
            "messages": len(held),
            "bytes": sum(map(len, held.values())),
            "first_seq": min(held, default=self.last + 1),
            "last_seq": self.last,
        }

    def consumer_state(self) -> dict[str, Any]:
        waiting = [sequence for sequence in self.messages if sequence in self.counts]
        delivered = max(self.counts, default=0)
        floor = min(waiting, default=max(delivered, self.state()["first_seq"] - 1) + 1) - 1
        return {
            "delivered": {"stream_seq": delivered},
            "ack_floor": {"stream_seq": floor},
            "num_ack_pending": len(waiting),
            "num_waiting": len(self.pulls),
            "priority_groups": [{"group": "sac", "pinned_client_id": self.pin}],
        }

    def acknowledge(self, sequence: int) -> None:
        payload = self.messages.pop(sequence)
        if self.config["retention"] == "limits":
            self.kept[sequence] = payload

    def purge(self, first: int) -> None:
        """Remove all before this one."""
        for held in (self.messages, self.kept):
            for sequence in [each for each in held if each < first]:
                del held[sequence]
        self.ready = deque(each for each in self.ready if each >= first)


class FakeJetStream:
    """The servers of one cluster."""

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        self.buckets: dict[str, FakeBucket] = {}
        self.links: list[FakeLink] = []
        self.said: list[bytes] = []
        """Payloads of what was published to reply subjects of deliveries, or b"ack"."""
        self.is_silent = False
        """They hear nothing."""
        self.is_leaderless = False
        """Streams are there, and nobody can say more of them."""
        self.loses_acks = False
        """Who leads consumers dies with each acknowledgement."""
        self.refused_streams: int | None = None
        """The error with which no stream is made."""
        self.payload_max = 1 << 20
        """What is larger ends the connection, and another one is made."""
        self.end_count = 0
        """How often that was so."""
        self.denied = ""
        """How subjects begin to which nothing may be published."""
        self.full_text = ""
        """Why nobody has room for anything, if so."""
        self._refused: list[tuple[FakeLink, str]] = []
        self.look_count = 0
        self.cluster: dict[str, Any] = {
            "leader": "n2",
            "replicas": [{"name": "n1"}, {"name": "n3"}],
        }
        """Who keeps each stream."""
        self.leaders: dict[str, str] = {}
        """Who leads it since it was handed over, by the stream's name."""
        self.unmoved: set[str] = set()
        """Streams whose leader does not hear that it is to hand over."""
        self.members: dict[str, list[str]] = {}
        """Who keeps it since that was changed, by the stream's name; the first leads it."""
        self.choices: list[str] = []
        """Servers of the cluster in the order in which they are given a stream; the last of its own lose it first."""
        self.wall_ms: Callable[[], int] = lambda: 0
        self._out: list[tuple[FakeLink, Delivered]] = []
        self._batches: dict[str, list[tuple[str, bytes]]] = {}
        self._pin_count = 0

    def link(self, _servers: Any, owner: Any, **_options: Any) -> FakeLink:
        """In place of `Link`."""
        self.links.append(FakeLink(self, owner))
        return self.links[-1]

    def forget(self, link: FakeLink) -> None:
        """Its connection is gone: so are its pulls, and what it was to be told."""
        self._out = [each for each in self._out if each[0] is not link]
        for stream in self.streams.values():
            stream.pulls = deque(pull for pull in stream.pulls if pull[0] is not link)
            for reader in stream.retained.readers.values():
                reader.pulls = deque(pull for pull in reader.pulls if pull[0] is not link)
        for bucket in self.buckets.values():
            for watcher in bucket.watchers.values():
                watcher.pulls = [pull for pull in watcher.pulls if pull[0] is not link]

    def run(self) -> bool:
        """Say what there is to say; whether there was anything."""
        for name, stream in self.streams.items():
            if stream.is_retained:
                stream.retained.let_go(stream.config, self.wall_ms())
                self._out += stream.retained.serve(name)
            else:
                self._serve(stream)
        for bucket in self.buckets.values():
            for link, inbox, subject, reply, headers, body in bucket.give():
                pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
                sid = link.sid_of(inbox)
                head = encode_headers(pairs)
                self._out.append((link, Delivered(sid, subject.encode(), reply, head, body)))
        refused, self._refused = self._refused, []
        for link, text in refused:
            if not text:
                self.end_count += 1
                link.lose()
                link.open()
            elif link.is_open:
                link.owner.refused(text)
        out, self._out = self._out, []
        for link in self.links:
            mine = [delivered for to, delivered in out if to is link]
            if mine and link.is_open:
                link.owner.received(mine)
        return bool(out or refused)

    def again(self, stream: Stream, sequence: int) -> None:
        """The server has waited for too long: the message is to be delivered once more."""
        stream.ready.appendleft(sequence)

    # -- what clients say -----------------------------------------------------------------------------------------

    def take(self, link: FakeLink, data: bytes) -> None:
        while data and not self.is_silent:
            line, _, data = data.partition(b"\r\n")
            words = line.split()
            size = int(words[-1])
            head = int(words[-2]) if words[0] == b"HPUB" else 0
            if size > self.payload_max:
                self._refused.append((link, ""))
                return
            body, data = data[:size], data[size + 2 :]
            if self.denied and words[1].decode().startswith(self.denied):
                text = f'Permissions Violation for Publish to "{words[1].decode()}"'
                self._refused.append((link, text))
                continue
            has_reply = len(words) == (5 if words[0] == b"HPUB" else 4)
            self._published(
                link, words[1].decode(), words[2] if has_reply else b"", body[:head], body[head:]
            )

    def _published(
        self, link: FakeLink, subject: str, reply: bytes, head: bytes, body: bytes
    ) -> None:
        words = subject.split(".")
        if subject.startswith(("burrowmq.", "_INBOX.")):
            self._pass_on(link, subject.encode(), reply, body)
        elif subject.startswith("$JS.ACK."):
            if not (self.loses_acks and not body):
                self._settled(self.streams.get(words[2]), int(words[5]), body)
                if reply:
                    self._say(link, reply, b"", b"", b"")
        elif subject.startswith("$KV."):
            bucket = self.buckets[f"KV_{words[1]}"]
            self._answer(link, reply, bucket.put(subject, decode_headers(head).values, body))
        elif subject.startswith("$JS.API.CONSUMER.MSG.NEXT.KV_"):
            watcher = self.buckets[words[5]].watchers.get(words[6])
            if watcher is not None:
                watcher.pulls.append([link, reply, json.loads(body)["batch"]])
        elif subject.startswith("$JS.API.CONSUMER.MSG.NEXT."):
            stream = self.streams.get(words[5])
            if stream is not None and stream.is_retained:
                self._read_ahead(stream, words[6], link, reply, json.loads(body)["batch"])
            else:
                self._pulled(link, words[5], reply, json.loads(body))
        elif subject.startswith("$JS.API.DIRECT.GET."):
            self._read(link, words[4], reply, json.loads(body)["seq"])
        elif subject.startswith("$JS.API."):
            if "LEADER" not in words or words[-1] not in self.unmoved:
                self._answer(link, reply, self._asked(words[2:], body))
        else:
            self._stored(link, subject, reply, decode_headers(head).values, body)

    def _pass_on(self, link: FakeLink, subject: bytes, reply: bytes, body: bytes) -> None:
        """Core NATS: to whoever listens now."""
        others = [each for each in self.links if each is not link and each.is_open]
        listening = [each for each in others if each.sid_of(subject)]
        for other in listening:
            self._say(other, subject, reply, b"", body)
        if reply and not listening:
            self._say(link, reply, b"", _NOBODY, b"")

    def _stored(
        self, link: FakeLink, subject: str, reply: bytes, values: dict[str, str], body: bytes
    ) -> None:
        batch_id = values.get("Nats-Batch-Id", "")
        if len(batch_id) > 64:
            if reply:
                error = {"code": 400, "err_code": 10179, "description": "batch ID is invalid"}
                self._answer(link, reply, {"error": error})
            return
        batch = self._batches.setdefault(batch_id, [])
        batch.append((subject, body))
        if "Nats-Batch-Id" in values and "Nats-Batch-Commit" not in values:
            return
        published = list(batch)
        batch.clear()
        if self.full_text:
            error = {"code": 503, "err_code": 10023, "description": self.full_text}
            self._answer(link, reply, {"error": error})
            return
        stream = self.streams.get(subject) or self.streams.get(subject.partition(".")[0])
        if stream is None:
            self._say(link, reply, b"", _NOBODY, b"")
            return
        if stream.is_retained:
            for each, payload in published:
                stream.last += 1
                stream.retained.held[stream.last] = payload
                stream.retained.subjects[stream.last] = each
                stream.retained.stored_ms[stream.last] = self.wall_ms()
            self._answer(link, reply, {"seq": stream.last})
            return
        most = stream.config["max_msgs"]
        if 0 <= most < len(stream.messages) + len(stream.kept) + len(published):
            error = {"code": 400, "err_code": 10077, "description": "maximum messages exceeded"}
            self._answer(link, reply, {"error": error})
            return
        for _, payload in published:
            stream.last += 1
            stream.messages[stream.last] = payload
            stream.stored_ms[stream.last] = self.wall_ms()
            stream.ready.append(stream.last)
        self._answer(link, reply, {"seq": stream.last})

    def _asked(self, words: list[str], body: bytes) -> dict[str, Any]:
        match words:
            case ["STREAM", "CREATE", name] if name.startswith("KV_"):
                self.buckets.setdefault(name, FakeBucket(f"2026-{len(self.buckets)}"))
                return {"created": self.buckets[name].created}
            case ["STREAM", "INFO", name] if name in self.buckets:
                bucket = self.buckets[name]
                return {"created": bucket.created, "state": bucket.state()}
            case ["CONSUMER", "CREATE", name, consumer] if name in self.buckets:
                return self.buckets[name].watch(consumer)
            case ["CONSUMER", "DELETE", name, consumer] if name in self.buckets:
                self.buckets[name].watchers.pop(consumer, None)
                return {"success": True}
            case ["STREAM", "CREATE", _] if self.refused_streams is not None:
                error = {"code": 400, "err_code": self.refused_streams, "description": "no"}
                return {"error": error}
            case ["STREAM", "CREATE", name]:
                stream = self.streams.setdefault(name, Stream(json.loads(body)))
                return {"state": stream.state(), "created": stream.created}
            case ["STREAM", "LEADER", "STEPDOWN", name] if name in self.streams:
                preferred = json.loads(body)["placement"]["preferred"]
                self.leaders[name] = preferred
                if name in self.members:
                    self.members[name].sort(key=lambda each: each != preferred)
            case ["STREAM", "PEER", "EVACUATE", name] if name in self.streams:
                return self._evacuate(name, json.loads(body)["peer"])
            case [_, _, name, *_] if name not in self.streams:
                return {"error": {"code": 404, "err_code": 10059, "description": "not found"}}
            case [_, "INFO", *_] if self.is_leaderless:
                text = "JetStream system temporarily unavailable"
                return {"error": {"code": 503, "err_code": 10008, "description": text}}
            case ["STREAM", "UPDATE", name]:
                self.streams[name].config = json.loads(body)
                self._resize(name, self.streams[name].config["num_replicas"])
            case ["CONSUMER", "CREATE", name, _] if self.streams[name].is_retained:
                config = json.loads(body)["config"]
                return self.streams[name].retained.make_reader(config, self.streams[name].last)
            case ["CONSUMER", "DELETE", name, reader] if self.streams[name].is_retained:
                self.streams[name].retained.readers.pop(reader, None)
            case ["CONSUMER", "CREATE", name, _]:
                self.streams[name].has_consumer = True
                config = json.loads(body)["config"]
                self.streams[name].is_pinned = config.get("priority_policy") == "pinned_client"
            case ["CONSUMER", "UNPIN", name, _]:
                self.streams[name].pin = ""
            case ["STREAM", "INFO", name]:
                self.look_count += 1
                found = self.streams[name]
                return {
                    "state": found.state()
                    | ({"subjects": found.retained.counts()} if body else {}),
                    "cluster": self._cluster_of(name),
                    "config": found.config,
                    "created": found.created,
                }
            case ["CONSUMER", "INFO", name, _] if not self.streams[name].has_consumer:
                return {"error": {"code": 404, "err_code": 10014, "description": "not found"}}
            case ["CONSUMER", "INFO", name, _]:
                return self.streams[name].consumer_state()
            case ["STREAM", "PURGE", name]:
                first = json.loads(body)["seq"] if body else self.streams[name].last + 1
                self.streams[name].purge(first)
            case ["STREAM", "DELETE", name]:
                del self.streams[name]
        return {"success": True}

    def _members_of(self, name: str) -> list[str]:
        """Who keeps it, the leader first."""
        found = self._cluster_of(name)
        return [found["leader"], *(row["name"] for row in found["replicas"])]

    def _resize(self, name: str, count: int) -> None:
        members = self._members_of(name)
        if count != len(members) and self.choices:
            more = [each for each in self.choices if each not in members]
            self._keep(name, [*members, *more][:count])

    def _evacuate(self, name: str, leaving: str) -> dict[str, Any]:
        members = self._members_of(name)
        others = [each for each in self.choices if each not in members]
        if not others:
            text = "peer remap failed"
            return {"error": {"code": 503, "err_code": 10075, "description": text}}
        chosen = others[0]
        self.choices.remove(chosen)  # another time another one
        self.choices.append(chosen)
        self._keep(name, [*(each for each in members if each != leaving), chosen])
        return {"success": True}

    def _keep(self, name: str, members: list[str]) -> None:
        self.members[name] = members
        self.leaders.pop(name, None)

    def _cluster_of(self, name: str) -> dict[str, Any]:
        """That of all, unless it was told to have another leader, or other members."""
        if name in self.members:
            leader, *rest = self.members[name]
            rows = [{"name": each, "current": True, "active": 0} for each in rest]
            return {"leader": leader, "replicas": rows}
        leader = self.leaders.get(name)
        if leader is None:
            return self.cluster
        names = {self.cluster["leader"], *(row["name"] for row in self.cluster["replicas"])}
        others = [{"name": each, "current": True, "active": 0} for each in sorted(names - {leader})]
        return {"leader": leader, "replicas": others}

    def _answer(self, link: FakeLink, reply: bytes, found: dict[str, Any]) -> None:
        self._say(link, reply, b"", b"", json.dumps(found).encode())

    def _say(self, link: FakeLink, subject: bytes, reply: bytes, head: bytes, body: bytes) -> None:
        self._out.append((link, Delivered(link.sid_of(subject), subject, reply, head, body)))

    def _read(self, link: FakeLink, name: str, reply: bytes, sequence: int) -> None:
        stream = self.streams.get(name)
        if stream is None:
            self._say(link, reply, b"", _NOBODY, b"")
            return
        payload = (stream.messages | stream.kept).get(sequence)
        if payload is None:
            self._say(link, reply, b"", b"NATS/1.0 404 Message Not Found\r\n\r\n", b"")
            return
        at = datetime.fromtimestamp(stream.stored_ms[sequence] / 1000, UTC).isoformat()
        pairs = [(b"Nats-Sequence", b"%d" % sequence), (b"Nats-Time-Stamp", at.encode())]
        self._say(link, reply, b"", encode_headers(pairs), payload)

    # -- consuming ------------------------------------------------------------------------------------------------

    def _settled(self, stream: Stream | None, sequence: int, body: bytes) -> None:
        self.said.append(body or b"ack")
        if stream is None or sequence not in stream.messages:
            return
        if body == b"-NAK":
            stream.ready.appendleft(sequence)
        elif body in (b"", b"+TERM"):
            stream.acknowledge(sequence)

    def _pulled(self, link: FakeLink, name: str, reply: bytes, wish: dict[str, Any]) -> None:
        stream = self.streams.get(name)
        if stream is None:
            return
        if stream.is_pinned and not self._is_allowed(stream, link, reply, wish):
            return
        stream.pulls.append([link, reply, wish["batch"]])
        stream.octets_left[link, reply] = wish.get("max_bytes", 0) or sys.maxsize
        if wish.get("no_wait"):
            self._serve(stream)
            if stream.pulls and stream.pulls[-1][1] == reply:
                stream.pulls.pop()
                self._say(link, reply, b"", b"NATS/1.0 404 No Messages\r\n\r\n", b"")

    def _read_ahead(
        self, stream: Stream, name: str, link: FakeLink, reply: bytes, count: int
    ) -> None:
        reader = stream.retained.readers.get(name)
        if reader is None:
            self._say(link, reply, b"", _NOBODY, b"")
        else:
            reader.pulls.append([link, reply, count])

    def _is_allowed(
        self, stream: Stream, link: FakeLink, reply: bytes, wish: dict[str, Any]
    ) -> bool:
        who = wish.get("id", "") if "group" in wish else None
        self._look_at_pin(stream)
        if stream.pin and who == stream.pin:
            stream.pin_until_ms = self.wall_ms() + 7_000
        if who and who != stream.pin:
            self._say(link, reply, b"", b"NATS/1.0 423 Nats-Pin-Id mismatch\r\n\r\n", b"")
            return False
        stream.pull_ids[link, reply] = who
        return "max_bytes" not in wish

    def _look_at_pin(self, stream: Stream) -> None:
        if stream.pin and self.wall_ms() >= stream.pin_until_ms:
            stream.pin = ""

    def _next_pull(self, stream: Stream) -> list[Any] | None:
        """Whom the next message is for."""
        if not stream.is_pinned:
            return stream.pulls[0] if stream.pulls else None
        self._look_at_pin(stream)
        for pull in list(stream.pulls):
            who = stream.pull_ids[pull[0], pull[1]]
            if not stream.pin and who is None:
                return pull
            if not stream.pin and not who:
                self._pin_count += 1
                who = stream.pull_ids[pull[0], pull[1]] = stream.pin = f"pin{self._pin_count}"
                stream.pin_until_ms = self.wall_ms() + 7_000
            if who and who == stream.pin:
                return pull
            if who:
                stream.pulls.remove(pull)
                self._say(pull[0], pull[1], b"", b"NATS/1.0 423 Nats-Wrong-Pin-Id\r\n\r\n", b"")
        return None

    def _serve(self, stream: Stream) -> None:
        stream.pulls = deque(pull for pull in stream.pulls if pull[0].sid_of(pull[1]))
        while stream.ready:
            pull = self._next_pull(stream)
            if pull is None:
                return
            sequence = stream.ready.popleft()
            if sequence not in stream.messages:
                continue
            stream.octets_left[pull[0], pull[1]] -= len(stream.messages[sequence])
            if stream.octets_left[pull[0], pull[1]] < 0:
                stream.ready.appendleft(sequence)
                stream.pulls.remove(pull)
                text = b"NATS/1.0 409 Message Size Exceeds MaxBytes\r\nNats-Pending-Messages: %d\r\n\r\n"
                self._say(pull[0], pull[1], b"", text % pull[2], b"")
                continue
            count = stream.counts[sequence] = stream.counts.get(sequence, 0) + 1
            name = stream.config["name"]
            time_ns = stream.stored_ms.get(sequence, 0) * 1_000_000
            reply = f"$JS.ACK.{name}.q.{count}.{sequence}.1.{time_ns}.{len(stream.ready)}".encode()
            link, inbox, _ = pull
            head = encode_headers([(b"Nats-Pin-Id", stream.pin.encode())]) if stream.pin else b""
            delivered = Delivered(
                link.sid_of(inbox), name.encode(), reply, head, stream.messages[sequence]
            )
            self._out.append((link, delivered))
            pull[2] -= 1
            if not pull[2]:
                stream.pulls.remove(pull)
                if stream.octets_left[pull[0], pull[1]] < sys.maxsize >> 1:
                    text = b"NATS/1.0 409 Batch Completed\r\nNats-Pending-Messages: 0\r\n\r\n"
                    self._say(pull[0], pull[1], b"", text, b"")
