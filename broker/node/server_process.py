"""What stays the same in a server process, however often the application is stopped and started in it.

Declarations only: made once by `broker.node.node` from the configuration and the machine, given to each `RunningNode`,
and read by management, whether the application runs or not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import field

from burrowmq.broker.machine import resources
from burrowmq.broker.machine.collector import Collector, PythonCollector
from burrowmq.broker.machine.reclaim import Allocator, ServersAllocator
from burrowmq.broker.report.log import LogObserver
from burrowmq.broker.report.log_tail import LogTail
from burrowmq.broker.turn.clock import Entropy
from burrowmq.broker.turn.loop_scheduler import SystemEntropy
from burrowmq.broker.turn.timeline import Timeline
from burrowmq.config.effective import Effective
from burrowmq.config.schema import NodeConfig
from burrowmq.protocol.codec import NAME as CODEC_NAME
from burrowmq.records import dataclass
from burrowmq.storage import real_time as time
from burrowmq.storage.directory.recovery import DefinitionsAt
from burrowmq.storage.engine import Engine
from burrowmq.storage.files.filesystem import FileSystem, OsFileSystem
from burrowmq.storage.types import Post

VERIFY = "BURROWMQ_VERIFY"


def end_if_verified(
    environment: Mapping[str, str] = os.environ,
) -> Callable[[int], object] | None:
    """What ends this process when a check of its state fails; None where it is not asked to check itself."""
    return os._exit if environment.get(VERIFY, "") not in ("", "0") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a process stands on: files, threads, memory, chance. Tests have something else behind each name."""

    filesystem: FileSystem = field(default_factory=OsFileSystem)
    definitions_at: DefinitionsAt | None = None
    """Opens the definitions of a data directory; None: SQLite's."""
    start_store: Callable[[Engine, Post], None] = Engine.start
    """Begins what the store does beside the loop."""
    measure: Callable[[str], resources.Measurement] = resources.measure
    allocator: Allocator = field(default_factory=ServersAllocator)
    collector: Collector = field(default_factory=PythonCollector)
    entropy: Entropy = field(default_factory=SystemEntropy)
    end: Callable[[int], object] | None = field(default_factory=end_if_verified)
    """Ends the process with a status when an invariant does not hold; None: nobody looks."""
    timeline: Timeline | None = None
    """A clock that is moved by hand, by which deadlines go; None: they go by the real one."""
    stop_grace_s: float = 3.0
    """For how long a clean stop waits for clients to close their connections."""
    has_ballast: bool = True
    """Whether the store reserves room for the day on which its disk is full."""
    may_block_at_end: bool = False
    """The loop has nothing else to do when the node ends: the store is closed on it, not in a thread beside it."""
    is_shared: bool = False
    """The process is somebody else's, who has a use for its time: the loop does not pause between turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProcess:
    """One process that serves.

    `config_files` are the files that the configuration was read from, `effective` its keys with where each comes from;
    `log_tail` has the end of the log.
    """

    config: NodeConfig
    observer: LogObserver
    config_files: tuple[str, ...] = ()
    effective: tuple[Effective, ...] = ()
    log_tail: LogTail = field(default_factory=LogTail)
    machine: Machine = field(default_factory=Machine)
    codec_name: str = CODEC_NAME
    sockets_max: int = field(default_factory=resources.sockets_max)
    started_at: float = field(default_factory=time.time)
    started_monotonic_s: float = field(default_factory=time.monotonic)
    """The same by a clock that nobody sets: machines begin with a wrong time, and get the right one later."""

    @property
    def name(self) -> str:
        """The node's name."""
        return self.config.node_name

    @property
    def memory_total_bytes(self) -> int:
        """The memory that shares are taken of: what the configuration says, else what there is."""
        return self.config.resources.memory_total_bytes or resources.memory_total_bytes()
