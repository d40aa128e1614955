"""The process in which a variant of a script runs: confined, changed, recorded and watched.

python -m truestep.experiments.child SPECIFICATION.json
"""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep.config import Options
from truestep.experiments.guard import confine
from truestep.probes._patch import patch
from truestep.watch.launch import Target, launch


def main(path: Path) -> None:
    """Run what a specification says."""
    wanted: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    folder = Path(wanted["results"])
    confine([Path(place) for place in wanted["writable"]])
    child = _Child(wanted, folder)
    target = Target(wanted["name"], tuple(wanted["arguments"]), wanted["module"])
    sys.argv[:] = [wanted["name"]]
    launch(target, torch_imported=child.torch_imported, ended=child.ended, crashed=child.crashed)


class _Child:
    def __init__(self, wanted: dict[str, Any], folder: Path) -> None:
        self._wanted = wanted
        self._folder = folder
        self._stack = ExitStack()
        self._session: Any = None
        self._recorder: Any = None
        self._changes: list[Any] = []

    def torch_imported(self) -> None:
        """Make the changes, begin to record and to watch."""
        from truestep.experiments.changes import CHANGES
        from truestep.experiments.recorder import Recorder
        from truestep.watch.session import Session

        self._begin_anew()
        for name, arguments in self._wanted["changes"]:
            change = CHANGES[name](**arguments)
            change.install(self._stack)
            self._changes.append(change)
        file = self._stack.enter_context((self._folder / "steps.jsonl").open("w", encoding="utf-8"))
        self._recorder = Recorder(file)
        self._recorder.install(self._stack)
        self._session = Session(Options(steps=self._wanted["steps"]), script=self._wanted["name"])
        self._session.start()

    def _begin_anew(self) -> None:
        """Let a run of the toolkit begin anew where its folder holds another one: the folder is a copy."""
        from truestep.loop.folder import RunFolder

        copy = Path.cwd().resolve()

        def open_(out: Path, settings: Any) -> Any:
            if settings.resume is None and out.resolve().is_relative_to(copy):
                shutil.rmtree(out / "checkpoints", ignore_errors=True)
            return opened(out, settings)

        opened = RunFolder.open
        patch(self._stack, RunFolder, "open", open_)

    def crashed(self, error: BaseException) -> None:
        """Look at what is there when the script has died."""
        if self._session is not None:
            self._session.examine(error)

    def ended(self, how: str) -> int | None:
        """Write down how it ended, what was changed and what was found."""
        outcome: dict[str, Any] = {"how": how, "changes": {}, "report": "", "findings": []}
        if self._session is not None:
            from truestep.report import render

            summary = self._session.stop(how)
            outcome["findings"] = [finding.rule for finding in summary.shown()]
            outcome["report"] = render(summary, width=self._wanted["width"])
            outcome["changes"] = {change.name: vars_of(change) for change in self._changes}
            self._recorder.close()
        (self._folder / "outcome.json").write_text(json.dumps(outcome), encoding="utf-8")
        return None


def vars_of(change: Any) -> dict[str, int]:
    """Return what a change counted."""
    return {name: value for name, value in vars(change).items() if isinstance(value, int) and not name.startswith("_")}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
