"""Start several processes of one script on this machine as torchrun does, without a daemon that outlives them."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time

_LOOK_S = 0.1
_PATIENCE_S = 5.0
"""Seconds for the other ranks to end after one failed, before they are killed."""


def start(command: list[str], processes: int) -> int:
    """Run a command once per rank, with the environment variables of torchrun, and return the exit code of the run.

    If one rank fails, the others are killed after a while, since they wait for it in a collective.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "LOCAL_WORLD_SIZE": str(processes)}
    common |= {"WORLD_SIZE": str(processes), "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1"}
    common |= {} if "OMP_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": "1"}
    children = [
        subprocess.Popen(command, env=os.environ | common | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(processes)
    ]
    over = 0.0
    while any(child.poll() is None for child in children):
        time.sleep(_LOOK_S)
        if any(child.returncode for child in children):
            over = over or time.monotonic() + _PATIENCE_S
            if time.monotonic() > over:
                for child in children:
                    with contextlib.suppress(ProcessLookupError):
                        child.kill()
    return next((child.returncode for child in children if child.returncode), 0)


def again(specification: str) -> list[str]:
    """Return the command that runs one rank of a variant."""
    return [sys.executable, "-m", "truestep.experiments.running.child", specification]
