"""Where the matrix of system calls has its faults: a call, and the kind of file that it is about.

State: none. Callers: syscall_matrix, syscall_cycles. `Site("pwrite", "index")` are the writes to queues' index files;
without a kind, all calls of that name, whatever their file. `unknown` says which calls of a trace no site has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

# A row fails all of its calls: which of them a system's libraries use is their choice.
CALLS = {
    "openat": "openat,openat2,open",
    "read": "read,readv",
    "pread": "pread64,preadv,preadv2",
    "write": "write,writev",
    "pwrite": "pwrite64,pwritev,pwritev2",
    "fdatasync": "fdatasync,fsync",
    "sync_file_range": "sync_file_range",
    "ftruncate": "ftruncate,truncate",
    "fallocate": "fallocate",
    "fadvise": "fadvise64",
    "rename": "rename,renameat,renameat2",
    "unlink": "unlink,unlinkat,rmdir",
    "mkdir": "mkdir,mkdirat",
    "link": "link,linkat",
    "getdents": "getdents64",
    "fstat": "fstat,newfstatat,stat,lstat,statx",
    "access": "access,faccessat,faccessat2",
    "chmod": "chmod,fchmod,fchmodat,chown,fchown,fchownat",
    "readlink": "readlink,readlinkat",
    "statfs": "statfs,fstatfs",
    "lseek": "lseek",
    "fcntl": "fcntl",
    "flock": "flock",
    "ioctl": "ioctl",
    "close": "close",
    "mmap": "mmap",
    "accept": "accept,accept4",
    "io_uring": "io_uring_enter",
}
# Calls that no disk and no lack of descriptors fails: waiting, memory, threads, signals, clocks, who one is.
OTHERS = re.compile(
    r"futex|epoll_|poll$|ppoll$|select|brk$|mprotect|madvise|munmap|mremap|rt_sig|sig|restart_syscall|clone|exit|execve"
    r"|set|get(pid|ppid|tid|uid|euid|gid|egid|rusage|random|cwd|sockopt|sockname|peername|rlimit)|prlimit64|sched_|rseq"
    r"|sysinfo|uname|umask|arch_prctl|prctl|clock_|timer|time|eventfd|pipe|dup|socket|bind|listen|connect|send|recv"
    r"|shutdown|io_uring_(setup|register)|wait4|kill|tgkill|personality|memfd_create|unshare|close_range|capget"
)
STORE = "the store"  # any file of a data directory
KINDS = (
    ("commit log", r"/data/.*commit_log"),
    ("index", r"\.qi\b"),
    ("bodies", r"\.qs\b"),
    ("shared store", r"\.seg\b|/data/.*/msg_store"),
    ("version 1", r"\.idx\b|\.jif\b"),
    ("definitions", r"\.db\b|\.db-"),
    ("queue's directory", r"/data/.*/queues"),
    ("data directory", r"/data\b"),
    ("/proc", r"/proc/|/sys/"),
    ("log", r"\.log\b|<pipe"),
)
FILES = ("index", "bodies", "shared store", "version 1")
PLACES = ("queue's directory", "data directory")
# What a node calls for each kind of file while it serves, and in a start.
SERVING = {
    "pread": FILES,
    "pwrite": (*FILES, "definitions", "commit log"),
    "fdatasync": (*FILES, "definitions", "commit log", *PLACES),
    "sync_file_range": ("index", "bodies"),
    "openat": (*FILES, *PLACES),
    "unlink": FILES,
    "rename": ("index", "shared store", "version 1"),
    "close": (*FILES, *PLACES),
    "ftruncate": ("shared store",),
}
STARTING = {
    "openat": (*FILES, "definitions", "commit log", *PLACES),
    "read": (*FILES, "commit log", *PLACES),
    "pread": (*FILES, "definitions", "commit log", "queue's directory"),
    "pwrite": ("shared store", "version 1", "definitions", "commit log", "data directory"),
    "fdatasync": (*FILES, "definitions", "commit log", *PLACES),
    "fstat": (*FILES, "definitions", "commit log", *PLACES),
    "getdents": ("shared store", *PLACES),
    **dict.fromkeys(
        (
            *(
                "rename",
                "unlink",
                "ftruncate",
                "mkdir",
                "close",
                "lseek",
                "ioctl",
                "fcntl",
                "flock",
            ),
            *("chmod", "mmap", "statfs", "readlink", "write", "sync_file_range", "access"),
        ),
        (STORE,),
    ),
}
# A file that is not there yet has one of the next numbers.
NEXT = 40
NUMBERED = re.compile(r"(\d+)((?:\.g\d+)?\.[a-z]+)$")
CALL = re.compile(r"^\d+ +(?:\d+\.\d+ )?(\w+)\((.*)$", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Site:
    """A call, and the kind of file that it is about; none: of any file."""

    call: str
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.call}: {self.kind}" if self.kind else self.call

    @property
    def version(self) -> int | None:
        """The version of the queues that have such files, where others have none."""
        return {"version 1": 1, "index": 2, "bodies": 2}.get(self.kind)


def kind_of(text: str) -> str:
    """Say what file a traced call, or a path, is about."""
    for kind, pattern in KINDS:
        if re.search(pattern, text):
            return kind
    return "elsewhere"


def sites(*, in_start: bool) -> Iterator[Site]:
    """All sites of a node that serves, or that starts.

    A start has no calls without a kind: most of them are those of a program that is being loaded.
    """
    if not in_start:
        yield from map(Site, CALLS)
    for call, kinds in (STARTING if in_start else SERVING).items():
        for kind in kinds:
            yield Site(call, kind)


def paths_of(kind: str, data: Path) -> list[str]:
    """The files of a kind that a data directory has, and those that it would have next."""
    found: set[str] = set()
    for path in [data, *data.rglob("*")]:
        if kind not in (STORE, kind_of(str(path))):
            continue
        found.add(str(path))
        numbered = NUMBERED.search(path.name)
        if numbered is not None:
            number, ending = int(numbered[1]), numbered[2]
            width = len(numbered[1])
            found |= {
                str(path.with_name(f"{number + more:0{width}d}{ending}")) for more in range(1, NEXT)
            }
    return sorted(found)


def unknown(trace: str) -> set[str]:
    """The calls of a trace that no site has, and that could fail for want of a disk or of descriptors."""
    known = {name for group in CALLS.values() for name in group.split(",")}
    called = {found[1] for found in CALL.finditer(trace)}
    return {name for name in called - known if not OTHERS.match(name)}


def seen(trace: str) -> dict[Site, int]:
    """How often each site occurs in a trace."""
    groups = {name: call for call, group in CALLS.items() for name in group.split(",")}
    found: dict[Site, int] = {}
    for line in CALL.finditer(trace):
        if line[1] in groups:
            site = Site(groups[line[1]], kind_of(line[2]))
            found[site] = found.get(site, 0) + 1
    return found


def missing(found: Iterable[Site], *, in_start: bool) -> list[Site]:
    """Those of the store's files that occur in a trace and have no row."""
    rows = set(sites(in_start=in_start))
    store = {kind for kind, _ in KINDS} - {"/proc", "log"}
    return sorted(
        site
        for site in found
        if site.kind in store and not {site, Site(site.call), Site(site.call, STORE)} & rows
    )
