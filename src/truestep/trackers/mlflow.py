"""MLflow, into `mlflow.db` in the run's folder unless MLFLOW_TRACKING_URI says otherwise.

A value that was logged there cannot be taken back. So every start of a resumed run is a new run of the same experiment,
whose history is written again from `metrics.jsonl`; the one that was stopped is marked as killed, and by which run it
is continued.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from truestep.trackers.line import Line
from truestep.trackers.tracking import Ending, Start

_FOLDER = "truestep.folder"
_CONTINUED = "truestep.continued_by"
_STATUS = {"finished": "FINISHED", "crashed": "FAILED", "interrupted": "KILLED"}
_MOST = 1000
"""Values in one call, at most."""


class MLflow:
    """Writes the numbers of lines as metrics, and the last text of a name as a tag.

    Args:
        start: where, and what there is already.
    """

    def __init__(self, start: Start) -> None:
        folder = start.folder.resolve()
        self._entities: Any = importlib.import_module("mlflow.entities")
        uri = os.environ.get("MLFLOW_TRACKING_URI", f"sqlite:///{folder}/mlflow.db")
        self._client = importlib.import_module("mlflow").MlflowClient(tracking_uri=uri)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", Path.cwd().name)
        known = self._client.get_experiment_by_name(name)
        experiment = known.experiment_id if known else self._client.create_experiment(name, f"{folder}/mlflow")
        mark = '"' if "'" in str(folder) else "'"
        stopped = self._client.search_runs([experiment], f"tags.`{_FOLDER}` = {mark}{folder}{mark}")
        tags = {_FOLDER: str(folder), "truestep.resumed_from_step": str(start.step)}
        self._id = self._client.create_run(experiment, tags=tags, run_name=folder.name).info.run_id
        params = [self._entities.Param(key, str(value)) for key, value in start.settings.items()]
        self._client.log_batch(self._id, params=params[:100])
        self.write(start.history())
        for run in stopped:
            if _CONTINUED not in run.data.tags:
                self._client.set_tag(run.info.run_id, _CONTINUED, self._id)
                if run.info.status == "RUNNING":
                    self._client.set_terminated(run.info.run_id, "KILLED")

    def write(self, lines: Iterable[Line]) -> None:
        """Write lines, many values in one call."""
        now = int(time.time() * 1000)
        texts: dict[str, str] = {}
        metrics = self._metrics(lines, now, texts)
        while batch := list(islice(metrics, _MOST)):
            self._client.log_batch(self._id, metrics=batch)
        for name, text in texts.items():
            self._client.set_tag(self._id, name, text)

    def _metrics(self, lines: Iterable[Line], now: int, texts: dict[str, str]) -> Iterator[Any]:
        for line in lines:
            texts.update(line.texts())
            for name, number in line.numbers().items():
                yield self._entities.Metric(name, number, now, line.step)

    def close(self, ending: Ending) -> None:
        """End the run there."""
        self._client.set_terminated(self._id, _STATUS[ending])


def begin(start: Start) -> MLflow:
    """Begin a run there."""
    return MLflow(start)
