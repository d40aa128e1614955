"""Trackers hold the values of metrics.jsonl, also after a kill; one that fails ends itself only."""

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from wandb_file import records

from truestep import Run
from truestep.errors import BadSettings, PackageMissing
from truestep.trackers.line import LogLine, read
from truestep.trackers.tracking import Tracking

PROGRAM = Path(__file__).parent / "programs" / "tracked.py"

spec = importlib.util.spec_from_file_location("tracked_program", PROGRAM)
tracked = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tracked)


def logged(out):
    """(name, step, value) of every number in metrics.jsonl."""
    lines = read(out / "metrics.jsonl")
    return sorted((name, line.step, value) for line in lines for name, value in line.numbers().items())


def in_tensorboard(out):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(out / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    names = [name for name in events.Tags()["scalars"] if not name.startswith("system/")]
    return sorted((name, event.step, event.value) for name in names for event in events.Scalars(name))


def in_mlflow(out):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{out}/mlflow.db")
    (experiment,) = client.search_experiments(filter_string="name = 'tests'")
    newest, *others = client.search_runs([experiment.experiment_id], order_by=["attributes.start_time DESC"])
    assert newest.info.status == "FINISHED"
    assert all(run.info.status == "KILLED" and "truestep.continued_by" in run.data.tags for run in others)
    names = [name for name in newest.data.metrics if not name.startswith("system/")]
    history = {name: client.get_metric_history(newest.info.run_id, name) for name in names}
    return sorted((name, metric.step, metric.value) for name, metrics in history.items() for metric in metrics)


def in_wandb(out):
    from wandb.proto.wandb_internal_pb2 import Record

    newest = max((out / "wandb").glob("offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime)
    found = []
    for data in records(newest):
        record = Record.FromString(data)
        if record.WhichOneof("record_type") == "history":
            row = {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            found += [
                (name, row["_step"], float(value))
                for name, value in row.items()
                if not name.startswith(("_", "system/")) and name != "epoch" and not isinstance(value, str)
            ]
    return sorted(found)


READERS = {"tensorboard": in_tensorboard, "wandb": in_wandb, "mlflow": in_mlflow}


def trained(out, tracker, **more):
    return subprocess.run(
        [sys.executable, str(PROGRAM), str(out), tracker, *(f"{name}={value}" for name, value in more.items())],
        env={**os.environ, "MLFLOW_EXPERIMENT_NAME": "tests", "WANDB_MODE": "offline"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.program
def test_tensorboard_holds_the_log_of_a_run_that_was_broken_off_twice(tmp_path):
    for step in (3, 8):
        with pytest.raises(tracked.Cut):
            tracked.train(tmp_path, ("tensorboard",), cut=step)
    tracked.train(tmp_path, ("tensorboard",))
    held, expected = in_tensorboard(tmp_path), logged(tmp_path)
    assert len(expected) == 39
    assert [(name, step) for name, step, _ in held] == [(name, step) for name, step, _ in expected]


@pytest.mark.slow
@pytest.mark.parametrize("tracker", READERS)
def test_a_tracker_holds_the_log_of_a_run_that_was_killed_twice(tracker, tmp_path):
    pytest.importorskip(tracker)
    for step in (3, 8):
        done = trained(tmp_path, tracker, kill=step)
        assert done.returncode == -9, done.stderr
    done = trained(tmp_path, tracker)
    assert done.returncode == 0, done.stderr
    held = READERS[tracker](tmp_path)
    expected = logged(tmp_path)
    assert len(expected) == 39
    assert [(name, step) for name, step, _ in held] == [(name, step) for name, step, _ in expected]
    assert [value for *_, value in held] == pytest.approx([value for *_, value in expected], rel=1e-6)


def test_a_tracker_that_comes_later_is_shown_what_was_before(tmp_path):
    tracked.train(tmp_path, ())
    tracked.train(tmp_path, ("tensorboard",), epochs=4)
    assert [(name, step) for name, step, _ in in_tensorboard(tmp_path)] == [
        (name, step) for name, step, _ in logged(tmp_path)
    ]


def test_texts_and_settings_are_there(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tracked.train(tmp_path, ("tensorboard",))
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert {"settings/text_summary", "note/text_summary"} <= set(events.Tags()["tensors"])


def test_a_tracker_that_fails_is_reported_once_and_the_training_goes_on(tmp_path, capsys, monkeypatch):
    from truestep.trackers import tensorboard

    whole = tensorboard.TensorBoard.write

    def write(self, lines):
        whole(self, lines)
        raise OSError(28, "No space left on device")

    tracked.train(tmp_path / "whole", ())
    monkeypatch.setattr(tensorboard.TensorBoard, "write", write)
    tracked.train(tmp_path / "failing", ("tensorboard",))
    assert (tmp_path / "failing" / "metrics.jsonl").read_bytes() == (tmp_path / "whole" / "metrics.jsonl").read_bytes()
    said = capsys.readouterr().err
    assert said.count("tensorboard is dropped (OSError: [Errno 28] No space left on device)") == 1


def test_a_tracker_draws_no_random_numbers_of_the_program(monkeypatch):
    from truestep.trackers import tensorboard

    def begin(start):
        random.random(), np.random.rand()
        raise RuntimeError("no")

    monkeypatch.setattr(tensorboard, "begin", begin)
    tracking = Tracking(["tensorboard"], tell=lambda text: None)
    random.seed(1), np.random.seed(1)
    expected = random.random(), np.random.rand()
    random.seed(1), np.random.seed(1)
    tracking.open(None)
    assert (random.random(), np.random.rand()) == expected


@pytest.mark.slow
@pytest.mark.parametrize("tracker", ["wandb", "mlflow"])
def test_no_tracker_changes_the_training(tracker, tmp_path):
    pytest.importorskip(tracker)
    logs = []
    for name in ("", tracker):
        done = trained(tmp_path / f"with-{name}", name)
        assert done.returncode == 0, done.stderr
        assert "is left" not in done.stderr
        logs.append((tmp_path / f"with-{name}" / "metrics.jsonl").read_bytes())
    assert logs[0] == logs[1]


def test_an_unknown_tracker_is_refused():
    with pytest.raises(BadSettings, match=r'trackers must be among .* got "tensorbord"'):
        Run(trackers=("tensorbord",), device="cpu")


def test_a_tracker_that_is_not_installed_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PackageMissing, match=r"pip install 'truestep\[wandb\]'"):
        Run(trackers=("wandb",), out=tmp_path, device="cpu")


def test_trackers_need_a_folder():
    with pytest.raises(BadSettings, match="the run has no folder"):
        Run(trackers=("tensorboard",), device="cpu")


def test_one_name_may_be_given_alone(tmp_path):
    tracked.train(tmp_path, "tensorboard")
    assert in_tensorboard(tmp_path)


def test_lines_come_back_as_they_were(tmp_path):
    lines = [LogLine(1, 0, {"a": float("inf"), "b": "text", "c": 3}), LogLine(2, 1, {"a": 0.1})]
    (tmp_path / "x").write_text("\n".join(line.text() for line in lines) + '\n{"step": 3, "epo')
    assert list(read(tmp_path / "x")) == lines
    assert list(read(tmp_path / "missing")) == []


def test_what_clocks_say_is_kept_apart(tmp_path):
    tracked.train(tmp_path, ())
    (first, *_) = read(tmp_path / "system.jsonl")
    assert set(first.values) <= {"time", "steps_per_s", "samples_per_s", "memory_bytes"}
    assert first.values["time"] > 1.7e9
    assert first.values["memory_bytes"] > 1e7


def test_an_unwritable_system_file_is_reported_once(tmp_path, capsys):
    with Run(out=tmp_path / "run", max_steps=4, device="cpu", log_every_n_steps=1) as run:
        (tmp_path / "run" / "system.jsonl").mkdir()
        model = run.model(nn.Linear(1, 1))
        run.optimizer(torch.optim.SGD(model.parameters(), 0.1))
        for _ in run.steps():
            run.step(model(torch.ones(1, 1)).sum())
            run.log({"a": 1})
    assert capsys.readouterr().err.count("system.jsonl is left") == 1
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 4
