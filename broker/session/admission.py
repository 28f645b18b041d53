"""Who may come in: the login of a connection, and its entry into a virtual host.

One for the node. Owns no state but the node's limits; asks `broker.rules.auth`, counts attempts, tells the observer.
Refusals are raised: a failed login as LoginRefused or an AmqpError (after which the session closes the socket without
saying why), a refused vhost as NotAllowed with RabbitMQ's text.

Source: rabbit_reader (auth_phase, connection.open), rabbit_access_control.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from burrowmq.broker.peer import certificate
from burrowmq.broker.peer.wire import Peer
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.rules.auth import Auth, LoginRefused, User
from burrowmq.broker.session import connection_limits
from burrowmq.broker.session.connection_limits import CountedSession, NodeLimits
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.protocol.connection.sasl import NODE_MECHANISM, credentials
from burrowmq.protocol.errors import AmqpError, NotAllowed
from burrowmq.protocol.events import LoginAttempt
from burrowmq.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateName:
    """Which part of a client's certificate is a user's name; `broker.peer.certificate` says what each means."""

    source: str = "distinguished_name"
    san_type: str = "dns"
    san_index: int = 0


class Admission:
    """Decides who may come in."""

    def __init__(
        self,
        auth: Auth,
        vhosts: Mapping[str, Vhost],
        sessions: Collection[CountedSession],
        limits: NodeLimits,
        metrics: NodeMetrics,
        observer: Observer,
        certificate_name: CertificateName = CertificateName(),  # noqa: B008 - it cannot change
    ) -> None:
        self._certificate_name = certificate_name
        self._auth = auth
        self._vhosts = vhosts
        self._sessions = sessions
        self._limits = limits
        self._metrics = metrics
        self._observer = observer

    def log_in(self, attempt: LoginAttempt, peer: Peer) -> User:
        """The user who logs in. Raises LoginRefused, or an AmqpError when the response makes no sense."""
        self._metrics.auth_attempts += 1
        try:
            if attempt.mechanism == NODE_MECHANISM and peer.is_node:
                return self._auth.trusted(attempt.response.decode("utf-8", "replace"))
            if attempt.mechanism == "EXTERNAL":
                return self._auth.authenticate_by_certificate(
                    self._name_of(peer), is_loopback=peer.is_loopback
                )
            given = credentials(attempt.mechanism, attempt.response)
            return self._auth.authenticate(
                given.username,
                given.password,
                is_loopback=peer.is_loopback,
                address=peer.host,
            )
        except (LoginRefused, AmqpError) as refusal:
            reason = refusal.reply_text if isinstance(refusal, AmqpError) else str(refusal)
            self._metrics.auth_failures += 1
            self._observer.login_refused(peer.name, attempt.mechanism, reason)
            raise

    def _name_of(self, peer: Peer) -> str:
        """The user name in the peer's certificate. Raises LoginRefused with RabbitMQ's reasons."""
        found = None if peer.tls is None else peer.tls.certificate
        if found is None:
            raise LoginRefused("connection peer presented no TLS (x.509) certificate")
        wanted = self._certificate_name
        name = certificate.login_name(found, wanted.source, wanted.san_type, wanted.san_index)
        if name is None:
            raise LoginRefused("no name found")
        return name

    def enter(self, user: User, vhost_name: str) -> Vhost:
        """The vhost that a logged-in user opens. Raises NotAllowed."""
        limit = self._limits.connection_max
        if limit is not None and sum(each.is_open for each in self._sessions) >= limit:
            raise NotAllowed(f"connection refused: node connection limit ({limit}) is reached")
        vhost = self._vhosts.get(vhost_name)
        if vhost is None:
            raise NotAllowed(f"vhost {vhost_name} not found")
        # Asked again: the limits may have been set since the login.
        user = self._auth.as_of_now(user)
        connection_limits.check_open(user, vhost, self._sessions)
        if not self._auth.may_enter(user, vhost_name):
            raise NotAllowed(f"access to vhost '{vhost_name}' refused for user '{user.name}'")
        return vhost

    def open_channel(self, user: User) -> None:
        """A user opens one more channel. Raises NotAllowed."""
        connection_limits.check_node_channels(self._limits, self._sessions)
        user = self._auth.as_of_now(user)
        if user.limits:
            connection_limits.check_channel(user, self._sessions)
