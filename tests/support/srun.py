"""`srun` of the simulated Slurm: `[OPTIONS] COMMAND` on each node; SIGTERM goes to the programs there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from hosts import inside

folder = Path(os.environ["SIMULATED_FOLDER"])
command = sys.argv[1:]
while command[0].startswith("--"):
    command.pop(0)
tasks = [
    subprocess.Popen([*enter, *command], env={**os.environ, "SLURM_PROCID": str(number)}, start_new_session=True)
    for number, enter in enumerate(json.loads(os.environ["SIMULATED_NODES"]))
]


def forward(number: int, frame: Any) -> None:
    for task in tasks:
        if task.poll() is None:
            os.kill(inside(task.pid), number)


signal.signal(signal.SIGTERM, forward)
(folder / "tasks").write_text(" ".join(str(task.pid) for task in tasks))
(folder / "srun.process").write_text(str(os.getpid()))
sys.exit(max(abs(task.wait()) for task in tasks))
