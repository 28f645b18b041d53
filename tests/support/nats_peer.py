"""A nats-server as far as a link can tell: says INFO, answers CONNECT's PING, keeps what else it hears.

For what a real server does not do when it is told to: refuse, say nothing, stop with notice. `bench.nats_servers` starts real
ones. State owned: the listening socket, the last connection. Used within one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator


class NatsPeer:
    """Made by `listening`. `answer` is what it says to the PING behind CONNECT."""

    def __init__(self, name: str) -> None:
        self.answer = b"PONG\r\n"
        self.info: dict[str, object] = {
            "server_id": "N1",
            "server_name": name,
            "version": "2.15.2",
            "max_payload": 1 << 20,
            "headers": True,
            "jetstream": True,
        }
        self.port = 0
        self.connection_count = 0
        self.tls: ssl.SSLContext | None = None
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._writer: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connection_count += 1
        self._writer = writer
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            self.tell()
            if self.tls is not None:
                await writer.start_tls(self.tls)
            while line := await reader.readline():
                line = line.strip()
                if line == b"PING":
                    self.say(self.answer)
                else:
                    self._lines.put_nowait(line)
        writer.close()

    def tell(self) -> None:
        """INFO."""
        self.say(b"INFO " + json.dumps(self.info).encode() + b"\r\n")

    def say(self, octets: bytes) -> None:
        """Send to the last that has connected."""
        assert self._writer is not None, "somebody has connected"
        self._writer.write(octets)

    def hang_up(self) -> None:
        """Close the last connection."""
        assert self._writer is not None, "somebody has connected"
        self._writer.close()

    async def heard(self, verb: str) -> bytes:
        """The next line that begins with this word; those before it are passed over."""
        while True:
            line = await self._lines.get()
            if line.split(b" ")[0] == verb.encode():
                return line


@contextlib.asynccontextmanager
async def listening(name: str = "peer") -> AsyncIterator[NatsPeer]:
    """A peer on a free port of loopback."""
    peer = NatsPeer(name)
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    peer.port = server.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        server.close()
        if peer._writer is not None:
            peer._writer.close()
        await server.wait_closed()
