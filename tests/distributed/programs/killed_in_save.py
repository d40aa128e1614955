"""`toolkit_resume.py FOLDER fsdp` with a rank that gets SIGKILL in its second save: `part|commit RANK FOLDER`."""

from __future__ import annotations

import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

from truestep.loop.checkpoint import parts
from truestep.loop.checkpoint.disk import files

moment, rank, folder = sys.argv[1:]
owner, name = {"part": (parts, "write_tensors"), "commit": (files, "publish")}[moment]
original: Any = getattr(owner, name)
calls = 0


def killing(*args: Any) -> Any:
    global calls
    calls += 1
    if calls == 2 and os.environ["RANK"] == rank:
        if moment == "part":
            original(*args)
            args[0].flush()
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*args)


setattr(owner, name, killing)
sys.argv = ["toolkit_resume.py", folder, "fsdp"]
runpy.run_path(str(Path(__file__).with_name("toolkit_resume.py")), run_name="__main__")
