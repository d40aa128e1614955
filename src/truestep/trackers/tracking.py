"""The trackers of one run, opened when the first line is written; one that fails is reported once and dropped.

A tracker must not change the training: the random states of python and numpy are restored after each call, and its
errors are not raised.
"""

from __future__ import annotations

import difflib
import importlib.util
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from truestep.errors import BadSettings, PackageMissing
from truestep.trackers.line import LogLine

Ending = Literal["finished", "crashed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Start:
    """The state of the run when a tracker begins.

    Attributes:
        folder: folder of the run.
        settings: settings of the run, by name.
        step: the step that the run resumes from; 0 for a new run.
        history: returns all earlier lines, in order.
    """

    folder: Path
    settings: Mapping[str, Any]
    step: int = 0
    history: Callable[[], Iterable[LogLine]] = field(default=tuple)


class Tracker(Protocol):
    """A destination for copies of lines."""

    def write(self, lines: Iterable[LogLine]) -> None:
        """Copy lines; their steps never decrease."""

    def close(self, ending: Ending) -> None:
        """Flush everything, and close the tracker."""


NEEDS = {
    "tensorboard": ("tensorboard",),
    "wandb": ("wandb",),
    "mlflow": ("mlflow", "sqlalchemy", "alembic"),
}
"""The packages that each tracker imports."""


class Tracking:
    """The trackers of one run.

    Args:
        names: "tensorboard", "wandb" or "mlflow", each.
        tell: shows one line to the user.

    Raises:
        BadSettings: an unknown tracker.
        PackageMissing: the package of a tracker is not installed.
    """

    def __init__(self, names: Sequence[str], *, tell: Callable[[str], object]) -> None:
        self._waiting = list(dict.fromkeys((names,) if isinstance(names, str) else names))
        self._open: dict[str, Tracker] = {}
        self._tell = tell
        for name in self._waiting:
            if name not in NEEDS:
                near = difflib.get_close_matches(name, NEEDS, n=1)
                raise BadSettings(
                    f'trackers must be among {", ".join(NEEDS)}, got "{name}"',
                    remedy=f'write trackers=("{near[0]}",)' if near else "leave it out",
                )
            for package in NEEDS[name]:
                if importlib.util.find_spec(package) is None:
                    raise PackageMissing(
                        f'trackers=("{name}",) needs {package}, which is not installed',
                        remedy=f"run `pip install 'truestep[{name}]'`",
                    )

    @property
    def waits(self) -> bool:
        """True if trackers were chosen but not opened yet."""
        return bool(self._waiting)

    def open(self, start: Start) -> None:
        """Open all trackers."""
        waiting, self._waiting = self._waiting, []
        for name in waiting:
            with self._guarded(name):
                module = importlib.import_module(f"truestep.trackers.{name}")
                self._open[name] = module.begin(start)

    def write(self, lines: Sequence[LogLine]) -> None:
        """Copy lines to every tracker."""
        for name, tracker in list(self._open.items()):
            with self._guarded(name):
                tracker.write(lines)

    def close(self, ending: Ending) -> None:
        """Close every tracker."""
        for name, tracker in list(self._open.items()):
            with self._guarded(name):
                tracker.close(ending)
        self._open.clear()

    @contextmanager
    def _guarded(self, name: str) -> Iterator[None]:
        """Drop a tracker that raises, and restore the random states that it changed."""
        numpy = sys.modules.get("numpy")
        python_state, numpy_state = random.getstate(), None if numpy is None else numpy.random.get_state()
        try:
            yield
        except Exception as error:
            self._open.pop(name, None)
            what = f"{type(error).__name__}: {error}".splitlines()[0]
            self._tell(f"truestep: {name} is dropped ({what}); the training and metrics.jsonl go on")
        finally:
            random.setstate(python_state)
            if numpy is not None:
                numpy.random.set_state(numpy_state)
