"""MLflow, with `mlflow.db` in the run's folder unless MLFLOW_TRACKING_URI is set.

A logged value cannot be removed. So each resume creates a new run of the same experiment, with the history from
`metrics.jsonl`; the stopped one is marked as killed, with the id of the run that continues it.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from truestep.trackers.line import LogLine
from truestep.trackers.tracking import Ending, Start

_FOLDER = "truestep.folder"
_CONTINUED = "truestep.continued_by"
_STATUS = {"finished": "FINISHED", "crashed": "FAILED", "interrupted": "KILLED"}
_MOST = 1000
"""Most values in one call."""


class MLflow:
    """Writes the numbers of lines as metrics, and the last text of a name as a tag.

    Args:
        start: the folder, settings and history of the run.
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

    def write(self, lines: Iterable[LogLine]) -> None:
        """Write lines, with many values per call."""
        now = int(time.time() * 1000)
        texts: dict[str, str] = {}
        metrics = self._metrics(lines, now, texts)
        while batch := list(islice(metrics, _MOST)):
            self._client.log_batch(self._id, metrics=batch)
        for name, text in texts.items():
            self._client.set_tag(self._id, name, text)

    def _metrics(self, lines: Iterable[LogLine], now: int, texts: dict[str, str]) -> Iterator[Any]:
        for line in lines:
            texts.update(line.texts())
            for name, number in line.numbers().items():
                yield self._entities.Metric(name, number, now, line.step)

    def close(self, ending: Ending) -> None:
        """End the run of MLflow."""
        self._client.set_terminated(self._id, _STATUS[ending])


def begin(start: Start) -> MLflow:
    """Begin a run of MLflow."""
    return MLflow(start)
