"""Programs on several ranks of this machine: started by torchrun, or warm with the environment of torchrun."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def torchrun(command: list[str], folder: Path, *, limit_s: float = 600, ranks: int = 2) -> tuple[int, str, str]:
    """Run a command on several ranks; leave no process behind."""
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--master-port", str(free_port())]
    process = subprocess.Popen(
        [sys.executable, *launcher, *command],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder), "TORCHELASTIC_ERROR_FILE": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit_s)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode, out, err


def warm_ranks(command: list[str], folder: Path, *, limit_s: float = 600, ranks: int = 2) -> tuple[int, str, str]:
    """Run a command on several ranks with the environment of torchrun, each started warm; leave no process behind."""
    together = {**os.environ, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    processes = [
        subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env={**together, "OMP_NUM_THREADS": "1", "RANK": rank, "LOCAL_RANK": rank, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in map(str, range(ranks))
    ]
    try:
        outs, errs = zip(*(one.communicate(timeout=limit_s) for one in processes), strict=True)
    finally:
        for one in processes:
            one.kill()
            one.wait()
    return max(one.returncode for one in processes), "".join(outs), "".join(errs)
