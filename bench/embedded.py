"""Figures of a broker inside a program: `python -m bench.embedded [--examples]`.

How long it takes to import, start and stop, what it leaves behind, how fast a month passes, what a virtual host for
each test costs, and what is said where something is wrong. With `--examples` also how long the example suites take.
Each figure stands beside what it has to be; exit status 1 when one is not.
"""

import argparse
import math
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pika

from burrowmq.embedded import Broker
from scripts import examples

STARTS = 200
WARM_UP = 25
"""Starts before that count for nothing: each thread takes one of the C library's arenas, of which there are 8 for each
processor, and they are filled once."""
QUEUES = 1000
TESTS = 200
DAY_S = 86_400
FIRST = """
import time
began = time.perf_counter()
import burrowmq
burrowmq.Broker
imported = time.perf_counter()
broker = burrowmq.Broker().start()
print(imported - began, time.perf_counter() - imported)
broker.stop()
"""

missed: list[str] = []


def show(what: str, found: float, most: float, unit: str) -> None:
    """Print a figure beside its limit, infinity where there is none."""
    is_good = found <= most
    if not is_good:
        missed.append(what)
    limit = f"{most:g} {unit}" if most < math.inf else ""
    print(f"| {what} | {found:.4g} {unit} | {limit} | {'' if is_good else 'MISSED'} |", flush=True)


def rss_bytes() -> int:
    """Resident memory now."""
    with open("/proc/self/statm", "rb") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def imports() -> None:
    """In new interpreters: the modules of a broker, then a start, which loads the rest and is nobody's second.

    The first interpreter is not counted: it may write the bytecode.
    """
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", FIRST]
    times = []
    for _ in range(12):
        done = subprocess.run(command, capture_output=True, check=True, env=env)
        times.append([float(each) * 1000 for each in done.stdout.split()])
    importing, starting = zip(*times[1:], strict=True)
    show("import, median of 11", statistics.median(importing), 150, "ms")
    show("first start after it, median of 11", statistics.median(starting), math.inf, "ms")
    both = [sum(each) for each in times[1:]]
    show("both together, median of 11", statistics.median(both), math.inf, "ms")


def starts() -> None:
    """Many, one after the other."""
    for _ in range(WARM_UP):
        Broker().start().stop()
    before = len(os.listdir("/proc/self/fd")), threading.active_count(), rss_bytes()
    starting, stopping = [], []
    for _ in range(STARTS):
        broker = Broker()
        began = time.perf_counter()
        broker.start()
        started = time.perf_counter()
        broker.stop()
        starting.append((started - began) * 1000)
        stopping.append((time.perf_counter() - started) * 1000)
    show(f"{STARTS} starts, median", statistics.median(starting), 15, "ms")
    show(f"{STARTS} starts, p99", statistics.quantiles(starting, n=100)[98], 50, "ms")
    show("stop, median", statistics.median(stopping), 20, "ms")
    show("descriptors more", len(os.listdir("/proc/self/fd")) - before[0], 0, "")
    show("threads more", threading.active_count() - before[1], 0, "")
    show("RSS more", (rss_bytes() - before[2]) / 1e6, 3, "MB")


def is_refused(port: int) -> bool:
    """Whether nobody listens."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except ConnectionRefusedError:
        return True
    return False


def fork() -> None:
    """A child lives while its parent's broker ends."""
    with tempfile.TemporaryDirectory() as directory:
        broker = Broker(directory).start()
        port = broker.port
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
        broker.stop()
        began = time.perf_counter()
        while not is_refused(port):
            pass
        show(
            "port refuses after a stop with a forked child",
            (time.perf_counter() - began) * 1000,
            100,
            "ms",
        )
        with Broker(directory, port=port):
            pass
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)


def month() -> None:
    """Queues whose messages, and which themselves, expire at a thousand different times."""
    with Broker(clock="manual") as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            for number in range(QUEUES):
                arguments = {
                    "x-message-ttl": DAY_S * 1000 + number,
                    "x-expires": 30 * DAY_S * 1000 + number,
                }
                channel.queue_declare(f"q{number}", arguments=arguments)
                channel.basic_publish("", f"q{number}", b"x")
            last = f"q{QUEUES - 1}"
            assert channel.queue_declare(last, passive=True).method.message_count == 1
        began = time.perf_counter()
        broker.clock.advance(31 * DAY_S)
        show(f"advance(31 days), {QUEUES} queues", (time.perf_counter() - began) * 1000, 200, "ms")
        assert said(lambda: broker.ask("messages", "/", last)).startswith(
            "BrokerError: there is no queue"
        )


def tests() -> None:
    """What the fixture does for each test, with a test that publishes and waits."""
    with Broker(clock="manual") as broker:
        began = time.perf_counter()
        for number in range(TESTS):
            with broker.vhost(f"test-{number}") as vhost:
                with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
                    channel = connection.channel()
                    channel.queue_declare("q", durable=True)
                    channel.basic_publish("", "q", b"x", pika.BasicProperties(delivery_mode=2))
                    vhost.wait_for("q", 1)
        show(f"{TESTS} tests with a virtual host of their own", time.perf_counter() - began, 6, "s")


def said(call: Callable[[], object]) -> str:
    """What an error says."""
    try:
        return repr(call())
    except Exception as error:  # whatever it is, it is shown
        return f"{type(error).__name__}: {error}"


def mistakes() -> None:
    """What is wrong, and what is said."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "data")
        with Broker(path, clock="manual") as broker, Broker() as real:
            found = {
                "advance(-1)": said(lambda: broker.clock.advance(-1)),
                "advance without a clock": said(lambda: real.clock.advance(1)),
                "two on one directory": said(lambda: Broker(path).start()),
            }
        found["stop twice"] = said(broker.stop)
        found["use after stop"] = said(lambda: broker.url)
        found["start after stop"] = said(broker.start)
        denied = Path(directory, "file", "data")
        denied.parent.write_text("", encoding="ascii")
        found["a directory that cannot be"] = said(lambda: Broker(denied).start())
        code = "import burrowmq; print(burrowmq.Broker().start().data_dir)"
        left = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        is_gone = not os.path.exists(left.stdout.strip())
        found["left running at the interpreter's end"] = (
            f"exit status {left.returncode}, {'directory removed' if is_gone else 'DIRECTORY LEFT'}, {left.stderr!r}"
        )
    for what, text in found.items():
        print(f"{what}: {text.replace(directory, 'DIR')}")


def main() -> int:
    """Print everything."""
    parser = argparse.ArgumentParser(prog="python -m bench.embedded", description=__doc__)
    parser.add_argument("--examples", action="store_true", help="the example suites too")
    options = parser.parse_args()
    print("| what | figure | has to be | |\n|---|---|---|---|")
    for part in (imports, starts, fork, month, tests):
        part()
    if options.examples:
        for project in examples.projects():
            status, seconds = examples.run(project)
            show(f"suite of {project}", seconds if status == 0 else float("inf"), 10, "s")
    print()
    mistakes()
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
