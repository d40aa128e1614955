"""``truestep run --to-tracker``: findings and curves in the trackers of an unmodified script; nothing without it."""

import contextlib
import json
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch
from torch.utils.tensorboard import SummaryWriter

from truestep.config import Options
from truestep.events import Site
from truestep.supervision import Session
from truestep.timeline import Curve
from truestep.trackers.of_script import ScriptTrackers
from truestep.trackers.series import name_of

TRAINING = """
import sys
import torch

def train(log):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    for step in range(30):
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        log("loss", loss.item(), step)
    print(model.weight.tolist(), model.bias.tolist(), torch.rand(1).tolist())
"""
IN_TENSORBOARD = """
from torch.utils.tensorboard import SummaryWriter

def main():
    writer = SummaryWriter("runs/lab")
    train(writer.add_scalar)
    writer.close()

main()
"""
IN_MLFLOW = """
import mlflow

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.set_experiment("lab")
with mlflow.start_run():
    train(lambda name, value, step: mlflow.log_metric(name, value, step=step))
"""


def run(folder, code, options=()):
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(TRAINING + code, encoding="utf-8")
    supervised = ["-m", "truestep", "run", *options] if options is not None else []
    command = [sys.executable, *supervised, "train.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def held(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    scalars = {name: [(one.step, one.value) for one in events.Scalars(name)] for name in events.Tags()["scalars"]}
    tensors = events.Tags()["tensors"]
    texts = {
        name: [(one.step, one.tensor_proto.string_val[0].decode()) for one in events.Tensors(name)] for name in tensors
    }
    return scalars, texts


def files(folder):
    return {path.name.endswith(".truestep"): path.read_bytes() for path in folder.iterdir()}


@pytest.mark.program
def test_findings_and_curves_are_beside_the_values_of_the_script(tmp_path):
    printed, said = run(tmp_path, IN_TENSORBOARD, ["--to-tracker"])
    assert f"truestep: wrote 1 finding and 3 curves to TensorBoard in {Path('runs/lab')}\n" in said
    folder = tmp_path / "runs" / "lab"
    assert set(files(folder)) == {False, True}
    scalars, texts = held(folder)
    assert [step for step, _ in scalars["loss"]] == list(range(30))
    own = dict(scalars["loss"])
    assert scalars["truestep/loss"]
    assert all(own[step] == pytest.approx(value, rel=1e-3) for step, value in scalars["truestep/loss"])
    assert all(value == pytest.approx(0.1) for _, value in scalars["truestep/learning_rate"])
    assert "truestep/update_ratio" in scalars
    ((step, finding),) = texts["truestep/missing-zero-grad/text_summary"]
    assert step == 1
    assert "optimizer stepped on gradients mixed" in finding
    assert "`train.py:13`" in finding
    ((step, report),) = texts["truestep/report/text_summary"]
    assert (step, report.count("error[missing-zero-grad]")) == (30, 1)
    plain, _ = run(tmp_path / "plain", IN_TENSORBOARD, None)
    assert printed == plain
    assert held(tmp_path / "plain" / "runs" / "lab") == ({"loss": scalars["loss"]}, {})


def test_without_the_option_the_files_are_those_of_the_script(tmp_path):
    _, said = run(tmp_path, IN_TENSORBOARD)
    assert "TensorBoard" not in said
    assert set(files(tmp_path / "runs" / "lab")) == {False}


@pytest.mark.program
def test_a_script_without_a_tracker_is_named(tmp_path):
    _, said = run(tmp_path, "train(print)", ["--to-tracker", "--quiet"])
    assert "no TensorBoard" not in said
    _, said = run(tmp_path, "train(print)", ["--to-tracker"])
    assert "truestep: the script has no TensorBoard, MLflow or Weights & Biases to write to\n" in said


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_run_of_mlflow_gets_metrics_tags_and_the_report(tmp_path):
    pytest.importorskip("mlflow")
    _, said = run(tmp_path, IN_MLFLOW, ["--to-tracker"])
    assert "truestep: wrote 1 finding and 3 curves to MLflow\n" in said
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    (experiment,) = client.search_experiments(filter_string="name = 'lab'")
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.status == "FINISHED"
    assert found.data.tags["truestep.failures"] == "1"
    assert found.data.tags["truestep.missing-zero-grad"].startswith("train.py:13: optimizer stepped on gradients mixed")
    assert {"loss", "truestep/loss", "truestep/learning_rate", "truestep/update_ratio"} <= set(found.data.metrics)
    assert [metric.step for metric in client.get_metric_history(found.info.run_id, "loss")] == list(range(30))


MODULES = {
    "without a class": "",
    "with another class": "class SummaryWriter:\n    def __init__(self): print('built')\n",
    "with a class that raises": "class SummaryWriter:\n    def __init__(self): raise OSError('full')\n",
}


@pytest.mark.parametrize("name", MODULES)
def test_no_error_reaches_a_script_with_a_module_of_the_same_name(name, tmp_path):
    (tmp_path / "tensorboardX").mkdir()
    (tmp_path / "tensorboardX" / "__init__.py").touch()
    (tmp_path / "tensorboardX" / "writer.py").write_text(MODULES[name])
    (tmp_path / "mlflow.py").touch()
    (tmp_path / "train.py").write_text(
        "import torch, mlflow, tensorboardX.writer as module\n"
        "try:\n    getattr(module, 'SummaryWriter', print)()\n"
        "except OSError as error:\n    print(error)\n"
        "torch.zeros(1, requires_grad=True).backward()\n"
    )
    command = [sys.executable, "-m", "truestep", "run", "--to-tracker", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    plain = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout) == (0, plain.stdout)
    assert "no TensorBoard, MLflow or Weights & Biases to write to" in done.stderr


def trained():
    torch.manual_seed(0)
    with Session(Options(to_tracker=True), script="train.py") as session:
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(12):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(torch.randn(4, 2)), torch.randn(4, 1)).backward()
            optimizer.step()
    return session.stop()


def test_a_tracker_that_fails_is_named_and_others_are_written(tmp_path):
    before = SummaryWriter.__init__
    trackers = ScriptTrackers()
    trackers.follow()
    for name in ("good", "gone"):
        SummaryWriter(tmp_path / name).close()
    for path in (tmp_path / "gone").iterdir():
        path.unlink()
    (tmp_path / "gone").rmdir()
    (tmp_path / "gone").write_text("a file")
    summary = trained()
    assert summary.shown() == ()
    said = trackers.write(summary)
    assert f"wrote 0 findings and 3 curves to TensorBoard in {tmp_path / 'good'}" in said
    assert f"TensorBoard in {tmp_path / 'gone'} could not be written: " in said
    assert SummaryWriter.__init__ is before
    assert "truestep/loss" in held(tmp_path / "good")[0]


def test_curves_of_several_optimizers_groups_and_lines_have_names():
    def at(line):
        return Site("train.py", line)

    losses = [Curve("loss", 0, at(3)), Curve("loss", 0, at(9))]
    assert [name_of(one, losses) for one in losses] == ["truestep/loss/line_3", "truestep/loss/line_9"]
    assert name_of(losses[0], losses[:1]) == "truestep/loss"
    rates = [Curve("rate", 1, None, 0), Curve("rate", 1, None, 1), Curve("rate", 2, None, 0)]
    assert [name_of(one, rates) for one in rates] == [
        "truestep/learning_rate/optimizer_1/group_0",
        "truestep/learning_rate/optimizer_1/group_1",
        "truestep/learning_rate/optimizer_2",
    ]


IN_WANDB = {
    "finish": """
import wandb

wandb.init(project="lab", mode="offline")
train(lambda name, value, step: wandb.log({name: value}))
wandb.finish()
""",
    "with": """
import wandb

with wandb.init(project="lab", mode="offline") as run:
    train(lambda name, value, step: run.log({name: value}, step=step))
""",
    "exit": """
import wandb

run = wandb.init(project="lab", mode="offline")
train(lambda name, value, step: run.log({name: value}, step=step))
""",
    "before": """
import wandb

with wandb.init(project="lab", mode="offline"):
    pass
train(print)
""",
    "disabled": """
import wandb

wandb.init(project="lab", mode="disabled")
train(print)
wandb.finish()
""",
}


def in_wandb(folder):
    """Return the rows of the history and the values of the summary in the file of an offline run."""
    from wandb.proto.wandb_internal_pb2 import Record
    from wandb_file import records

    def values(items):
        return {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items}

    (path,) = (folder / "wandb").glob("offline-run-*/*.wandb")
    rows, summary = [], {}
    for data in records(path):
        record = Record.FromString(data)
        kind = record.WhichOneof("record_type")
        if kind == "history":
            rows.append(
                {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            )
        elif kind == "summary":
            summary |= {
                item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.summary.update
            }
    return rows, summary


@pytest.mark.slow
@pytest.mark.parametrize("way", ["finish", "with", "exit"])
def test_a_run_of_wandb_gets_rows_and_findings_before_it_ends(way, tmp_path):
    pytest.importorskip("wandb")
    printed, said = run(tmp_path, IN_WANDB[way], ["--to-tracker"])
    assert "truestep: wrote 1 finding and 3 curves to Weights & Biases\n" in said
    rows, summary = in_wandb(tmp_path)
    own = [row["loss"] for row in rows if "loss" in row]
    assert len(own) == 30
    read = {row["truestep/step"]: row["truestep/loss"] for row in rows if "truestep/loss" in row}
    assert {0, 1, 2, 3, 10, 20} <= set(read)
    assert all(own[step] == pytest.approx(value, rel=1e-3) for step, value in read.items())
    rates = [row["truestep/learning_rate"] for row in rows if "truestep/learning_rate" in row]
    assert rates[0] == pytest.approx(0.1)
    assert summary["truestep/failures"] == 1
    assert summary["truestep/missing-zero-grad"].startswith("train.py:13: optimizer stepped on gradients mixed")
    (report,) = (tmp_path / "wandb").glob("offline-run-*/files/media/html/truestep/*.html")
    assert "error[missing-zero-grad]" in report.read_text(encoding="utf-8")
    plain, _ = run(tmp_path / "plain", IN_WANDB[way], None)
    assert printed.splitlines()[0] == plain.splitlines()[0]


@pytest.mark.slow
def test_a_run_of_wandb_that_ended_before_a_finding_is_named(tmp_path):
    pytest.importorskip("wandb")
    _, said = run(tmp_path, IN_WANDB["before"], ["--to-tracker"])
    assert "Weights & Biases, in a run that ended before 1 more was found" in said


@pytest.mark.slow
def test_a_disabled_run_of_wandb_gets_nothing(tmp_path):
    pytest.importorskip("wandb")
    _, said = run(tmp_path, IN_WANDB["disabled"], ["--to-tracker"])
    assert "no TensorBoard, MLflow or Weights & Biases to write to" in said


class FakeRun:
    """A run of Weights & Biases, for an environment without it."""

    disabled = False

    def __init__(self, id):
        self.id, self.rows, self.summary, self.axes, self.ended = id, [], {}, {}, 0

    def define_metric(self, name, **options):
        self.axes[name] = options.get("step_metric")

    def log(self, values):
        if self.ended:
            raise ValueError("the run has ended")
        self.rows.append(values)

    def finish(self):
        self.ended += 1

    def __exit__(self, *_):
        self.finish()


@pytest.fixture
def fake_wandb(monkeypatch):
    class Kind(FakeRun):
        pass

    module = types.ModuleType("wandb.sdk.wandb_run")
    module.Run = Kind
    top = types.ModuleType("wandb")
    top.run, top.Html = None, lambda text, inject: text
    monkeypatch.setitem(sys.modules, "wandb", top)
    monkeypatch.setitem(sys.modules, "wandb.sdk.wandb_run", module)
    return top, Kind


def losses(steps):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        torch.nn.functional.mse_loss(model(torch.randn(4, 2)), torch.randn(4, 1)).backward()
        optimizer.step()


def test_rows_are_logged_before_the_script_ends_a_run(fake_wandb):
    top, kind = fake_wandb
    before = kind.finish
    trackers = ScriptTrackers()
    trackers.follow()
    one, other = kind("a"), kind("b")
    with Session(Options(to_tracker=True), script="train.py") as session:
        losses(5)
        one.finish()
        losses(5)
        top.run = other
    said = trackers.write(session.stop())
    assert re.fullmatch(r"wrote 1 finding and \d curves to Weights & Biases", said)
    assert (one.ended, other.ended) == (1, 0)
    assert {"truestep/loss", "truestep/step"} <= set(one.rows[0])
    assert one.axes["truestep/loss"] == "truestep/step"
    assert one.summary["truestep/failures"] == other.summary["truestep/failures"] == 1
    assert "missing-zero-grad" in one.rows[-1]["truestep/report"]
    assert len(other.rows) > len(one.rows)
    assert kind.finish is before


def test_an_error_of_wandb_is_named_and_the_run_ends(fake_wandb):
    _, kind = fake_wandb
    trackers = ScriptTrackers()
    trackers.follow()
    one = kind("a")
    one.ended = 1
    with Session(Options(to_tracker=True), script="train.py") as session:
        losses(3)
        with contextlib.suppress(ZeroDivisionError):
            one.__exit__(None, None, None)
    assert one.ended == 2
    assert "Weights & Biases could not be written: ValueError: the run has ended" in trackers.write(session.stop())
