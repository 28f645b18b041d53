"""RabbitMQ's PerfTest: what applications with the Java client see. `limit` says who was the slower, broker or client.

Owns no state. The rate is PerfTest's own average of received messages.
"""

from collections.abc import Callable

from bench import native, perftest, procfs
from bench.peers import PEERS, Setting
from bench.scenarios.base import EVERYBODY, Figure, Outcome, Scenario
from bench.stage import Stage

_QUEUE = "perf"
_SATURATED = 0.8


def _seconds(stage: Stage) -> int:
    return stage.scaled(10, 6)


def _limit(client_s: float, broker_s: float, seconds: int) -> str:
    # PerfTest's threads mostly wait for each other, so their processor time does not tell whether it was the limit.
    # It is taken to be when the broker's busiest thread had time to spare.
    who = "broker" if broker_s / seconds >= _SATURATED else "client"
    return f"{who} (broker's busiest thread {broker_s / seconds:.0%}; java {client_s / seconds:.1f} cores)"


def _run(arguments: list[str]) -> Callable[[Stage, str], Outcome]:
    def run(stage: Stage, peer: str) -> Outcome:
        setting = Setting()
        node = stage.pooled(peer, setting)
        seconds = _seconds(stage)
        procfs.wait_idle(node.pid)
        before = procfs.cpu_use(node.pid)
        result = perftest.run(node.port, ["-z", str(seconds), "-u", _QUEUE, *arguments])
        after = procfs.cpu_use(node.pid)
        native.run(node.port, mode="delete", name=_QUEUE)
        procfs.wait_idle(node.pid)
        received = result.received_rate * seconds
        limit = _limit(result.client_cpu_s, procfs.busiest_thread_s(before, after), seconds)
        values = {
            "rate": result.received_rate,
            "sent_rate": result.sent_rate,
            "cpu_us": (after.total_s - before.total_s) * 1e6 / max(received, 1.0),
            "client_cpu_us": result.client_cpu_s * 1e6 / max(received, 1.0),
            "seconds": float(seconds),
        }
        return Outcome(values, f"cached, {PEERS[peer].durability(setting)}", limit)

    return run


_CONFIRMS = ["-s", "1000", "-f", "persistent", "-ad", "false", "-c", "500", "-q", "500"]

SCENARIOS = (
    Scenario(
        key="perftest-16",
        title="PerfTest 1P1C, auto-ack, 16 B",
        run=_run(["-s", "16", "-a"]),
        peers=EVERYBODY,
        is_perftest=True,
    ),
    Scenario(
        key="perftest-confirms",
        title="PerfTest 1P1C, persistent 1000 B, confirms 500, prefetch 500",
        run=_run(_CONFIRMS),
        peers=EVERYBODY,
        is_perftest=True,
    ),
)

FIGURES = tuple(
    Figure(title=each.title, scenario=each.key, relative_to="rabbitmq", must=2.5)
    for each in SCENARIOS
)
