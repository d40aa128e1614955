"""Record of passes under way at the end of an epoch: the program continues them or begins new ones.

A second iterator beside the main loop (`side = iter(run.train(extra))`) may be made once, and go on through all
epochs, or once in each epoch. A checkpoint is written at the end of an epoch, where both look the same: they differ at
the first call of the next epoch. This is recorded in a small file beside the checkpoints, since a run that is killed
after that call resumes from the checkpoint before it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from truestep.loop.checkpoint.disk.files import DurableFile, failures_of, flush_folder

NAME = "passes.json"


class CarriedPasses:
    """Record for each loader: True if its passes continue from epoch to epoch.

    Example:
        >>> carried = CarriedPasses()
        >>> carried.note("extra", 1, goes_on=False)
        >>> carried.goes_on("extra", 2), carried.goes_on("other", 2)
        (False, None)
        >>> carried.note("extra", 2, goes_on=True)
        >>> carried.goes_on("extra", 2), carried.goes_on("extra", 3)  # now one, now the other
        (True, None)
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}
        self._folder: Path | None = None

    def keep_in(self, folder: Path, resumed_from: Path | None) -> None:
        """Write the record into a folder of checkpoints.

        Args:
            folder: the folder.
            resumed_from: folder of the checkpoint that the run resumes from; None for a new run.
        """
        self._folder = folder
        if resumed_from is None:
            (folder / NAME).unlink(missing_ok=True)
        elif (resumed_from / NAME).exists():
            self._known |= json.loads((resumed_from / NAME).read_text(encoding="utf-8"))

    def note(self, name: str, epoch: int, *, goes_on: bool) -> None:
        """Record the first action of an epoch on a pass over a loader from the previous epoch."""
        known = self._known.get(name)
        if known is not None and known["epoch"] == epoch:
            return
        always = known is None or (known["always"] and known["goes_on"] == goes_on)
        self._known[name] = {"epoch": epoch, "goes_on": goes_on, "always": always}
        if self._folder is not None and (known is None or not always):
            with failures_of(self._folder):
                fresh = self._folder / f".link-{NAME}"
                fresh.unlink(missing_ok=True)
                with DurableFile(fresh) as file:
                    file.write(json.dumps(self._known, sort_keys=True).encode())
                fresh.replace(self._folder / NAME)
                flush_folder(self._folder)

    def goes_on(self, name: str, epoch: int) -> bool | None:
        """Return True if the program continues such a pass in an epoch; None if unknown."""
        known = self._known.get(name)
        if known is None or not (known["always"] or known["epoch"] == epoch):
            return None
        return bool(known["goes_on"])

    def state_dict(self) -> dict[str, Any]:
        """Return the record."""
        return {name: dict(known) for name, known in self._known.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the record."""
        self._known = {name: dict(known) for name, known in state.items()}
