"""A connection between two processes of one machine for JSON objects, one per line."""

from __future__ import annotations

import json
import select
import socket
from typing import Any


class MessagePipe:
    """One end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._read = b""

    def send(self, message: Any) -> None:
        """Send an object as JSON."""
        self._connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> Any:
        """Wait for an object, and return it; None if the other end is closed."""
        while b"\n" not in self._read:
            try:
                more = self._connection.recv(65536)
            except OSError:
                return None
            if not more:
                return None
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)

    def waits(self, seconds: float) -> bool:
        """Return True if `receive` will not block: an object, or the end, arrived within these seconds."""
        return b"\n" in self._read or bool(select.select([self._connection], [], [], seconds)[0])

    def close(self) -> None:
        """Close the connection, even if child processes still hold its file descriptor."""
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._connection.close()
