"""Where developers sit there may be no /proc, no fdatasync, no tmpfs: an embedded broker works without each of them.

One process forks for each thing, hides it before anything of ours is imported, and uses a broker then.

Covers: storage/real_time.py
"""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = r"""
import builtins, ctypes, errno, fcntl, os, socket, sys, tempfile, traceback
import pika

def without_proc():
    def hidden(call):
        def guarded(path, *arguments, **options):
            if isinstance(path, (str, bytes)) and os.fsdecode(path).startswith("/proc"):
                raise FileNotFoundError(errno.ENOENT, "hidden", path)
            return call(path, *arguments, **options)
        return guarded
    builtins.open, os.listdir, os.readlink = hidden(open), hidden(os.listdir), hidden(os.readlink)

def without_compiled():
    for name in ("protocol.codec._codec_c", "storage.record._record_c", "storage.files._sync_c",
                 "broker.machine._pools_c", "broker.turn._send_c"):
        sys.modules["burrowmq." + name] = None

def without_shm():
    before = os.access
    os.access = lambda path, mode: path != "/dev/shm" and before(path, mode)

def without_glibc():
    ctypes.CDLL = lambda name: object()

def as_macos_syncs():
    fcntl.F_FULLFSYNC = 51  # which Linux refuses, as some file systems of macOS do

def hide(owner, *names):
    return lambda: [delattr(owner, name) for name in names if hasattr(owner, name)]

HIDDEN = {
    "fdatasync": hide(os, "fdatasync"),
    "posix_fallocate": hide(os, "posix_fallocate"),
    "pwritev2": hide(os, "pwritev", "preadv", "RWF_DSYNC"),
    "affinity": hide(os, "sched_getaffinity"),
    "SO_PEERCRED": hide(socket, "SO_PEERCRED"),
    "eventfd": hide(os, "eventfd", "posix_fadvise", "copy_file_range", "sendfile", "memfd_create", "pidfd_open"),
    "sync_file_range and all that is compiled": without_compiled,
    "/proc": without_proc,
    "/dev/shm": without_shm,
    "malloc_trim": without_glibc,
    "fsync as on macOS": as_macos_syncs,
}
HIDDEN["all of it"] = lambda calls=tuple(HIDDEN.values()): [call() for call in calls]

def use():
    from burrowmq.embedded import Broker
    from burrowmq.broker.machine import processors, resources
    from burrowmq.broker.machine.reclaim import CLibrary
    assert processors.usable() > 0 and processors.idle_seconds() >= 0
    assert resources.rss_bytes() > 1 << 20 and resources.open_files() > 0
    CLibrary().give_back()
    persistent = pika.BasicProperties(delivery_mode=2)
    with tempfile.TemporaryDirectory() as directory, Broker(
        directory, config={"store_commit_log": "on"}
    ) as named, Broker() as own:
        for broker in (named, own):
            with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
                channel = connection.channel()
                channel.confirm_delivery()
                for name in ("a", "b"):
                    channel.queue_declare(name, durable=True)
                    for size in (10, 10_000):
                        channel.basic_publish("", name, bytes(size), persistent)
            broker.restart()
            broker.kill()
            broker.start()
            for name in ("a", "b"):
                with broker.vhost("other"):
                    pass
                assert [len(each["body"]) for each in broker.ask("messages", "/", name)] == [10, 10_000]

failed = []
for name, call in HIDDEN.items():
    child = os.fork()
    if not child:
        try:
            call()
            use()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(name)
sys.exit(f"does not work without: {', '.join(failed)}" if failed else 0)
"""


@pytest.mark.slow
def test_it_works_without_each_call_that_only_linux_has() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
