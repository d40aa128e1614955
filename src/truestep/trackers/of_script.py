"""The trackers that a supervised script uses itself: findings and curves are written to them at its end.

TensorBoard gets a further file of events in each folder that the script wrote to, which can be deleted; a run of MLflow
gets metrics, tags and a text. The values of the script are not touched. Weights & Biases is left out: it ends its run
before the script has ended.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from truestep import source
from truestep.findings import Finding, Summary
from truestep.report import render
from truestep.supervision.launching.first_import import FirstImport
from truestep.timeline import Curve, Timeline

_WRITERS = ("torch.utils.tensorboard.writer", "tensorboardX.writer")
_TITLES = {"loss": "loss", "rate": "learning_rate", "update": "update_ratio"}
"""Name of the curves that are written, by subject."""
_MOST = 1000
"""Most metrics in one call of MLflow."""


@dataclass(frozen=True, slots=True)
class Series:
    """A curve of the run."""

    name: str
    points: tuple[tuple[int, float], ...]
    """Pairs of a step and a value."""


class ScriptTrackers:
    """Follows the writers of TensorBoard that a script creates, and passes the result on to all its trackers."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._folders: dict[str, type] = {}
        """Class of the writer, by folder."""

    def follow(self) -> None:
        """Begin to follow, before the script runs; nothing is imported."""
        for name in _WRITERS:
            first = FirstImport(name, lambda name=name: self._imported(name))  # type: ignore[misc]
            first.install()
            self._stack.callback(first.remove)

    def _imported(self, name: str) -> None:
        with suppress(Exception):  # a module of that name without such a class is not followed
            self._follow(name)

    def _follow(self, name: str) -> None:
        from truestep.seams.patch import patch

        folders = self._folders
        kind: Any = sys.modules[name].SummaryWriter

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            built(self, *args, **kwargs)
            with suppress(Exception):
                place = str(self.log_dir if hasattr(self, "log_dir") else self.logdir)
                folders.setdefault(place if "://" in place else os.path.abspath(place), kind)

        built = patch(self._stack, kind, "__init__", __init__)

    def write(self, summary: Summary) -> str:
        """Write the findings and the curves of a run; return a sentence about it. Later writers are not followed.

        Args:
            summary: the run, with its timeline.
        """
        self._stack.close()
        series = list(_series(summary.timeline, summary.steps))
        what = f"{_count(len(summary.shown()), 'finding')} and {_count(len(series), 'curve')}"
        said = [_attempt(f"TensorBoard in {source.displayed(place)}", _to_tensorboard, summary, series, kind, place)
                for place, kind in self._folders.items()]  # fmt: skip
        run = _last_of_mlflow()
        if run is not None:
            said.append(_attempt("MLflow", _to_mlflow, summary, series, run))
        done = [place for place, error in said if not error]
        failed = [f"{place} could not be written: {error}" for place, error in said if error]
        if not said:
            return "the script has no TensorBoard or MLflow to write to"
        return "; ".join([*([f"wrote {what} to {' and '.join(done)}"] if done else []), *failed])


def _attempt(place: str, write: Any, *arguments: Any) -> tuple[str, str]:
    """Write to a tracker; return its name, and its error: the script has ended, and its exit code stays."""
    try:
        write(*arguments)
    except Exception as error:
        return place, f"{type(error).__name__}: {error}".splitlines()[0]
    return place, ""


def _series(timeline: Timeline | None, steps: int) -> Iterator[Series]:
    """Yield the curves; without values read behind the last step, which can be older ones."""
    if timeline is None:
        return
    chosen = {curve: points for curve, points in timeline.curves.items() if curve.subject in _TITLES}
    for curve, points in chosen.items():
        finite = tuple((step, value) for step, value in points if step < steps and math.isfinite(value))
        if finite:
            yield Series(_name(curve, [other for other in chosen if other.subject == curve.subject]), finite)


def _name(curve: Curve, same: list[Curve]) -> str:
    """Return the name of a curve; its line, optimizer or group is part of it if there are several."""
    name = f"truestep/{_TITLES[curve.subject]}"
    if len({other.number for other in same}) > 1:
        name += f"/optimizer_{curve.number}"
    if len({other.group for other in same if other.number == curve.number}) > 1:
        name += f"/group_{curve.group}"
    if len({other.site for other in same}) > 1 and curve.site is not None:
        name += f"/line_{curve.site.line}"
    return name


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _place(finding: Finding) -> str:
    site = finding.primary.site
    return "" if site is None else f"{source.posix(source.displayed(site.path))}:{site.line}"


def _first_step(finding: Finding) -> int:
    return finding.seen.first_step or 0


def _to_tensorboard(summary: Summary, series: Iterable[Series], kind: Any, folder: str) -> None:
    writer = kind(folder, filename_suffix=".truestep")
    try:
        for finding in summary.shown():
            lines = [f"**{finding.severity}[{finding.rule}]** {finding.message}", f"`{_place(finding)}`", finding.help]
            writer.add_text(f"truestep/{finding.rule}", "\n\n".join(filter(None, lines)), _first_step(finding))
        report = "".join(f"    {line}\n" for line in render(summary).splitlines())
        writer.add_text("truestep/report", report, summary.steps)
        for one in series:
            for step, value in one.points:
                writer.add_scalar(one.name, value, step)
    finally:
        writer.close()


def _last_of_mlflow() -> Any:
    mlflow: Any = sys.modules.get("mlflow")
    last = getattr(mlflow, "last_active_run", None)  # a module of the script can have that name
    return None if last is None else last()


def _to_mlflow(summary: Summary, series: Iterable[Series], run: Any) -> None:
    mlflow: Any = sys.modules["mlflow"]
    client, id, now = mlflow.MlflowClient(), run.info.run_id, int(time.time() * 1000)
    values = [mlflow.entities.Metric(one.name, value, now, step) for one in series for step, value in one.points]
    metrics = iter(values)
    while batch := list(islice(metrics, _MOST)):
        client.log_batch(id, metrics=batch)
    client.set_tag(id, "truestep.failures", str(len(summary.shown())))
    for finding in summary.shown():
        text = f"{_place(finding)}: {finding.message} (first at step {_first_step(finding)})"
        client.set_tag(id, f"truestep.{finding.rule}", text)
    client.log_text(id, render(summary), "truestep/report.txt")
