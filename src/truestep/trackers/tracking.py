"""The trackers of one run, opened when the first line is written; one that fails is told once and left.

A tracker must change nothing in a training: the generators of python and numpy are what they were when it returns, and
its errors end with it.
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
from truestep.trackers.line import Line

Ending = Literal["finished", "crashed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Start:
    """What a tracker is told when it begins.

    Attributes:
        folder: of the run.
        settings: of the run, by name.
        step: the step that the run resumes from; 0 for a new run.
        history: gives every line that there is already, in order.
    """

    folder: Path
    settings: Mapping[str, Any]
    step: int = 0
    history: Callable[[], Iterable[Line]] = field(default=tuple)


class Tracker(Protocol):
    """Where lines are copied to."""

    def write(self, lines: Iterable[Line]) -> None:
        """Copy lines, whose steps never get smaller."""

    def close(self, ending: Ending) -> None:
        """End it: everything is on the disk."""


NEEDS = {
    "tensorboard": ("tensorboard",),
    "wandb": ("wandb",),
    "mlflow": ("mlflow", "sqlalchemy", "alembic"),
}
"""The packages that each tracker imports."""


class Tracking:
    """The trackers of one run.

    Args:
        names: of "tensorboard", "wandb" and "mlflow".
        tell: shows one line to the user.

    Raises:
        BadSettings: there is no such tracker.
        PackageMissing: what it needs is not installed.
    """

    def __init__(self, names: Sequence[str], *, tell: Callable[[str], object]) -> None:
        self._waiting = list(dict.fromkeys((names,) if isinstance(names, str) else names))
        self._open: dict[str, Tracker] = {}
        self._tell = tell
        for name in self._waiting:
            if name not in NEEDS:
                near = difflib.get_close_matches(name, NEEDS, n=1)
                raise BadSettings(
                    f'there is no tracker "{name}"',
                    expected=f"of {', '.join(NEEDS)}",
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
        """Whether there are trackers that were not opened yet."""
        return bool(self._waiting)

    def open(self, start: Start) -> None:
        """Begin all trackers."""
        waiting, self._waiting = self._waiting, []
        for name in waiting:
            with self._guarded(name):
                module = importlib.import_module(f"truestep.trackers.{name}")
                self._open[name] = module.begin(start)

    def write(self, lines: Sequence[Line]) -> None:
        """Copy lines to every tracker."""
        for name, tracker in list(self._open.items()):
            with self._guarded(name):
                tracker.write(lines)

    def close(self, ending: Ending) -> None:
        """End every tracker."""
        for name, tracker in list(self._open.items()):
            with self._guarded(name):
                tracker.close(ending)
        self._open.clear()

    @contextmanager
    def _guarded(self, name: str) -> Iterator[None]:
        """Leave a tracker that raises, and put back the random numbers that it drew."""
        numpy = sys.modules.get("numpy")
        python_state, numpy_state = random.getstate(), None if numpy is None else numpy.random.get_state()
        try:
            yield
        except Exception as error:
            self._open.pop(name, None)
            what = f"{type(error).__name__}: {error}".splitlines()[0]
            self._tell(f"truestep: {name} is left ({what}); the training and metrics.jsonl go on")
        finally:
            random.setstate(python_state)
            if numpy is not None:
                numpy.random.set_state(numpy_state)
