"""burrowmq-server: command line and environment to configuration to a running node to an exit status.

Exit status 0 after a clean stop (SIGTERM, SIGINT, `burrowctl shutdown`), 78 for a bad configuration, 1 when the node
cannot start, or its store cannot be closed cleanly, 74 when the store fails while the node runs: within two seconds,
even if the disk does not answer; the reason is on standard error. 71 at once when no memory is left
(`broker.machine.out_of_memory`). With BURROWMQ_VERIFY=1, 70 at once when an invariant does not hold
(`broker.node.self_check`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import uvloop

from burrowmq.broker.machine.executor import NO_THREAD, PatientExecutor
from burrowmq.broker.machine.out_of_memory import EX_OSERR, LAST_WORDS, OutOfMemory
from burrowmq.broker.machine.reclaim import compiled_pools
from burrowmq.broker.machine.systemd import ServiceNotice
from burrowmq.broker.node.node import START_ERRORS, Node, reason_of
from burrowmq.broker.node.server_process import ServerProcess
from burrowmq.broker.product import VERSION
from burrowmq.broker.report.console import Consoles
from burrowmq.broker.report.log import LogObserver
from burrowmq.broker.report.log_sinks import (
    CannotLog,
    Sink,
    Sinks,
    console,
    log_file,
    without_waiting,
)
from burrowmq.broker.report.log_tail import LogTail
from burrowmq.broker.rules.pattern import compile_pattern
from burrowmq.broker.sockets.listener import MORE_FILES
from burrowmq.config.errors import ConfigError
from burrowmq.config.given import Loaded
from burrowmq.config.load import load, parse_argv
from burrowmq.config.schema import LogConfig
from burrowmq.lookup import MORE_THREADS
from burrowmq.storage.directory.recovery import definitions_bytes

EX_IOERR = 74
EX_CONFIG = 78
FAILED_LIMIT_S = 1.5
"""How long a node whose store has failed may take to end; then the process ends as in a crash."""
MANY_DEFINITIONS_BYTES = 1 << 20
"""With more definitions than that (some 5,000 queues) what serves HTTP is loaded before them: what lives as long as the
process would else lie among what queues are made of, and keep its memory when they are deleted."""
IGNORED = (signal.SIGHUP, signal.SIGTSTP, signal.SIGUSR1, signal.SIGUSR2)
"""Who sends the first wants files opened again (which they are by themselves), or has closed a terminal; ^Z would leave
clients without heartbeats. Both as in RabbitMQ. The last two are other daemons' signals for their logs or settings."""
STOPPING = (signal.SIGTERM, signal.SIGINT)
STDERR = 2
GIVEN_EVERY_S = 1.0
GIVEN_AGAIN_S = 0.05
"""A pipe takes 64 KB at a time: who has come back and reads is not to wait for each of them."""
LOOP_FILES = 20
"""What the loop is made of, and what is loaded before the node itself can say how many there are."""
SWITCH_INTERVAL_S = 0.001
"""How long a thread may keep the interpreter while another waits: the disk thread needs it often and briefly."""


def process_age_s() -> float:
    """Seconds since this process was started, by the kernel's clock."""
    try:
        with open("/proc/self/stat", "rb") as stat:
            started_ticks = int(stat.read().rpartition(b")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started_ticks / os.sysconf("SC_CLK_TCK")
    except OSError:
        return time.process_time()


def _sinks(log: LogConfig) -> list[Sink]:
    """Where the configuration sends log lines. Raises CannotLog."""
    sinks = []
    if log.console:
        level = log.console_level or log.level
        sinks.append(console(level, log.console_format, log.console_stream))
    if log.file_path is not None:
        file = log_file(log.file_path, log.rotation_size_bytes or 0, log.rotation_count)
        level = log.file_level or log.level
        sinks.append(Sink(stream=file, level=level, form=log.file_format))
    return sinks


class CannotWritePid(Exception):
    """The file for the process's number cannot be written."""


class PidFile:
    """The file for the process's number, for who waits for it: from when the data directory is its own until it ends.

    A process that finds the directory in use leaves the file of the one that has it.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._is_written = False

    def write(self) -> None:
        """Write it, the first time; its directory is made, as RabbitMQ does. Raises CannotWritePid."""
        if self._path is None or self._is_written:
            return
        try:
            os.makedirs(os.path.dirname(self._path) or ".", exist_ok=True)
            with open(self._path, "w", encoding="ascii", opener=without_waiting) as file:
                file.write(f"{os.getpid()}\n")
        except OSError as error:
            way = "name another with RABBITMQ_PID_FILE"
            text = f"cannot write pid file {self._path}: {error.strerror}; {way}"
            raise CannotWritePid(text) from error
        self._is_written = True

    def remove(self) -> None:
        """Take it away, if it was written."""
        if self._path is not None and self._is_written:
            with contextlib.suppress(OSError):
                os.unlink(self._path)


class _Observer(LogObserver):
    """A server's: it ends where what looks like a bug is that no memory is left."""

    def __init__(self, sinks: Sinks, memory: OutOfMemory) -> None:
        super().__init__(sinks)
        self._sinks = sinks
        self._memory = memory

    def bug_found(self, connection: str, error: BaseException) -> None:
        self._memory.found(error)
        super().bug_found(connection, error)

    def invariant_broken(self, sentence: str) -> None:
        super().invariant_broken(sentence)
        self._sinks.finish()  # the process ends at once


def _say_start(observer: LogObserver, node: Node) -> None:
    process = node.process
    where = process.config.data_dir
    # There may be no working directory: what is in it cannot be used then.
    with contextlib.suppress(OSError):
        where = os.path.abspath(where)
    observer.node_starting(VERSION, process.name, where, " ".join(process.config_files))


async def run(loaded: Loaded, pid: PidFile, consoles: Consoles) -> int:
    """Start the node, serve until asked to stop, stop it."""
    config, tail = loaded.config, LogTail()
    try:
        sinks = Sinks([*_sinks(config.log), Sink(stream=tail, level=config.log.level)])
    except CannotLog as error:
        sys.stderr.write(f"burrowmq-server: cannot start: {error}\n")
        return 1
    loop = asyncio.get_running_loop()
    _keep_giving(loop, consoles, sinks)
    loop.set_default_executor(PatientExecutor(thread_name_prefix="asyncio"))
    memory = OutOfMemory(partial(_say_exhausted, sinks.files()))
    memory.watch(loop)
    pools = compiled_pools()
    if pools is not None:
        pools.end_without_arenas(LAST_WORDS, EX_OSERR)
    try:
        return await _serve(loaded, sinks, tail, memory, pid)
    except MemoryError as error:
        memory.found(error)
        raise
    finally:
        if pools is not None:
            pools.end_without_arenas(b"", 0)
        sinks.close()
        _deafen(loop)


def _say_exhausted(files: Sinks) -> None:
    LogObserver(files).memory_exhausted()
    files.finish()  # nothing comes behind it


def _keep_giving(loop: asyncio.AbstractEventLoop, consoles: Consoles, sinks: Sinks) -> None:
    """Lines that a slow reader left lying are not to wait for the next one."""
    is_behind = [consoles.give(), sinks.give()]
    next_s = GIVEN_AGAIN_S if any(is_behind) else GIVEN_EVERY_S
    loop.call_later(next_s, _keep_giving, loop, consoles, sinks)


def _deafen(loop: asyncio.AbstractEventLoop) -> None:
    """Nothing is left to stop: a second ^C would end the process as an interrupted one, without its last steps."""
    for signum in STOPPING:
        loop.remove_signal_handler(signum)
        signal.signal(signum, signal.SIG_IGN)


def _cannot_start(sinks: Sinks, reason: str) -> int:
    """Say why on standard error, and in the log file for who looks there; the exit status."""
    sys.stderr.write(f"burrowmq-server: cannot start: {reason}\n")
    LogObserver(sinks.files()).start_failed(reason)
    return 1


async def _serve(
    loaded: Loaded, sinks: Sinks, tail: LogTail, memory: OutOfMemory, pid: PidFile
) -> int:
    config, observer = loaded.config, _Observer(sinks, memory)
    node = Node(config, observer, loaded.files, effective=loaded.effective, log_tail=tail)
    sockets = import_module("burrowmq.management.bound_sockets")
    node.on_locked = partial(_take_over, node, sockets.check_alone, pid)
    _say_start(observer, node)
    for warning in loaded.warnings:
        observer.configuration_warning(warning)
    loop = asyncio.get_running_loop()
    notice = ServiceNotice(os.environ)
    for signum in STOPPING:
        loop.add_signal_handler(signum, node.request_stop)
    if definitions_bytes(node.process.machine.filesystem, config.data_dir) > MANY_DEFINITIONS_BYTES:
        import_module("burrowmq.management.server").prepare()
    import_module(
        "burrowmq.storage.queue.v1.files"
    )  # later there may be no descriptor left to load it with
    try:
        await node.start()
    except (*START_ERRORS, CannotWritePid, sockets.CannotOpen) as error:
        return _cannot_start(sinks, reason_of(error))
    try:
        bound = sockets.bind(node.process)
    except OSError as error:
        status = _cannot_start(sinks, str(error))
        await node.stop()
        return status
    node.announce(process_age_s())
    notice.ready(loop)
    # aiohttp takes longer to load than all of the above: whoever connects meanwhile waits in the backlog.
    server = await loop.run_in_executor(None, import_module, "burrowmq.management.server")
    management = await server.start(node, bound)
    node.process.machine.collector.settle()
    node.process.machine.allocator.give_back()
    await node.wait_for_stop_request()
    notice.stopping()
    if node.failure is not None:
        return await _end_failed(node, management)
    return await _end(node, management)


def _take_over(node: Node, check_alone: Callable[[ServerProcess], None], pid: PidFile) -> None:
    """The data directory is ours, if nobody answers there. Raises CannotWritePid, and what `check_alone` does."""
    node.on_locked = pid.write  # when the application is started again, it is we who answer
    check_alone(node.process)
    pid.write()


def _limit() -> threading.Timer:
    """From now on the process has so long to end."""
    last = threading.Timer(FAILED_LIMIT_S, os._exit, (EX_IOERR,))
    last.daemon = True
    try:
        last.start()
    except RuntimeError:  # nobody would see to it
        os._exit(EX_IOERR)
    return last


async def _lift(last: threading.Timer) -> None:
    """All is done, if no thread of the executor's waits for the disk: the interpreter would wait for it."""
    await asyncio.get_running_loop().shutdown_default_executor()
    last.cancel()


async def _end(node: Node, management: Any) -> int:
    """End a process as it was asked to; its store may fail meanwhile."""
    limits: list[threading.Timer] = []
    node.on_failed = lambda: limits.append(_limit())
    await management.stop()
    is_clean = await node.stop()
    for last in limits:
        await _lift(last)
    return 0 if is_clean else 1


async def _end_failed(node: Node, management: Any) -> int:
    """End a process whose store has failed; the HTTP API goes last, so that health checks say why."""
    last = _limit()
    await node.stop()
    await management.stop()
    await _lift(last)
    return EX_IOERR


def _fill_standard_streams() -> None:
    """Have something behind 0, 1 and 2: a socket with such a number is what libuv ends a process for."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        pass
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - to the end


def _try_descriptors() -> None:
    """Find out whether there are enough for the loop: libuv ends the process for want of some. Raises OSError."""
    taken: list[int] = []
    try:
        while len(taken) < LOOP_FILES:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for number in taken:
            os.close(number)


def main(argv: Sequence[str] | None = None) -> int:
    """Console entry point."""
    _fill_standard_streams()
    invocation = parse_argv(sys.argv[1:] if argv is None else argv, VERSION)
    try:
        loaded = load(
            invocation.config_path,
            os.environ,
            invocation.overrides,
            invocation.data_dir,
            compile_pattern,
        )
    except ConfigError as error:
        sys.stderr.writelines(f"burrowmq-server: {each}\n" for each in error.problems)
        return EX_CONFIG
    try:
        _try_descriptors()
    except OSError as error:
        sys.stderr.write(f"burrowmq-server: cannot start: {error.strerror}; {MORE_FILES}\n")
        return 1
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    for signum in IGNORED:
        signal.signal(signum, signal.SIG_IGN)
    pid = PidFile(loaded.pid_file)
    try:
        with Consoles() as consoles, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(run(loaded, pid, consoles))
    except RuntimeError as error:
        if str(error) != NO_THREAD:
            raise
        sys.stderr.write(f"burrowmq-server: cannot start: {error}: it needs five: {MORE_THREADS}\n")
        return 1
    finally:
        pid.remove()


if __name__ == "__main__":
    sys.exit(main())
