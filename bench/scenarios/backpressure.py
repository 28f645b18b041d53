"""A consumer that does not read while 1 GB is published: memory has to stay bounded, nothing may be lost.

Owns no state. The consumer subscribes without acknowledgements and reads nothing until everything is published; then it reads all
and checks order and content. The queue is a durable one of an untouched node (`bounded`), so the backlog goes to disk.
"""

from bench import native, procfs
from bench.peers import PEERS, Setting
from bench.scenarios.base import Figure, Outcome, Scenario
from bench.stage import Stage


def _run(stage: Stage, peer: str) -> Outcome:
    count = stage.scaled(1_000_000, 200_000)
    if peer == "rabbitmq":
        count //= 5
    setting = Setting(default_mode="bounded")
    with stage.fresh(peer, setting) as node:
        native.run(node.port, messages=20_000, consumers=1, name="warm-up", timeout=60)
        procfs.wait_idle(node.pid)
        before = procfs.rss_bytes(node.pid)
        procfs.reset_peak_rss(node.pid)
        run = native.StagedRun(
            node.port,
            messages=count,
            size=1000,
            durable=True,
            persistent=True,
            consumers=1,
            stall=True,
            verify=True,
            timeout=600,
        )
        try:
            run.await_stage()
            stalled = procfs.peak_rss_bytes(node.pid) - before
            report = run.finish()
        finally:
            run.abandon()
        values = {
            "growth": float(stalled),
            "growth_with_resume": float(procfs.peak_rss_bytes(node.pid) - before),
            "lost": count - report["consumed"],
            "seconds": report["seconds"],
        }
    return Outcome(values, f"bounded, {PEERS[peer].durability(setting)}")


SCENARIOS = (
    Scenario(
        key="stalled-consumer",
        title="a stalled consumer while 1 GB is published",
        run=_run,
        max_rounds=1,
    ),
)

FIGURES = (
    Figure(
        title="stalled consumer, 1 GB published: RSS growth",
        scenario="stalled-consumer",
        value="growth",
        must=64e6,
        is_at_most=True,
        unit="MB",
        only_full=True,
    ),
    Figure(
        title="stalled consumer: RSS growth with the resumption",
        scenario="stalled-consumer",
        value="growth_with_resume",
        must=64e6,
        is_at_most=True,
        unit="MB",
        only_full=True,
    ),
    Figure(
        title="stalled consumer: messages lost",
        scenario="stalled-consumer",
        value="lost",
        must=0,
        is_at_most=True,
        unit="",
    ),
)
