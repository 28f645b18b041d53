"""What Celery does when workers die and connections go, and its commands, over the broker in BROKER_URL.

Prints `ok NAME` or `FAILED NAME reason` a check. BROKER_API is the HTTP API. Workers import this same file.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

from celery import Celery

QUEUE = os.environ.setdefault("SUITE_QUEUE", f"suite.faults.{os.getpid()}")
SCRATCH = Path(os.environ.setdefault("SUITE_SCRATCH", tempfile.mkdtemp(prefix="celery-")))
LATE = os.environ.get("SUITE_LATE", "1") == "1"
DEADLINE_S = 300
app = Celery("celery_faults", broker=os.environ["BROKER_URL"], backend="rpc://")
app.conf.update(
    task_default_queue=QUEUE,
    worker_prefetch_multiplier=2,
    task_acks_late=LATE,
    task_send_sent_event=True,
    worker_send_task_events=True,
    broker_connection_retry_on_startup=True,
    beat_schedule={"tick": {"task": "suite.note", "schedule": 1.0, "args": ("tick",)}},
)


@app.task(name="suite.note")
def note(text):
    with (SCRATCH / "notes").open("a") as notes:
        notes.write(text + "\n")
    return text


@app.task(name="suite.slow")
def slow(text):
    note(text)
    while not (SCRATCH / "go").exists():
        time.sleep(0.1)
    return text


def notes():
    path = SCRATCH / "notes"
    return path.read_text().split() if path.exists() else []


def wait_until(said, condition):
    """Return what the condition came to; an error with a text when it does not come true."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.3)
    raise AssertionError(said)


def api(path, method="GET"):
    """Ask the HTTP API."""
    place = urllib.parse.urlsplit(os.environ["BROKER_API"])
    url = f"{place.scheme}://{place.hostname}:{place.port}{place.path}{path}"
    keys = urllib.request.HTTPPasswordMgrWithDefaultRealm()
    keys.add_password(None, url, place.username, place.password)
    opener = urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(keys))
    with opener.open(urllib.request.Request(url, method=method), timeout=60) as answer:
        body = answer.read()
    return json.loads(body) if body else None


def consumers():
    return [one for one in api("consumers/%2F") if one["queue"]["name"] == QUEUE]


def prefetch():
    """Return what the worker's channel may hold, by its own count and by each consumer's; RabbitMQ's lists are late."""
    for one in consumers():
        channel = api("channels/" + urllib.parse.quote(one["channel_details"]["name"], safe=""))
        return channel.get("global_prefetch_count"), channel.get("prefetch_count")
    return None


def holders():
    """Return the names of the connections that consume."""
    return {one["channel_details"]["connection_name"] for one in consumers()}


class Worker:
    """A worker process of its own session, so that a kill takes its children too."""

    def __init__(self, name, *options, late=True):
        self.name = f"{name}@suite"
        command = [sys.executable, "-m", "celery", "-A", "celery_faults", "worker", "-n", self.name]
        with (SCRATCH / f"{name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "-c", "2", "-l", "INFO", *options],
                cwd=Path(__file__).parent,
                env={**os.environ, "SUITE_LATE": "1" if late else "0"},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def ready(self):
        wait_until(f"{self.name} answers", lambda: app.control.ping([self.name], timeout=2))
        return self

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(120)
            except subprocess.TimeoutExpired:
                self.kill()


def command(*arguments):
    """Run a command of Celery's, return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "celery_faults", *arguments],
        check=False,
        cwd=Path(__file__).parent,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    return done.stdout + done.stderr


def a_worker_killed(late):
    """Kill a worker with a task at work; say whether another worker gets the task."""
    (SCRATCH / "go").unlink(missing_ok=True)
    first = Worker(f"killed{late:d}", "--without-mingle", late=late).ready()
    text = f"late{late:d}"
    slow.delay(text)
    wait_until("the task began", lambda: text in notes())
    first.kill()
    wait_until("its consumer is gone", lambda: not consumers())
    (SCRATCH / "go").touch()
    second = Worker(f"next{late:d}", "--without-mingle", late=late).ready()
    try:
        note.delay(f"after{late:d}").get(timeout=DEADLINE_S)
        return notes().count(text) == 2
    finally:
        second.stop()


def check_kills():
    assert a_worker_killed(late=True), notes()


def check_early_acks():
    assert not a_worker_killed(late=False), notes()


def check_prefetch():
    wait_until("four for the channel, none for the consumer", lambda: prefetch() == (4, 0))


def check_countdown_raises_prefetch():
    results = [note.apply_async((f"eta{n}",), countdown=30) for n in range(6)]
    wait_until("prefetch rises", lambda: (prefetch() or (0, 0))[0] > 4)
    assert [one.get(timeout=DEADLINE_S) for one in results] == [f"eta{n}" for n in range(6)]


def check_closed_connections():
    """What an operator closes comes back, and tasks at work are done."""
    (SCRATCH / "go").unlink(missing_ok=True)
    result = slow.delay("through")
    wait_until("the task began", lambda: "through" in notes())
    before = wait_until("the worker consumes", holders)
    for one in before:
        api("connections/" + urllib.parse.quote(one, safe=""), "DELETE")
    (SCRATCH / "go").touch()
    wait_until("the worker came back", lambda: holders() - before)
    assert result.get(timeout=DEADLINE_S) == "through"
    assert note.delay("after").get(timeout=DEADLINE_S) == "after"


def check_remote_control(worker):
    inspect = app.control.inspect([worker.name], timeout=30)
    assert inspect.active_queues()[worker.name][0]["name"] == QUEUE
    assert "suite.note" in inspect.registered()[worker.name]
    other = f"{QUEUE}.other"
    app.control.add_consumer(other, destination=[worker.name], reply=True, timeout=30)
    assert note.apply_async(("other",), queue=other).get(timeout=DEADLINE_S) == "other"
    app.control.cancel_consumer(other, destination=[worker.name], reply=True, timeout=30)
    names = [one["name"] for one in inspect.active_queues()[worker.name]]
    assert names == [QUEUE], names
    with app.connection() as connection:
        connection.default_channel.queue_delete(other)


def check_commands():
    temporary = f"{QUEUE}.amqp"
    for expected, arguments in (
        ("main@suite: OK", ("status", "-t", "30")),
        ("pong", ("inspect", "-t", "30", "ping")),
        ('"prefetch_count"', ("inspect", "-t", "30", "-j", "stats")),
        ("task_default_queue", ("report",)),
        ("messages:0 consumers:0", ("amqp", "queue.declare", temporary)),
        ("OK", ("amqp", "basic.publish", "hello", "", temporary)),
        ("'body': 'hello'", ("amqp", "basic.get", temporary)),
        ("1 messages deleted", ("amqp", "queue.delete", temporary)),
    ):
        said = command(*arguments)
        assert expected in said, (arguments, said[-300:])


def check_events():
    kinds = set()
    wanted = {"task-sent", "task-received", "task-started", "task-succeeded", "worker-heartbeat"}
    with app.connection() as connection:
        receiver = app.events.Receiver(
            connection, handlers={"*": lambda event: kinds.add(event["type"])}
        )
        threading.Timer(2, lambda: note.delay("seen")).start()
        for _ in receiver.itercapture(limit=None, timeout=DEADLINE_S, wakeup=True):
            if wanted <= kinds:
                return
    raise AssertionError(wanted - kinds)


def check_gossip(worker):
    other = Worker("other").ready()
    try:
        found = app.control.inspect([worker.name], timeout=30).hello("else@where")
        assert worker.name in found, found
        log = SCRATCH / "other.log"
        wait_until("mingle", lambda: "sync complete" in log.read_text())
    finally:
        other.stop()
    log = SCRATCH / "main.log"
    wait_until("gossip", lambda: "other@suite" in log.read_text())


def check_beat():
    beat = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "celery_faults",
            "beat",
            "-s",
            str(SCRATCH / "schedule"),
        ],
        cwd=Path(__file__).parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until("three ticks", lambda: notes().count("tick") >= 3)
    finally:
        beat.terminate()
        beat.wait(60)


def main():
    run({"a killed worker's task comes again": check_kills, "early acks": check_early_acks})
    worker = Worker("main").ready()
    checks = {
        "prefetch of the channel": check_prefetch,
        "countdowns raise it": check_countdown_raises_prefetch,
        "closed connections come back": check_closed_connections,
        "remote control": lambda: check_remote_control(worker),
        "commands": check_commands,
        "events": check_events,
        "mingle and gossip": lambda: check_gossip(worker),
        "beat": check_beat,
    }
    try:
        run(checks)
    finally:
        worker.stop()
    with app.connection() as connection:
        connection.default_channel.queue_delete(QUEUE)
        connection.default_channel.exchange_delete(QUEUE)


def run(checks):
    """Run checks by their names."""
    for name, check in checks.items():
        try:
            check()
            print("ok", name, flush=True)
        except Exception as error:
            print("FAILED", name, repr(error), flush=True)


if __name__ == "__main__":
    sys.modules["celery_faults"] = sys.modules["__main__"]
    main()
