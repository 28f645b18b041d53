"""burrowmq-server as a whole, in this process: what a configuration becomes, who can stop it, and the exit statuses."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pika
import pytest

import burrowmq.broker.__main__ as program_module
from burrowmq.broker.__main__ import main, process_age_s
from burrowmq.cli.client import NodeClient
from burrowmq.config.schema import NodeConfig
from tests.support.broker_process import READY_TEXT
from tests.support.node_in_process import client, config
from tests.support.ports import free_ports

START_TIMEOUT_S = 20.0


class Log:
    """Standard error: what was written, and a bell for the line that says that the node is ready."""

    def __init__(self) -> None:
        self.text = ""
        self.ended = threading.Event()
        self.is_ready = False

    def write(self, text: str) -> int:
        """Append."""
        self.text += text
        if READY_TEXT in text:
            self.is_ready = True
            self.ended.set()
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Append all."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing is kept back."""


@dataclass
class Program:
    """burrowmq-server with ports of its own; `call` runs it in this thread."""

    data_dir: Path
    log: Log = field(default_factory=Log)

    def __post_init__(self) -> None:
        self.port, self.management_port, metrics_port = free_ports(3)
        self.settings = {
            "listeners.tcp.default": f"127.0.0.1:{self.port}",
            "management.tcp.ip": "127.0.0.1",
            "management.tcp.port": str(self.management_port),
            "prometheus.tcp.ip": "127.0.0.1",
            "prometheus.tcp.port": str(metrics_port),
        }

    @property
    def config(self) -> NodeConfig:
        """For who connects."""
        return config(self.data_dir, port=self.port)

    def node(self) -> NodeClient:
        """The way over the control socket."""
        return NodeClient(url="", data_dir=str(self.data_dir), timeout_s=20, node_option="")

    def stop(self) -> None:
        """As burrowctl does."""
        self.node().request("POST", "/api/burrowmq/shutdown")

    def main(self, *words: str) -> int:
        """Run with these words only."""
        with contextlib.redirect_stderr(cast("Any", self.log)):
            return main(words)

    def words(self, **settings: str) -> list[str]:
        """Its command line."""
        words = [f"--set={key}={value}" for key, value in {**self.settings, **settings}.items()]
        return ["--data-dir", str(self.data_dir), *words]

    def call(self, step: Callable[[], object] | None = None, **settings: str) -> int:
        """Run until it ends, taking a step in another thread when it is ready; the exit status."""
        failures: list[BaseException] = []
        self.log.ended.clear()
        self.log.is_ready = False

        def take() -> None:
            if self.log.ended.wait(START_TIMEOUT_S) and not self.log.is_ready:
                return  # it ended before
            try:
                assert self.log.is_ready, "no ready line"
                (step or self.stop)()
            except BaseException as error:
                failures.append(error)
                self.stop()

        thread = threading.Thread(target=take)
        thread.start()
        try:
            return self.main(*self.words(**settings))
        finally:
            self.log.ended.set()
            thread.join()
            assert not failures, failures


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """One that leaves this process as it was."""
    interval = sys.getswitchinterval()
    numbers = (*program_module.IGNORED, *program_module.STOPPING)
    handlers = {number: signal.getsignal(number) for number in numbers}
    hooks = threading.excepthook, sys.unraisablehook
    yield Program(tmp_path / "data")
    threading.excepthook, sys.unraisablehook = hooks
    sys.setswitchinterval(interval)
    for number, handler in handlers.items():
        signal.signal(number, handler)


# -- a run ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(program: Program, number: signal.Signals) -> None:
    assert program.call(lambda: os.kill(os.getpid(), number)) == 0
    assert program.log.text.index("Starting BurrowMQ") < program.log.text.index(READY_TEXT)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTSTP, signal.SIGUSR1, signal.SIGUSR2])
def test_signals_of_terminals_and_other_daemons_do_not_end_it(
    program: Program, number: signal.Signals
) -> None:
    heard: list[int] = []

    def send() -> None:
        os.kill(os.getpid(), number)
        with client(program.config) as channel:
            channel.queue_declare("q")
        program.stop()

    signal.signal(number, lambda number, _: heard.append(number))
    assert program.call(send) == 0
    assert not heard


def test_it_serves_applications_and_operators_until_burrowctl_stops_it(program: Program) -> None:
    said: list[Any] = []

    def use() -> None:
        with client(program.config) as channel:
            channel.queue_declare("q", durable=True)
        said.append([row["name"] for row in program.node().get("/api/queues")])
        said.append(program.node().process["pid"])
        program.stop()

    assert program.call(use) == 0
    assert said == [["q"], os.getpid()]
    assert not (program.data_dir / "control.sock").exists()


def test_what_a_clean_stop_left_is_there_again(program: Program) -> None:
    def declare() -> None:
        with client(program.config) as channel:
            channel.queue_declare("q", durable=True)
        program.stop()

    def find() -> None:
        with client(program.config) as channel:
            channel.queue_declare("q", passive=True)
        program.stop()

    assert program.call(declare) == 0
    assert program.call(find) == 0


def test_the_disk_thread_gets_the_interpreter_often(program: Program) -> None:
    said: list[float] = []

    def look() -> None:
        said.append(sys.getswitchinterval())
        program.stop()

    program.call(look)
    assert said == [0.001]


def test_a_store_that_fails_ends_it_and_says_why(program: Program) -> None:
    told: list[Any] = []

    def lose_the_disk() -> None:
        (program.data_dir / "vhosts").touch()  # where a directory has to be
        with pytest.raises(pika.exceptions.ConnectionClosed) as closed:
            with client(program.config) as channel:
                channel.queue_declare("q", durable=True)
                channel.confirm_delivery()
                channel.basic_publish("", "q", b"x", pika.BasicProperties(delivery_mode=2))
        told.append((closed.value.reply_code, closed.value.reply_text))

    assert program.call(lose_the_disk) == 74
    assert told == [(541, "INTERNAL_ERROR - vhost '/' is down")]
    said = r"\[critical\] store_failed reason=.*/vhosts/.* failed: .*(EEXIST|ENOTDIR).*look at the disk"
    assert re.search(said, program.log.text)


def test_a_disk_that_does_not_answer_keeps_no_failed_node(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: list[int] = []

    async def end() -> None:
        loop, is_over = asyncio.get_running_loop(), asyncio.Event()

        def exit_at_once(status: int) -> None:
            statuses.append(status)
            loop.call_soon_threadsafe(is_over.set)

        class Stuck:
            stop = staticmethod(is_over.wait)

        monkeypatch.setattr(os, "_exit", exit_at_once)
        monkeypatch.setattr(program_module, "FAILED_LIMIT_S", 0.01)
        await program_module._end_failed(cast("Any", Stuck), cast("Any", Stuck))

    asyncio.run(end())
    assert statuses == [74]


def test_a_failed_node_that_gets_no_thread_to_watch_its_end_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    statuses: list[int] = []
    monkeypatch.setattr(threading.Thread, "start", _refused)
    monkeypatch.setattr(os, "_exit", statuses.append)
    program_module._limit()
    assert statuses == [74]


def test_a_start_that_gets_no_thread_says_what_to_do(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading.Thread, "start", _refused)
    assert program.main(*program.words()) == 1
    assert "can't start new thread: it needs five: raise the limit" in program.log.text
    assert "Traceback" not in program.log.text


@pytest.mark.parametrize("files", [10, 16])
def test_a_start_without_descriptors_is_a_sentence(program: Program, files: int) -> None:
    """Of whose loop libuv would end the process, or Python tell three tracebacks."""
    words = [
        "sh",
        "-c",
        f'ulimit -n {files}; exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "burrowmq.broker",
    ]
    done = subprocess.run(
        [*words, *program.words()], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (
        1,
        "burrowmq-server: cannot start: Too many open files; raise the limit of open files"
        " (ulimit -n, LimitNOFILE=, fs.file-max)\n",
    )


def _refused(_: threading.Thread) -> None:
    raise RuntimeError(program_module.NO_THREAD)


@pytest.mark.parametrize("where", ["a start", "what a client asked for", "a callback"])
def test_a_node_without_memory_ends_at_once(program: Program, tmp_path: Path, where: str) -> None:
    """In a process of its own, which it ends."""
    log = tmp_path / "it.log"
    words = [sys.executable, "-c", ENDS_WITHOUT_MEMORY, where]
    words += program.words(**{"log.file": str(log)})
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 71
    assert "no memory is left" in done.stderr
    assert "[critical] memory_exhausted" in log.read_text()


def test_a_log_that_nobody_reads_holds_nobody_up(program: Program) -> None:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, select.PIPE_BUF)
    os.write(writing, b"x" * select.PIPE_BUF)  # what was written before, and nobody has read
    words = [sys.executable, "-m", "burrowmq.broker", *program.words()]
    process = subprocess.Popen(words, stderr=writing)
    os.close(writing)
    try:
        until = time.monotonic() + START_TIMEOUT_S
        while not (program.data_dir / "control.sock").exists() and time.monotonic() < until:
            time.sleep(0.02)
        with client(program.config) as channel:
            channel.queue_declare("q")
        program.stop()
        assert process.wait(START_TIMEOUT_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(reading)


ENDS_WITHOUT_MEMORY = """
import asyncio, sys
from burrowmq.broker import __main__ as program
from burrowmq.broker.node.node import Node

def no_memory(*_):
    raise MemoryError

def started(self):
    match sys.argv[1]:
        case "a start": no_memory()
        case "a callback": asyncio.get_running_loop().call_soon(no_memory)
        case _: self.process.observer.bug_found("a connection", MemoryError())

async def start(node, usual=Node.start):
    await usual(node)
    started(node)

Node.start = start
sys.exit(program.main(sys.argv[2:]))
"""


# -- the log ----------------------------------------------------------------------------------------------------------


def test_warnings_of_the_configuration_are_logged(program: Program) -> None:
    assert program.call(**{"mqtt.tcp": "1883"}) == 0
    assert "[warning]" in program.log.text
    assert "mqtt.tcp" in program.log.text


def test_a_start_that_is_refused_leaves_the_file_of_the_process_that_runs(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "it.pid"
    monkeypatch.setenv("RABBITMQ_PID_FILE", str(pid))
    seen: list[Any] = []

    def start_another() -> None:
        words = [sys.executable, "-m", "burrowmq.broker", "--data-dir", str(program.data_dir)]
        refused = subprocess.run(words, capture_output=True, text=True, check=False)
        seen.extend((refused.returncode, "is in use by process" in refused.stderr))
        seen.append(pid.read_text())
        program.stop()

    assert program.call(start_another) == 0
    assert seen == [1, True, f"{os.getpid()}\n"]
    assert not pid.exists()


def test_a_node_whose_application_is_stopped_keeps_its_directory_and_its_socket(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "it.pid"
    monkeypatch.setenv("RABBITMQ_PID_FILE", str(pid))
    seen: list[Any] = []

    def start_another() -> None:
        program.node().request("POST", "/api/burrowmq/stop-app")
        other = Program(program.data_dir)
        words = [sys.executable, "-m", "burrowmq.broker", *other.words()]
        refused = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        seen.extend((refused.returncode, refused.stderr.splitlines()[-1]))
        seen.append(pid.read_text())
        program.node().request("POST", "/api/burrowmq/start-app")
        with client(program.config) as channel:
            channel.queue_declare("q")
        program.stop()

    assert program.call(start_another) == 0
    assert seen[0] == 1
    assert seen[1].startswith(
        f"burrowmq-server: cannot start: another node has data directory {program.data_dir}"
    )
    assert seen[2] == f"{os.getpid()}\n"


def test_the_service_manager_and_the_file_of_the_process_are_told(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, manager = tmp_path / "it.pid", socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("RABBITMQ_PID_FILE", str(pid))
    seen: list[str] = []

    def look() -> None:
        seen.append(pid.read_text())
        seen.append(manager.recv(1000).decode())
        program.stop()

    with manager:
        assert program.call(look) == 0
        assert seen[0] == f"{os.getpid()}\n"
        assert seen[1].startswith("READY=1\n")
        assert manager.recv(1000).startswith(b"STOPPING=1")
    assert not pid.exists()
    (tmp_path / "file").touch()
    monkeypatch.setenv("RABBITMQ_PID_FILE", str(tmp_path / "file" / "it.pid"))
    assert program.call() == 1
    assert "cannot write pid file" in program.log.text
    assert "it.pid: File exists" in program.log.text


def test_the_directory_of_the_process_file_is_made(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As RabbitMQ does: /run is empty when a machine has started."""
    pid = tmp_path / "run" / "rabbitmq" / "it.pid"
    monkeypatch.setenv("RABBITMQ_PID_FILE", str(pid))
    seen: list[str] = []

    def look() -> None:
        seen.append(pid.read_text())
        program.stop()

    assert program.call(look) == 0
    assert seen == [f"{os.getpid()}\n"]


def test_a_pipe_that_nobody_reads_is_no_file_of_the_process(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "it.pid")
    monkeypatch.setenv("RABBITMQ_PID_FILE", str(tmp_path / "it.pid"))
    assert program.call() == 1
    assert program.log.text.endswith(
        "it.pid: No such device or address; name another with RABBITMQ_PID_FILE\n"
    )


def test_an_operator_may_ask_what_runs_and_where_each_value_comes_from(program: Program) -> None:
    found: list[dict[str, str]] = []

    def ask() -> None:
        found.extend(program.node().get("/api/burrowmq/environment")["effective"])
        program.stop()

    assert program.call(ask, default_pass="sesame", reverse_dns_lookups="true") == 0
    rows = {row["key"]: row for row in found}
    assert rows["heartbeat"] == {
        "key": "heartbeat", "value": "60", "source": "default", "remark": "",
    }  # fmt: skip
    assert (rows["default_pass"]["value"], rows["default_pass"]["source"]) == ("(hidden)", "--set")
    assert rows["reverse_dns_lookups"]["remark"]


def test_the_log_begins_with_limits_and_how_far_they_are(program: Program) -> None:
    assert program.call(**{"vm_memory_high_watermark.absolute": "64GiB"}) == 0
    assert "Starting BurrowMQ" in program.log.text.splitlines()[0]
    (line,) = (line for line in program.log.text.splitlines() if "limits_known" in line)
    assert "used, the watermark is 68.7 GB of" in line
    assert "B free, the limit is 50 MB" in line
    assert "open, the limit is" in line


def test_a_log_file_has_a_level_of_its_own(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "log" / "node.log"
    settings = {"log.dir": str(path.parent), "log.file": path.name, "log.file.level": "warning"}
    assert program.call(**settings, **{"mqtt.tcp": "1883"}) == 0
    lines = path.read_text().splitlines()
    assert any("mqtt.tcp" in line for line in lines)
    assert all("[warning]" in line for line in lines)
    gc.collect()


# -- what ends it before it begins ------------------------------------------------------------------------------------


def test_every_problem_of_the_configuration_is_told_and_ends_it(program: Program) -> None:
    assert program.call(heartbeat="often", no_such_key="1") == 78
    told = program.log.text.splitlines()
    assert len(told) == 2
    assert all(line.startswith("burrowmq-server: ") for line in told)
    assert "heartbeat" in told[0] + told[1]
    assert "no_such_key" in told[0] + told[1]
    assert not program.data_dir.exists()


def test_a_pattern_that_the_node_cannot_use_is_told_with_its_key(program: Program) -> None:
    """Python knows possessive repeats, the broker's own expressions do not: it was a traceback."""
    keys = (
        "default_permissions.read",
        "default_users.u.vhost_pattern",
        "credential_validator.regexp",
    )
    words = [f"--set={key}=a++" for key in keys]
    assert program.main("--data-dir", str(program.data_dir), *words) == 78
    assert program.log.text.splitlines() == [
        f"burrowmq-server: --set: {key}: 'a++' is no regular expression that can be used:"
        " possessive repeats are not supported"
        for key in keys
    ]


def test_a_pattern_that_only_rabbitmq_and_the_node_know_is_taken(program: Program) -> None:
    assert program.call(**{"default_permissions.read": r"\A(?<all>.*)\z"}) == 0


def test_an_operator_policy_that_says_nothing_is_named_and_made_for_nobody(
    program: Program,
) -> None:
    """What is left of RabbitMQ's example, which mirrors; it was a traceback."""
    policy = "default_policies.operator.p"
    settings = {
        f"{policy}.vhost_pattern": ".*",
        f"{policy}.queue_pattern": "^q",
        f"{policy}.classic_queues.ha_mode": "all",
    }
    assert program.call(**settings) == 0
    for key in ("vhost_pattern", "queue_pattern"):
        assert f"{policy}.{key} has no effect here: the policy sets nothing" in program.log.text


def test_a_file_that_is_named_and_missing_ends_it(program: Program, tmp_path: Path) -> None:
    assert program.main("--config", str(tmp_path / "none.conf")) == 78
    assert "none.conf" in program.log.text


@pytest.mark.parametrize(
    ("words", "status"), [(["--version"], 0), (["--help"], 0), (["--nosuch"], 2), (["now"], 2)]
)
def test_the_command_line_may_end_it(words: list[str], status: int) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == status


def test_a_port_that_is_taken_ends_it_and_leaves_the_directory_free(program: Program) -> None:
    with socket.create_server(("127.0.0.1", program.port)):
        assert program.call() == 1
    assert (
        f"burrowmq-server: cannot start: cannot listen on 127.0.0.1:{program.port}: "
        in program.log.text
    )
    assert program.call() == 0


def test_management_that_cannot_listen_ends_it_and_leaves_the_directory_free(
    program: Program,
) -> None:
    with socket.create_server(("127.0.0.1", program.management_port)):
        assert program.call() == 1
    assert (
        f"burrowmq-server: cannot start: cannot listen on 127.0.0.1:{program.management_port}:"
        " Address already in use; stop what uses it, or name another with management.tcp.port or"
        " prometheus.tcp.port\n"
    ) in program.log.text
    assert program.call() == 0


@pytest.mark.parametrize("port", ["port", "management_port"])
def test_the_log_file_says_why_a_start_failed(program: Program, tmp_path: Path, port: str) -> None:
    path = tmp_path / "node.log"
    with socket.create_server(("127.0.0.1", getattr(program, port))):
        assert program.call(**{"log.file": str(path)}) == 1
    (line,) = (line for line in path.read_text().splitlines() if "start_failed" in line)
    assert "[critical] start_failed reason='cannot listen on 127.0.0.1:" in line
    assert "Address already in use; stop what uses it, or name another with" in line
    assert "start_failed" not in program.log.text, "standard error has it in a line of its own"


def test_a_log_file_that_cannot_be_opened_ends_it(program: Program, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert program.call(**{"log.dir": str(tmp_path / "file"), "log.file": "node.log"}) == 1
    assert "burrowmq-server: cannot start: cannot open log file" in program.log.text
    assert "name another with log.file or log.dir" in program.log.text


def test_a_relative_directory_of_a_working_directory_that_is_no_more_ends_it(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    program.data_dir = Path("data")
    assert program.call() == 1
    assert "cannot start: data directory data cannot be used: No such file" in program.log.text


def test_a_process_is_older_each_time_it_is_asked() -> None:
    first, second = process_age_s(), process_age_s()
    assert 0 < first <= second < 86_400
