"""``truestep run --to-tracker``: findings and curves in the trackers of an unmodified script; nothing without it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.tensorboard import SummaryWriter

from truestep.config import Options
from truestep.events import Site
from truestep.supervision import Session
from truestep.timeline import Curve
from truestep.trackers.of_script import ScriptTrackers, _name

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


def test_a_script_without_a_tracker_is_named(tmp_path):
    _, said = run(tmp_path, "train(print)", ["--to-tracker", "--quiet"])
    assert "no TensorBoard" not in said
    _, said = run(tmp_path, "train(print)", ["--to-tracker"])
    assert "truestep: the script has no TensorBoard or MLflow to write to\n" in said


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
    assert "no TensorBoard or MLflow to write to" in done.stderr


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
    assert [_name(one, losses) for one in losses] == ["truestep/loss/line_3", "truestep/loss/line_9"]
    assert _name(losses[0], losses[:1]) == "truestep/loss"
    rates = [Curve("rate", 1, None, 0), Curve("rate", 1, None, 1), Curve("rate", 2, None, 0)]
    assert [_name(one, rates) for one in rates] == [
        "truestep/learning_rate/optimizer_1/group_0",
        "truestep/learning_rate/optimizer_1/group_1",
        "truestep/learning_rate/optimizer_2",
    ]
