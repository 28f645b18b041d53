"""Celery's usual paths over the broker in BROKER_URL, with a worker of its own.

Prints `ok NAME` or `FAILED NAME reason` a check. The worker imports this same file for its tasks.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from celery import Celery, group
from kombu import Exchange, Queue

QUEUE = os.environ.setdefault("SUITE_QUEUE", f"suite.celery.{os.getpid()}")
SCRATCH = Path(os.environ.setdefault("SUITE_SCRATCH", tempfile.mkdtemp(prefix="celery-")))
app = Celery("celery_paths", broker=os.environ["BROKER_URL"], backend="rpc://")
app.conf.update(
    task_queues=[Queue(QUEUE, Exchange(QUEUE), QUEUE, queue_arguments={"x-max-priority": 10})],
    task_default_queue=QUEUE,
    task_default_exchange=QUEUE,
    task_default_routing_key=QUEUE,
    task_default_priority=5,
    worker_prefetch_multiplier=1,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    broker_connection_retry_on_startup=True,
)


@app.task(name="suite.add")
def add(first, second):
    return first + second


@app.task(name="suite.note")
def note(text):
    with (SCRATCH / "notes").open("a") as notes:
        notes.write(text + "\n")
    return time.time()


@app.task(name="suite.die_once")
def die_once():
    marker = SCRATCH / "died"
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def check_priorities():
    deadline = time.monotonic() + 30
    seen = []
    while time.monotonic() < deadline and len(seen) < 6:
        seen = (SCRATCH / "notes").read_text().split() if (SCRATCH / "notes").exists() else []
        time.sleep(0.2)
    # The one that the worker prefetched first may be out of place.
    assert len(seen) == 6, seen
    assert seen[1:] == sorted(seen[1:], key=int, reverse=True), seen


def check_countdown():
    began = time.time()
    assert note.apply_async(("later",), countdown=2).get(timeout=30) - began >= 1.9


def main():
    for priority in (1, 3, 9, 5, 0, 7):  # queued while no worker runs
        note.apply_async((str(priority),), priority=priority)
    with (SCRATCH / "worker.log").open("ab") as log:
        worker = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "celery",
                "-A",
                "celery_paths",
                "worker",
                "-c",
                "1",
                "-l",
                "WARNING",
                "--without-gossip",
                "--without-mingle",
            ],
            cwd=Path(__file__).parent,
            stdout=log,
            stderr=log,
        )
    checks = {
        "round-trip": lambda: add.delay(2, 3).get(timeout=60) == 5 or 1 / 0,
        "priorities": check_priorities,
        "countdown": check_countdown,
        "group-of-fifty": lambda: (
            sum(group(add.s(n, 1) for n in range(50))().get(timeout=60)) == 1275 or 1 / 0
        ),
        "acks-late-after-a-killed-child": lambda: (
            die_once.delay().get(timeout=60) == "survived" or 1 / 0
        ),
        "control-ping": lambda: app.control.ping(timeout=5) or 1 / 0,
    }
    try:
        for name, check in checks.items():
            try:
                check()
                print("ok", name)
            except Exception as error:
                print("FAILED", name, repr(error))
    finally:
        worker.terminate()
        try:
            worker.wait(30)
        except subprocess.TimeoutExpired:
            worker.kill()
    with app.connection() as connection, connection.channel() as channel:
        channel.queue_delete(QUEUE)
        channel.exchange_delete(QUEUE)


if __name__ == "__main__":
    sys.modules["celery_paths"] = sys.modules["__main__"]
    main()
