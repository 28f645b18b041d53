"""What a scenario is, and the measuring that all of them share.

Owns no state. `measure_load` runs the native generator against a node and adds the broker's CPU, memory and the answer
to "who was the limit". CPU is read again once the broker is idle, so that write-behind work is counted too.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench import native, procfs
from bench.peers import Node
from bench.stage import Stage

OURS = ("burrowmq", "burrowmq-pure")
EVERYBODY = (*OURS, "rabbitmq", "lavinmq")
# A thread that is on a core for this share of the time is the bottleneck.
_SATURATED = 0.8
# If other programs take more than this while a row runs, the row measures them, too.
DISTURBED_CORES = 0.3


@dataclass(frozen=True, slots=True)
class Outcome:
    """Values of one run on one peer; `mode` names queue mode and durability, `limit` who was saturated."""

    values: dict[str, float]
    mode: str = ""
    limit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One measurement. `max_rounds` caps slow ones; peers that are not installed are skipped."""

    key: str
    title: str
    run: Callable[[Stage, str], Outcome]
    peers: tuple[str, ...] = EVERYBODY
    max_rounds: int = 99
    is_full_only: bool = False
    is_perftest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A promise: `value` of `scenario` on `peer`, alone or as a ratio, beside must and reach.

    The ratio is to the peer `relative_to`, or to another scenario of the same peer, `over`.

    `is_at_most`: smaller is better, and a ratio is peer / other. `only_full`: the promise holds for the full-size run.
    """

    title: str
    scenario: str
    value: str = "rate"
    peer: str = "burrowmq"
    relative_to: str | None = None
    over: str | None = None
    must: float
    reach: float | None = None
    is_at_most: bool = False
    unit: str = "x"
    only_full: bool = False


def who_was_the_limit(
    seconds: float, client_s: float, broker_s: float, broker_total_s: float
) -> str:
    """From the CPU of each side's busiest thread and of all the broker's threads together."""
    client, broker = client_s / seconds, broker_s / seconds
    cores = broker_total_s / seconds
    shares = f"busiest thread {broker:.0%}, all {cores:.1f} cores; client {client:.0%}"
    is_broker = broker >= _SATURATED or cores >= _SATURATED * (os.cpu_count() or 1)
    if client >= _SATURATED and client >= broker:
        return f"client ({shares})"
    return f"broker ({shares})" if is_broker else f"neither ({shares})"


def measure_load(node: Node, options: dict[str, native.Option]) -> Outcome:
    """One generator run on an idle node; leaves the queues in place."""
    procfs.wait_idle(node.pid)
    procfs.reset_peak_rss(node.pid)
    rss_before = procfs.rss_bytes(node.pid)
    before = procfs.cpu_use(node.pid)
    busy_before, started = procfs.machine_busy_s(), time.monotonic()
    port = node.launch.tls_port if options.get("tls") else node.port
    report = native.run(port, **options)
    at_end = procfs.cpu_use(node.pid)
    busy_s = procfs.machine_busy_s() - busy_before
    others_s = busy_s - (at_end.total_s - before.total_s) - report["client_cpu_s"]
    others_cores = max(0.0, others_s / (time.monotonic() - started))
    if report["nacked"]:
        raise native.GeneratorFailed(f"the broker refused {report['nacked']:.0f} messages (nack)")
    procfs.wait_idle(node.pid)
    cpu_s = procfs.cpu_use(node.pid).total_s - before.total_s
    counted = report["consumed"] or report["published"]
    values = {
        "rate": report["rate"],
        "seconds": report["seconds"],
        "messages": counted,
        "cpu_us": cpu_s * 1e6 / counted,
        "client_cpu_us": report["client_cpu_s"] * 1e6 / counted,
        "others_cores": others_cores,
        "rss_before": float(rss_before),
        "rss_after": float(procfs.rss_bytes(node.pid)),
        "rss_peak": float(procfs.peak_rss_bytes(node.pid)),
    }
    values |= {name: report[name] for name in ("p50_us", "p99_us", "p999_us") if name in report}
    limit = who_was_the_limit(
        report["seconds"],
        report["client_busiest_thread_s"],
        procfs.busiest_thread_s(before, at_end),
        at_end.total_s - before.total_s,
    )
    if others_cores > DISTURBED_CORES:
        limit = f"disturbed by other programs ({others_cores:.1f} cores); {limit}"
    return Outcome(values, limit=limit)
