"""The claim of a process on a mirror: the latest one wins.

A store has no lock that ends with its process, and clocks of machines differ. So a process never waits for another one
and is never refused: it writes its claim over the earlier one, and each process reads the claim before it makes a
change that others see. A run on a machine that died has a successor at once, and a run that still lives notices that
it has one.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from dataclasses import asdict, dataclass

from truestep.loop.checkpoint.remote.storage import Storage

NAME = "owner.json"


class TakenOver(Exception):
    """Another process has claimed the mirror; the message names it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that has claimed a mirror last.

    Attributes:
        claim: number of the claim, one above all earlier ones.
        run: random name of the run.
        token: random name of the claim.
        host: name of the machine.
        pid: number of the process.
    """

    claim: int
    run: str
    token: str
    host: str
    pid: int

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def owner_of(storage: Storage) -> Owner | None:
    """Return the owner of a mirror; None if there is none, or if its file was not written to its end."""
    try:
        owner = Owner(**json.loads(storage.read(NAME) or b""))
    except (ValueError, TypeError):
        return None
    return owner if isinstance(owner.claim, int) else None


class Claim:
    """The claim of this process on a mirror, written at construction.

    Args:
        storage: the mirror.
        number: above all earlier ones.
        run: name of the run.
    """

    def __init__(self, storage: Storage, number: int, run: str) -> None:
        self._storage = storage
        self.own = Owner(number, run, secrets.token_hex(8), socket.gethostname(), os.getpid())
        self._write()

    def check(self) -> None:
        """Return if the mirror still belongs to this process; claim it again if the file is missing or incomplete.

        Raises:
            TakenOver: another process has claimed it.
        """
        owner = owner_of(self._storage)
        if owner is None:
            self._write()
        elif owner.token != self.own.token:
            raise TakenOver(str(owner))

    def _write(self) -> None:
        self._storage.write(NAME, json.dumps(asdict(self.own), indent=2).encode() + b"\n")
