"""Celery Flower beside a worker: its page of the broker has the queue, its pages of workers and tasks answer.

Prints `ok NAME` or `FAILED NAME: why`. BROKER_URL and BROKER_API say where the broker is.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

APP = """
import os
from celery import Celery
app = Celery("tasks", broker=os.environ["BROKER_URL"], backend="rpc://")
app.conf.task_default_queue = "flower_queue"
app.conf.worker_send_task_events = True

@app.task(name="add")
def add(a, b):
    return a + b
"""
DEADLINE_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(name: str, url: str, expected: str) -> None:
    """Ask until the answer has a text in it."""
    deadline, said = time.monotonic() + DEADLINE_S, ""
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                said = answer.read().decode()
        except OSError as error:
            said = repr(error)
        if expected in said:
            print(f"ok {name}")
            return
        time.sleep(0.5)
    print(f"FAILED {name}: no {expected} in {said[-300:]!r}".replace("\n", " "))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="flower-") as folder:
        run(folder, free_port())


def run(folder: str, port: int) -> None:
    """The checks, between the start and the end of a worker and of Flower."""
    (Path(folder) / "tasks.py").write_text(APP)
    environment = {**os.environ, "FLOWER_UNAUTHENTICATED_API": "1", "HOME": folder}
    base = [sys.executable, "-m", "celery", "-A", "tasks"]
    options = {
        "cwd": folder,
        "env": environment,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    worker = subprocess.Popen([*base, "worker", "--pool=solo", "-E", "-l", "warning"], **options)
    api = f"--broker-api={os.environ['BROKER_API']}"
    flower = subprocess.Popen(
        [*base, "flower", "--address=127.0.0.1", f"--port={port}", api], **options
    )
    try:
        home = f"http://127.0.0.1:{port}"
        wait_for("the page of workers", f"{home}/workers", "celery@")
        wait_for("the page of the broker has the queue", f"{home}/broker", "flower_queue")
        wait_for("lengths of queues", f"{home}/api/queues/length", '"flower_queue"')
        data = json.dumps({"args": [2, 3]}).encode()
        request = urllib.request.Request(f"{home}/api/task/apply/add", data, method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            result = json.loads(answer.read())
        print("ok a task" if result.get("result") == 5 else f"FAILED a task: {result}")
        wait_for("the list of tasks", f"{home}/api/tasks", '"add"')
    finally:
        for process in (flower, worker):
            process.terminate()
        for process in (flower, worker):
            process.wait(30)


if __name__ == "__main__":
    main()
