"""A node with queues, sessions and users but no broker: what `broker.inspect` and the management layer read.

Used by the tests of management and cli. The attributes are those that the real node, vhost, queue, channel and
session publish; a test that needs a different world changes them, there is no behaviour behind them but the few
calls that the API makes (purge, delete, close, stop).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from burrowmq.broker.definitions.parameters import Parameters
from burrowmq.broker.node.monitor import ResourceLimits
from burrowmq.broker.queue.rules.settings import QueueDeclaration, Settings
from burrowmq.broker.report.metrics import ChannelMetrics, NodeMetrics, QueueMetrics
from burrowmq.broker.rules.auth import Auth, Permission, User
from burrowmq.broker.turn.clock import Entropy
from burrowmq.broker.vhost.vhost import Edge, StagingEngine, Vhost
from burrowmq.config.schema import LoginConfig
from burrowmq.config.tls import TlsConfig, make_context
from burrowmq.storage.directory.backup import BackupRefused
from burrowmq.storage.types import BackupJob, JsonValue


@dataclass(eq=False)
class FakeQueue:
    """A queue as inspect sees it."""

    name: str
    settings: Settings = field(default_factory=Settings)
    durable: bool = True
    auto_delete: bool = False
    exclusive_owner: FakeSession | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    ready_count: int = 0
    unacked_count: int = 0
    ready_bytes: int = 0
    unacked_bytes: int = 0
    ram_ready_count: int = 0
    ram_ready_bytes: int = 0
    persistent_count: int = 0
    persistent_bytes: int = 0
    consumers: list[FakeConsumer] = field(default_factory=list)
    memory_bytes: int = 4096
    metrics: QueueMetrics = field(default_factory=QueueMetrics)
    state: str = "running"
    levels: list[Any] = field(default_factory=list)

    def delete(self) -> None:
        """Nothing to end."""

    def apply_settings(self, settings: Settings) -> None:
        """Take them."""
        self.settings = settings

    def purge(self) -> int:
        """Forget the ready messages."""
        gone, self.ready_count, self.ready_bytes = self.ready_count, 0, 0
        return gone


@dataclass(eq=False)
class FakeConsumer:
    """A consumer as inspect sees it."""

    tag: str
    outlet: FakeChannel
    no_ack: bool = False
    exclusive: bool = False
    prefetch_count: int = 0
    arguments: dict[str, Any] = field(default_factory=dict)
    priority: int = 0
    is_active: bool = True


@dataclass
class FakeUnacked:
    """A count."""

    count: int = 0


@dataclass
class FakeConfirms:
    """A count."""

    unconfirmed_count: int = 0


@dataclass(eq=False)
class FakeChannel:
    """A channel as inspect sees it."""

    number: int
    session: FakeSession
    consumers: dict[str, FakeConsumer] = field(default_factory=dict)
    unacked: FakeUnacked = field(default_factory=FakeUnacked)
    confirms: FakeConfirms | None = None
    transaction: Any = None
    prefetch_count: int = 0
    global_prefetch_count: int = 0
    metrics: ChannelMetrics = field(default_factory=ChannelMetrics)


@dataclass
class FakePeer:
    """Both ends of a socket."""

    host: str = "127.0.0.1"
    port: int = 40000
    local_host: str = "127.0.0.1"
    local_port: int = 5672
    tls: Any = None


@dataclass
class FakeConnection:
    """The protocol's part of a session."""

    client_properties: dict[str, Any] = field(default_factory=dict)
    state: str = "running"
    channel_max: int = 2047
    frame_max: int = 131072
    heartbeat_s: int = 60


@dataclass
class FakeWire:
    """The socket's part of a session."""

    bytes_received: int = 100
    bytes_sent: int = 200
    reads: int = 3
    writes: int = 4


@dataclass(eq=False)
class FakeSession:
    """A connection as inspect sees it."""

    name: str
    user: User
    vhost: Vhost | None
    connection: FakeConnection = field(default_factory=FakeConnection)
    peer: FakePeer = field(default_factory=FakePeer)
    wire: FakeWire = field(default_factory=FakeWire)
    channels: dict[int, FakeChannel] = field(default_factory=dict)
    auth_mechanism: str = "PLAIN"
    is_blocked: bool = False
    is_publisher: bool = False
    connected_at_ms: int = 1_700_000_000_000
    closed_with: list[str] = field(default_factory=list)
    cancelled_before_close: bool = False

    @property
    def vhost_name(self) -> str:
        """The name of the vhost that was entered."""
        return self.vhost.name if self.vhost else ""

    def cancel_consumers(self) -> None:
        """Remember when: before the close or after it."""
        self.cancelled_before_close = not self.closed_with

    def force_close(self, text: str) -> None:
        """Remember the text."""
        self.closed_with.append(text)


class FakeDefinitions:
    """Remembers rows."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], dict[str, object]] = {}

    def put(self, kind: str, key: str, value: dict[str, object]) -> None:
        """Write a row."""
        self.rows[(kind, key)] = value

    def delete(self, kind: str, key: str) -> None:
        """Remove a row."""
        self.rows.pop((kind, key), None)


class FakeEntropy:
    """The same token every time."""

    def token(self, size: int) -> bytes:
        """Zeros."""
        return bytes(size)


class FakeEngine:
    """Counts nothing, commits nothing."""

    def __init__(self) -> None:
        self.definitions = FakeDefinitions()
        self.epoch = 1
        self.syncs = 0
        self.backup: BackupJob | None = None

    def check_backup(self, directory: str) -> None:
        """Refuse one that is named so."""
        if "refused" in directory:
            raise BackupRefused(f"{directory} is not empty")

    def start_backup(self, directory: str, labels: dict[str, JsonValue]) -> BackupJob:
        """A job that a test moves on."""
        if "busy" in directory:
            raise BackupRefused("a backup is being made")
        self.backup = BackupJob(directory, labels)
        return self.backup

    def require_sync(self) -> None:
        """Count."""
        self.syncs += 1

    def is_deleting(self, vhost: str, name: str) -> bool:
        """Nothing is stored."""
        return False

    def delete_vhost(self, vhost: str) -> None:
        """Nothing is stored."""

    def stats(self) -> dict[str, int]:
        """No figures."""
        return {}


@dataclass
class FakeListeners:
    """Nothing listens unless a test says so."""

    listeners: tuple[FakeEndpoint, ...] = ()
    tls_listeners: tuple[FakeEndpoint, ...] = ()
    tls: TlsConfig = field(default_factory=TlsConfig)
    path: str = "/metrics"
    per_object: bool = False


@dataclass
class FakeEndpoint:
    """An address."""

    host: str
    port: int


@dataclass
class FakeResources:
    """Limits of memory and disk."""

    memory_relative: float = 0.4
    memory_absolute_bytes: int | None = None
    memory_total_bytes: int | None = 1_000_000_000
    disk_absolute_bytes: int = 50_000_000
    disk_relative: float | None = None


@dataclass
class FakeLog:
    """The log goes to standard error."""

    file_path: str | None = None
    console: bool = True


@dataclass
class FakeStore:
    """The default promise."""

    confirm: str = "fsync"


@dataclass
class FakeConfig:
    """What management reads of the node's configuration."""

    data_dir: str = ""
    node_name: str = "rabbit@test"
    collect_statistics_interval_ms: int = 5000
    listeners: tuple[FakeEndpoint, ...] = (FakeEndpoint("127.0.0.1", 5672),)
    tls_listeners: tuple[FakeEndpoint, ...] = ()
    tls: TlsConfig = field(default_factory=TlsConfig)
    login: LoginConfig = field(default_factory=LoginConfig)
    management: FakeListeners = field(default_factory=FakeListeners)
    prometheus: FakeListeners = field(default_factory=FakeListeners)
    resources: FakeResources = field(default_factory=FakeResources)
    log: FakeLog = field(default_factory=FakeLog)
    store: FakeStore = field(default_factory=FakeStore)


@dataclass
class FakeAlarms:
    """Resources in alarm."""

    active: set[str] = field(default_factory=set)


class FakeMonitor:
    """Real limits, and counts of looks and of requests for memory."""

    def __init__(self) -> None:
        self.looks = 0
        self.given_back = 0
        self.limits = ResourceLimits(
            memory_bytes=400_000_000,
            disk_free_bytes=50_000_000,
            paging_ratio=None,
            memory_relative=0.4,
            memory_total_bytes=1_000_000_000,
        )

    def give_back_memory(self) -> None:
        """Count."""
        self.given_back += 1

    def look(self) -> None:
        """Count."""
        self.looks += 1


class FakeAcceptor:
    """Remembers what was asked of it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.is_taken = False

    def suspend(self) -> None:
        """Remember."""
        self.calls.append("suspend")

    async def resume(self) -> None:
        """Remember, or fail as a port that is taken does."""
        if self.is_taken:
            raise OSError("taken")
        self.calls.append("resume")


class FakeObserver:
    """Remembers the log's level and what listens."""

    level = "info"

    def __init__(self) -> None:
        self.listeners: list[tuple[str, str, bool]] = []
        self.changes: list[tuple[str, str, str]] = []
        self.refusals: list[tuple[str, str, str]] = []

    def change_made(self, user: str, method: str, path: str) -> None:
        """Write it down."""
        self.changes.append((user, method, path))

    def login_refused(self, connection: str, mechanism: str, reason: str) -> None:
        """Write it down."""
        self.refusals.append((connection, mechanism, reason))

    def http_listener_started(self, part: str, address: str, is_tls: bool) -> None:
        """Write it down."""
        self.listeners.append((part, address, is_tls))

    def set_level(self, level: str) -> None:
        """Take it."""
        self.level = level


class FakeTurn:
    """Counts how often the store was told that something was staged."""

    def __init__(self) -> None:
        self.touches = 0

    def touch(self) -> None:
        """Count."""
        self.touches += 1

    def when_committed(self, epoch: int, callback: Callable[[], None]) -> None:
        """At once."""
        callback()


class FakeNode:
    """A node with the vhost `/`, the user guest, and nothing else."""

    def __init__(self) -> None:
        self.name = "rabbit@test"
        self.started_at = 1_700_000_000.0
        self.config = FakeConfig()
        self.metrics = NodeMetrics()
        self.engine = FakeEngine()
        self.alarms = FakeAlarms()
        self.turn = FakeTurn()
        self.codec_name = "interpreted"
        self.sockets_max = 900
        self.auth = Auth(self.engine.definitions, cast("Entropy", FakeEntropy()))
        self.parameters = Parameters(self.engine.definitions)
        self.auth.set_password("guest", "guest")
        self.auth.set_tags("guest", ("administrator",))
        self.auth.set_permission("/", "guest", Permission(configure=".*", write=".*", read=".*"))
        self.vhosts = {"/": self.make_vhost("/")}
        self.sessions: set[FakeSession] = set()
        self.stop_requests = 0
        self.vhosts_made: list[str] = []
        self.cluster_name = self.name
        self.entropy = FakeEntropy()
        self.monitor = FakeMonitor()
        self.observer = FakeObserver()
        self.acceptor = FakeAcceptor()
        self.config_files = ("/etc/rabbitmq/rabbitmq.conf",)

    @property
    def process(self) -> FakeNode:
        """A running node and its process are one here."""
        return self

    @property
    def running(self) -> FakeNode:
        """Itself."""
        return self

    def vhost_made(self, vhost: Vhost) -> None:
        """What new virtual hosts begin with."""
        self.vhosts_made.append(vhost.name)

    def make_vhost(self, name: str) -> Vhost:
        """A real vhost over fake queues."""
        return Vhost(
            name,
            cast("StagingEngine", self.engine),
            cast("Any", make_queue),
            cast("Entropy", FakeEntropy()),
        )

    def set_cluster_name(self, name: str) -> None:
        """Take it."""
        self.cluster_name = name

    def tls_context(self, options: TlsConfig) -> Any:
        """What the real node does."""
        return make_context(options)

    def request_stop(self) -> None:
        """Count."""
        self.stop_requests += 1


def make_queue(vhost: Vhost, declaration: QueueDeclaration, settings: Settings) -> FakeQueue:
    """What the vhost's queue factory makes."""
    return FakeQueue(
        declaration.name,
        settings,
        durable=declaration.durable,
        auto_delete=declaration.auto_delete,
        exclusive_owner=cast("FakeSession | None", declaration.owner),
        arguments=dict(declaration.arguments),
    )


def add_queue(
    node: FakeNode, name: str, *, vhost: str = "/", durable: bool = True, **more: Any
) -> FakeQueue:
    """Declare a queue and set what the test wants to see."""
    declaration = QueueDeclaration(name=name, durable=durable, arguments=more.pop("arguments", {}))
    queue = cast("FakeQueue", node.vhosts[vhost].declare_queue(declaration))
    for key, value in more.items():
        setattr(queue, key, value)
    return queue


def small_world() -> FakeNode:
    """The node of the lazy queue guide's transcript, and a small queue with a consumer and a binding."""
    node = FakeNode()
    vhost = node.vhosts["/"]
    lazy = add_queue(
        node, "lazy", arguments={"x-queue-mode": "lazy"}, ready_count=1_000_000, ready_bytes=1_000_000_000,
        persistent_count=1_000_000, persistent_bytes=1_000_000_000, memory_bytes=20_480,
    )  # fmt: skip
    lazy.metrics.publish = 1_000_000
    orders = add_queue(
        node, "orders", durable=False, auto_delete=True, ready_count=3, ready_bytes=30, ram_ready_count=3,
        ram_ready_bytes=30, unacked_count=1, unacked_bytes=10,
    )  # fmt: skip
    properties = {"product": "pika", "capabilities": {"basic.nack": True}}
    session = FakeSession(
        "127.0.0.1:40000 -> 127.0.0.1:5672",
        node.auth.users["guest"],
        vhost,
        FakeConnection(properties),
    )
    channel = FakeChannel(1, session, unacked=FakeUnacked(1), prefetch_count=10)
    consumer = FakeConsumer("ctag1", channel, prefetch_count=10)
    channel.consumers["ctag1"] = consumer
    session.channels[1] = channel
    orders.consumers.append(consumer)
    node.sessions.add(session)
    vhost.bind(Edge("amq.topic", "queue", "orders", b"a b/c", {"x": 1}))
    return node
