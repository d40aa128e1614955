"""Weights & Biases of a supervised script: findings and curves are logged before a run of it ends.

A run of Weights & Biases ends with `finish()`, with its `with` block, or in a handler of `atexit`, and takes nothing
afterwards. So both methods are followed, and each run registers a handler behind that of the library, which is called
before it. Steps of a run only grow: curves of the past have a separate axis, `truestep/step`.
"""

from __future__ import annotations

import atexit
import functools
import html
import math
import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from truestep import source
from truestep.findings import Finding, Summary
from truestep.report import render
from truestep.supervision.session import current
from truestep.trackers.series import Series, first_step, place_of, series_of

MODULE = "wandb.sdk.wandb_run"
"""The module with the class of a run."""
_STEP = "truestep/step"
NAME = "Weights & Biases"


class ScriptWandb:
    """Follows the runs that a script ends, and writes to each before it does."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._written: dict[str, int] = {}
        """Run to the number of findings that were written to it, for runs that have ended."""
        self._errors: list[str] = []
        self._curves = 0

    def follow(self) -> None:
        """Follow the ends of runs; called once the module is imported."""
        from truestep.seams.patch import patch

        kind: Any = sys.modules[MODULE].Run
        built = kind.__init__

        @functools.wraps(built)
        def __init__(run: Any, *args: Any, **kwargs: Any) -> None:
            built(run, *args, **kwargs)
            atexit.register(self._ending, run)

        patch(self._stack, kind, "__init__", __init__)
        for name in ("finish", "__exit__"):
            original = getattr(kind, name)

            def ends(run: Any, *args: Any, original: Any = original, **kwargs: Any) -> Any:
                self._ending(run)
                return original(run, *args, **kwargs)

            patch(self._stack, kind, name, functools.wraps(original)(ends))

    def _ending(self, run: Any) -> None:
        """Write to a run that is about to end, with the findings so far."""
        with suppress(Exception):
            session = current()
            if session is not None and str(run.id) not in self._written and not run.disabled:
                self._write(run, session.so_far())

    def write(self, summary: Summary) -> list[tuple[str, str]]:
        """Write to a run that is still active at the end of the script; return the name and the error, if any.

        Args:
            summary: the whole run.
        """
        run = getattr(sys.modules.get("wandb"), "run", None)
        if run is not None and not getattr(run, "disabled", False) and str(run.id) not in self._written:
            self._write(run, summary)
        if not self._written and not self._errors:
            return []
        late = max(0, len(summary.shown()) - max(self._written.values(), default=0))
        after = f", in a run that ended before {late} more {'was' if late == 1 else 'were'} found" if late else ""
        return [(NAME + after, "")] if not self._errors else [(NAME, self._errors[0])]

    def _write(self, run: Any, summary: Summary) -> None:
        try:
            with _random_states():
                _log(run, summary, list(series_of(summary.timeline, summary.steps)))
        except Exception as error:  # the exit code and the values of the script stay
            self._errors.append(f"{type(error).__name__}: {error}".splitlines()[0])
        self._written[str(run.id)] = len(summary.shown())


def _log(run: Any, summary: Summary, series: list[Series]) -> None:
    """Log the curves as rows of the history, and the findings and the report as values of the summary."""
    wandb: Any = sys.modules["wandb"]
    if series:
        run.define_metric(_STEP, hidden=True)
        for one in series:
            run.define_metric(one.name, step_metric=_STEP)
    for step, values in _rows(series):
        run.log({_STEP: step, **values})
    run.summary["truestep/failures"] = len(summary.shown())
    for finding in summary.shown():
        run.summary[f"truestep/{finding.rule}"] = _sentence(finding)
    text = html.escape(render(summary))
    run.log({"truestep/report": wandb.Html(f"<pre>{text}</pre>", inject=False)})


def _rows(series: Iterable[Series]) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield the steps in their order, with the values of all curves."""
    rows: dict[int, dict[str, float]] = {}
    for one in series:
        for step, value in one.points:
            if math.isfinite(value):
                rows.setdefault(step, {})[one.name] = value
    yield from sorted(rows.items())


def _sentence(finding: Finding) -> str:
    return f"{source.posix(place_of(finding))}: {finding.message} (first at step {first_step(finding)})"


@contextmanager
def _random_states() -> Iterator[None]:
    """Restore the random states of python and numpy: the script may go on to train."""
    numpy = sys.modules.get("numpy")
    python_state, numpy_state = random.getstate(), None if numpy is None else numpy.random.get_state()
    try:
        yield
    finally:
        random.setstate(python_state)
        if numpy is not None:
            numpy.random.set_state(numpy_state)
