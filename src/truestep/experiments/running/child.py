"""The child process of a variant: confine the script, apply changes, install instruments, and run it.

python -m truestep.experiments.running.child SPECIFICATION.json
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep.experiments.running import ranks
from truestep.experiments.running.inside.child_processes import Children
from truestep.experiments.running.inside.outside_reads import READS, OutsideReads
from truestep.experiments.running.inside.write_sandbox import confine
from truestep.seams.patch import patch
from truestep.supervision.launching.launch import Target, launch

_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG."""


def main(path: Path) -> None:
    """Run the variant of a specification, or start its processes if there are several."""
    _die_with_parent()
    wanted: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if wanted["processes"] > 1 and "RANK" not in os.environ:
        confine([Path(place) for place in wanted["writable"]])
        sys.exit(ranks.start(ranks.again(str(path)), wanted["processes"]))
    folder = Path(wanted["results"])
    if os.environ.get("RANK", "0") != "0":
        folder /= f"rank{os.environ['RANK']}"
        folder.mkdir()
    confine([Path(place) for place in wanted["writable"]])
    reads = OutsideReads(folder / READS, [Path(wanted["copy"]), Path(wanted["results"])])
    child = _Child(wanted, folder, reads)
    target = Target(wanted["name"], tuple(wanted["arguments"]), wanted["module"])
    reads.listen()
    sys.argv[:] = [wanted["name"]]
    launch(target, torch_imported=child.torch_imported, ended=child.ended, crashed=child.crashed, played=child.played)


def _die_with_parent() -> None:
    """Let the kernel kill this process when its parent dies for any reason. Linux only."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


class _Child:
    def __init__(self, wanted: dict[str, Any], folder: Path, reads: OutsideReads) -> None:
        self._wanted = wanted
        self._reads = reads
        self._folder = folder
        self._stack = ExitStack()
        self._changes: list[Any] = []
        self._instruments: list[Any] = []
        self._children = Children()
        self._stop: Any = None

    def torch_imported(self) -> None:
        """Install changes and instruments."""
        from truestep.experiments.changes import CHANGES
        from truestep.experiments.instruments.all_instruments import INSTRUMENTS
        from truestep.experiments.running.inside.stop_after import StopAfter
        from truestep.seams.refs import let_swap
        from truestep.seams.tracing import leave_uncompiled

        let_swap(self._stack)
        if self._wanted["from_start"]:
            self._start_from_the_beginning()
        self._children.listen(self._stack)
        for name, arguments in self._wanted["changes"]:
            change = CHANGES[name](**arguments)
            change.install(self._stack)
            self._changes.append(change)
        for name, arguments in self._wanted["instruments"]:
            instrument = INSTRUMENTS[name](self._folder, self._wanted["name"], **arguments)
            instrument.install(self._stack)
            self._instruments.append(instrument)
        if self._wanted["steps"] is not None:
            self._stop = StopAfter(self._wanted["steps"])
            self._stop.install(self._stack)
        leave_uncompiled(code for instrument in self._instruments for code in instrument.alone)

    def _start_from_the_beginning(self) -> None:
        """Let a run of the toolkit start from the beginning although its folder holds a run: the folder is a copy."""
        from truestep.loop.checkpoint.run_folder import RunFolder

        copy = Path.cwd().resolve()

        def open_(out: Path, settings: Any) -> Any:
            if settings.resume is None and out.resolve().is_relative_to(copy):
                shutil.rmtree(out / "checkpoints", ignore_errors=True)
            return opened(out, settings)

        opened = RunFolder.open
        patch(self._stack, RunFolder, "open", open_)

    def crashed(self, error: BaseException) -> None:
        """Pass the exception that ended the script to the instruments."""
        for instrument in self._instruments:
            instrument.crashed(error)

    def played(self) -> None:
        """Let the instruments use torch once more: its atexit handlers take a part of it down."""
        for instrument in self._instruments:
            instrument.played()

    def ended(self, how: str) -> int | None:
        """Write the outcome: the end of the script, and the results of changes and instruments."""
        self._reads.ended()
        how = "stopped" if self._stop is not None and self._stop.reached else how
        outcome = {
            "how": how,
            "peak_bytes": _peak_bytes(),
            "children": self._children.started,
            "changes": {change.name: change.counts() for change in self._changes},
            "results": {instrument.name: instrument.results(how) for instrument in self._instruments},
        }
        (self._folder / "outcome.json").write_text(json.dumps(outcome), encoding="utf-8")
        return None


def _peak_bytes() -> int:
    """Return the peak memory in bytes: of the accelerator if this process used one, else of the process."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.max_memory_allocated())
    with contextlib.suppress(OSError, ValueError, IndexError):  # getrusage would include the peak of the parent
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    main(Path(sys.argv[1]))
