"""`tests/distributed/programs/toolkit_resume.py FOLDER [STRATEGY]`, slow enough to lose a host in its second epoch.

Each rank waits in its seventh step until the file `go-on` is there, and writes `waits-RANK-WORLD_SIZE` before. With
RANK_0_IS_LATE, rank 0 starts again after the others have read its address from the store.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

from truestep import Run

if os.environ.get("RANK_0_IS_LATE") and os.environ["RANK"] == "0" and Path("go-on").exists():
    time.sleep(15)
original = Run.step


def step(self: Any, *args: Any, **kwargs: Any) -> Any:
    if self.global_step == 7:
        Path(f"waits-{self.rank}-{self.world_size}").touch()
        while not Path("go-on").exists():
            time.sleep(0.02)
    return original(self, *args, **kwargs)


Run.step = step  # type: ignore[method-assign]
program = Path(__file__).parents[2] / "distributed" / "programs" / "toolkit_resume.py"
sys.argv[0] = str(program)
runpy.run_path(str(program), run_name="__main__")
