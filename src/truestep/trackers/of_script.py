"""The trackers that a supervised script uses itself: findings and curves are written to them at its end.

TensorBoard gets a further file of events in each folder that the script wrote to, which can be deleted; a run of MLflow
gets metrics, tags and a text, and a run of Weights & Biases rows, values of its summary and a text. The values of the
script are not touched.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from itertools import islice
from typing import Any

from truestep import source
from truestep.findings import Summary
from truestep.report import render
from truestep.supervision.launching.first_import import FirstImport
from truestep.trackers.script_wandb import MODULE as WANDB
from truestep.trackers.script_wandb import ScriptWandb
from truestep.trackers.series import Series, first_step, place_of, series_of

_WRITERS = ("torch.utils.tensorboard.writer", "tensorboardX.writer")
_MOST = 1000
"""Most metrics in one call of MLflow."""


class ScriptTrackers:
    """Follows the trackers that a script uses, and writes to them."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._wandb = ScriptWandb(self._stack)
        self._folders: dict[str, type] = {}
        """Class of the writer, by folder."""

    def follow(self) -> None:
        """Begin to follow, before the script runs; nothing is imported."""
        followed = {name: functools.partial(self._follow, name) for name in _WRITERS} | {WANDB: self._wandb.follow}
        for name, follow in followed.items():
            first = FirstImport(name, functools.partial(_quietly, follow))
            first.install()
            self._stack.callback(first.remove)

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
        said = self._wandb.write(summary)
        self._stack.close()
        series = list(series_of(summary.timeline, summary.steps))
        what = f"{_count(len(summary.shown()), 'finding')} and {_count(len(series), 'curve')}"
        said += [_attempt(f"TensorBoard in {source.displayed(place)}", _to_tensorboard, summary, series, kind, place)
                for place, kind in self._folders.items()]  # fmt: skip
        run = _last_of_mlflow()
        if run is not None:
            said.append(_attempt("MLflow", _to_mlflow, summary, series, run))
        done = [place for place, error in said if not error]
        failed = [f"{place} could not be written: {error}" for place, error in said if error]
        if not said:
            return "the script has no TensorBoard, MLflow or Weights & Biases to write to"
        return "; ".join([*([f"wrote {what} to {' and '.join(done)}"] if done else []), *failed])


def _quietly(follow: Callable[[], None]) -> None:
    with suppress(Exception):  # a module of that name without such a class is not followed
        follow()


def _attempt(place: str, write: Any, *arguments: Any) -> tuple[str, str]:
    """Write to a tracker; return its name, and its error: the script has ended, and its exit code stays."""
    try:
        write(*arguments)
    except Exception as error:
        return place, f"{type(error).__name__}: {error}".splitlines()[0]
    return place, ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _to_tensorboard(summary: Summary, series: Iterable[Series], kind: Any, folder: str) -> None:
    writer = kind(folder, filename_suffix=".truestep")
    try:
        for finding in summary.shown():
            lines = [
                f"**{finding.severity}[{finding.rule}]** {finding.message}",
                f"`{place_of(finding)}`",
                finding.help,
            ]
            writer.add_text(f"truestep/{finding.rule}", "\n\n".join(filter(None, lines)), first_step(finding))
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
        text = f"{place_of(finding)}: {finding.message} (first at step {first_step(finding)})"
        client.set_tag(id, f"truestep.{finding.rule}", text)
    client.log_text(id, render(summary), "truestep/report.txt")
