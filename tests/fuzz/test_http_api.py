"""The HTTP API under requests made from its own description: right, wrong and hostile ones.

Nothing may be a 5xx but a failed health check, and RabbitMQ's 503 for the members of what is no quorum queue; nothing
may be logged as a bug, and what lives in the process must not grow with the number of requests. Names come from a small
pool, so that requests meet what others made.
"""

from __future__ import annotations

import gc
import http.client
import json
import logging
import random
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.bench.world import small_world
from tests.support.served import Served, serving

# They end what is tested, close its listeners, or write where a text says.
LEFT_OUT = {
    "/api/burrowmq/shutdown",
    "/api/burrowmq/stop-app",
    "/api/burrowmq/start-app",
    "/api/burrowmq/backup",
    "/api/burrowmq/memory-watermark",
    "/api/burrowmq/log-level",
}
NAMES = [
    "orders",
    "lazy",
    "q",
    "é ☃",
    "a/b",
    "%2F",
    "amq.default",
    "amq.topic",
    "x" * 300,
    "<b>",
    "..",
    "rabbit@test",
]
VHOSTS = ["/", "/", "/", "v1", "nosuch"]
TEXTS = [
    "",
    "a",
    "0",
    "-1",
    "true",
    "null",
    ".*",
    "^(",
    "%",
    "\x00",
    "ÿ",
    "{}",
    "x" * 2000,
    "classic",
]
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    2**70,
    1.5,
    1e308,
    "",
    "a",
    [],
    {},
    [1],
    {"a": 1},
    {"a": {"b": [None]}},
]
KEYS = [
    "k" * 300,
    "x-message-ttl",
    "x-max-length",
    "x-queue-type",
    "x-max-priority",
    "max-length",
    "queue-mode",
    "ha-mode",
    "a",
]


class Maker:
    """Makes requests of an operation of the description."""

    def __init__(self, description: dict[str, Any], seed: int) -> None:
        self.chance = random.Random(seed)
        self.operations = [
            (verb.upper(), path, operation)
            for path, verbs in description["paths"].items()
            if path not in LEFT_OUT
            for verb, operation in verbs.items()
        ]

    def request(self) -> tuple[str, str, bytes | None]:
        """Return verb, target and body."""
        verb, path, operation = self.chance.choice(self.operations)
        query = []
        for parameter in operation["parameters"]:
            name, schema = parameter["name"], parameter["schema"]
            if parameter["in"] == "path":
                pool = schema.get("enum") or (VHOSTS if name == "vhost" else NAMES)
                value = "rabbit@test" if name == "node" else self.chance.choice(pool)
                path = path.replace(f"{{{name}}}", quote(value, safe=""))
            elif self.chance.random() < 0.25:
                value = self.chance.choice([*TEXTS, "name", "vhost", "1", "2", "name,messages"])
                query.append(f"{name}={quote(value)}")
        target = path + (f"?{'&'.join(query)}" if query else "")
        return verb, target, self.body(operation)

    def body(self, operation: dict[str, Any]) -> bytes | None:
        if "requestBody" not in operation:
            return None
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        dice = self.chance.random()
        if dice < 0.05:
            return self.chance.choice(
                [b"", b"[", b"\xff\xfe", b"[]", b"null", b'"a"', b"NaN", b"[" * 5000]
            )
        return json.dumps(self.value(schema, 0.1 if dice < 0.5 else 0.0)).encode()

    def value(self, schema: dict[str, Any], wrong: float) -> Any:
        chance = self.chance
        if chance.random() < wrong or not schema:
            return chance.choice(VALUES)
        if "anyOf" in schema:
            return self.value(chance.choice(schema["anyOf"]), wrong)
        if "enum" in schema:
            return chance.choice(schema["enum"])
        kind = schema["type"]
        if kind == "object":
            required = schema.get("required", ())
            found = {
                name: self.value(each, wrong)
                for name, each in schema.get("properties", {}).items()
                if (name in required and chance.random() >= wrong) or chance.random() < 0.4
            }
            if "properties" not in schema and chance.random() < 0.7:
                found[chance.choice([*KEYS, "name", "vhost"])] = chance.choice([*VALUES, *NAMES])
            return found
        if kind == "array":
            return [self.value(schema["items"], wrong) for _ in range(chance.randrange(3))]
        plain = {"string": [*NAMES, *TEXTS], "boolean": [True, False], "number": [0.4, 1e9, -1]}
        return chance.choice(plain.get(kind, [0, 1, 5, 300, 2**40, 2**70, -1]))


def run(served: Served, maker: Maker, count: int) -> list[str]:
    """Send so many requests; return those that were answered as no request may be."""
    login = {"Authorization": "Basic " + b64encode(b"fuzz:fuzz").decode()}
    faults = []
    client = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    for _ in range(count):
        verb, target, body = maker.request()
        client.request(verb, target, body, login)
        answer = client.getresponse()
        raw = answer.read()
        is_check = answer.status == 503 and ("/health" in target or "/aliveness" in target)
        is_no_quorum = answer.status == 503 and b"classic_queue_not_supported" in raw
        if answer.status >= 500 and not (is_check or is_no_quorum):
            faults.append(f"{answer.status} {verb} {target} {body!r} -> {raw[:200]!r}")
        elif raw and answer.headers["Content-Type"].startswith("application/json"):
            json.loads(raw)
    client.close()
    return faults


def prepared(served: Served) -> dict[str, Any]:
    """Make the user that asks, whom no request names; return the description."""
    assert served.ctl("-q", "add_user", "fuzz", "fuzz").code == 0
    assert served.ctl("-q", "set_user_tags", "fuzz", "administrator").code == 0
    assert served.ctl("-q", "set_permissions", "fuzz", ".*", ".*", ".*").code == 0
    found = served.api("GET", "/api/openapi.json", login="fuzz:fuzz")
    assert found.status == 200
    return dict(found.body)


@pytest.mark.slow
def test_six_hundred_requests_find_no_bug(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving(tmp_path / "data", small_world) as served:
        maker = Maker(prepared(served), seed=1)
        assert run(served, maker, 600) == []
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_twenty_thousand_requests_leave_nothing_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(tmp_path / "data", small_world) as served:
        description = prepared(served)
        sizes = []
        for seed in range(5):
            assert run(served, Maker(description, seed), 5000) == []
            gc.collect()
            sizes.append((len(gc.get_objects()), resident_bytes()))
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []
    objects, memory = [size[0] for size in sizes], [size[1] for size in sizes]
    print(f"25,000 requests, no 5xx; after each 5,000: objects {objects}, bytes {memory}")
    # The pool of names is used up in the first rounds; afterwards there is as much as there was.
    assert objects[-1] < objects[1] * 1.1, sizes
    assert memory[-1] < memory[1] + 20_000_000, sizes


def resident_bytes() -> int:
    """Of this process, in which the broker runs too."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096
