"""`truestep overfit`: its answers for loops that learn and loops that do not, and untouched files."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import called

from truestep.errors import NoExperiment
from truestep.experiments.overfit.overfit import LearningVerdict, judge, overfit
from truestep.experiments.reports.curve import drawn
from truestep.experiments.reports.picture import svg
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import Variant
from truestep.supervision.launching.launch import Target

SCRIPT = """
import argparse, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-2)
parser.add_argument("--wrong", default="")
parser.add_argument("--scaler", action="store_true")
args = parser.parse_args()
torch.manual_seed(0)
x, y = torch.randn(256, 8), torch.randint(0, 4, (256,))  # nothing to generalise, everything to learn by heart
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model[0:1].parameters() if args.wrong == "half" else model.parameters(), lr=args.lr)
scaler = torch.amp.GradScaler("cpu", enabled=args.scaler)
for epoch in range(100):
    for a, b in loader:
        optimizer.zero_grad()
        out = model(a)
        if args.wrong == "softmax":
            out = out.softmax(1).log().softmax(1)
        if args.wrong == "detached":
            out = out.detach().requires_grad_()
        loss = nn.functional.cross_entropy(out, b)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
open("train.log", "w").write("done")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.py").write_text(SCRIPT)
    (work / "train.log").write_text("mine")
    monkeypatch.chdir(work)
    return work


def bench(folder, *arguments, steps=150, script="train.py", **options):
    return Bench(Target(script, arguments), steps, folder=folder, **options)


@pytest.mark.slow
def test_a_loop_that_learns_is_reported_to_learn_and_nothing_is_overwritten(folder):
    before = sorted(path.name for path in folder.iterdir())
    result = overfit(bench(folder, "--scaler"))
    assert result.answer is LearningVerdict.LEARNS, result.outcome.said
    assert "this loop can learn: the loss on one batch of 32 samples fell from 1." in result.sentence
    assert result.losses[0] == pytest.approx(math.log(4), rel=0.2), "out of the scale of fp16"
    assert len(result.losses) == 150
    assert result.plain is None
    assert (folder / "train.log").read_text() == "mine"
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.program
def test_a_loop_that_cannot_learn_is_stuck_and_its_failure_is_named(folder):
    result = overfit(bench(folder, "--wrong", "detached", steps=20))
    assert result.answer is LearningVerdict.STUCK, result.sentence
    assert result.plain is not None
    assert "loss-without-parameters" in result.plain.report or "graph-cut" in result.plain.report, result.plain.report
    assert "train.py:27" in result.plain.report
    assert "/tmp/truestep-" not in result.plain.report


@pytest.mark.slow
def test_a_loop_that_goes_astray_diverges(folder):
    assert overfit(bench(folder, "--lr", "1e6", steps=60)).answer is LearningVerdict.DIVERGES


@pytest.mark.program
def test_the_command_reports_and_exits_by_the_answer(folder, capfd, monkeypatch):
    options = ("--no-dropout", "--picture", "curve.svg", "--format", "json")
    done = called(capfd, monkeypatch, "overfit", *options, "train.py", "--lr", "0.02")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report["answer"] == "learns"
    assert report["how"] == "stopped"
    assert report["changes"]["no-dropout"]["applied"] >= 200
    assert len(report["losses"]) == 200
    assert (folder / "curve.svg").read_text().startswith("<svg")
    assert sorted(path.name for path in folder.iterdir()) == ["curve.svg", "train.log", "train.py"]
    assert (folder / "train.log").read_text() == "mine"


@pytest.mark.slow
def test_a_module_runs_from_its_folder(folder):
    (folder / "lab").mkdir()
    (folder / "lab" / "__init__.py").write_text("")
    (folder / "lab" / "main.py").write_text(SCRIPT)
    outcome = Bench(Target("lab.main", ("--lr", "0.01"), module=True), 20, folder=folder).run(Variant("as it is"))
    assert (outcome.how, outcome.steps) == ("stopped", 20), outcome.said


@pytest.mark.program
def test_a_script_that_writes_elsewhere_is_stopped_with_its_reason(folder, tmp_path):
    if "kernel" not in _guards():
        pytest.skip("this kernel has no Landlock")
    (folder / "rogue.py").write_text(f"import torch\ntorch.save({{}}, {str(folder / 'model.pt')!r})\n" + SCRIPT)
    with pytest.raises(NoExperiment, match="crashed before its first step") as refused:
        overfit(bench(folder, script="rogue.py", steps=5))
    assert not (folder / "model.pt").exists()
    assert "below its working folder" in refused.value.remedy


def _guards():
    code = "from truestep.experiments.running.inside.write_sandbox import confine; print(confine([]))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.program
def test_a_script_without_loader_or_steps_is_refused(folder):
    (folder / "none.py").write_text("import torch\nprint('hello')\n")
    with pytest.raises(NoExperiment, match="without training") as refused:
        overfit(bench(folder, script="none.py", steps=5))
    assert "hello" in refused.value.said


SPAWNED = """
import torch
import torch.multiprocessing as mp

def work(rank):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    mp.spawn(work, nprocs=1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", ["overfit", "prove", "tune", "profile", "verify-resume"])
def test_training_in_child_processes_is_named_by_every_command(folder, command):
    (folder / "spawned.py").write_text(SPAWNED)
    command = [sys.executable, "-m", "truestep", command, "spawned.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "the script trains in child processes (torch.multiprocessing.spawn)" in " ".join(done.stderr.split())


@pytest.mark.slow
def test_a_script_whose_batches_come_from_nowhere_is_refused(folder):
    (folder / "hand.py").write_text(
        "import torch\nw = torch.ones(2, requires_grad=True)\no = torch.optim.SGD([w], lr=0.1)\n"
        "for _ in range(9):\n    (w ** 2).sum().backward()\n    o.step()\n    o.zero_grad()\n"
    )
    with pytest.raises(NoExperiment, match="no batch could be repeated"):
        overfit(bench(folder, script="hand.py", steps=5))


@pytest.mark.program
def test_a_script_over_its_limit_is_ended_with_all_its_processes(folder):
    (folder / "slow.py").write_text(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('child', child.pid, flush=True)\ntime.sleep(600)\n"
    )
    outcome = bench(folder, script="slow.py", limit_s=3.0).run(Variant("as it is"))
    assert outcome.how == "killed"
    assert _is_gone(int(outcome.said.split()[-1]))


@pytest.mark.program
@pytest.mark.parametrize(
    ("number", "command"),
    [
        (signal.SIGINT, "overfit"),
        pytest.param(signal.SIGTERM, "prove", marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, "tune", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "verify-resume", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, "profile", marks=pytest.mark.slow),
    ],
)
def test_a_signal_leaves_no_orphans_and_no_folder(folder, tmp_path, number, command):
    (folder / "slow.py").write_text(
        "import os, time\nopen('/dev/shm/' + 'truestep-test-' + str(os.getppid()), 'w').write(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = subprocess.Popen(
        [sys.executable, "-m", "truestep", command, "slow.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    note = Path(f"/dev/shm/truestep-test-{command.pid}")
    try:
        for _ in range(600):
            if note.exists() and note.read_text():
                break
            time.sleep(0.1)
        child = int(note.read_text())
        command.send_signal(number)
        said, errors = command.communicate(timeout=600)
    finally:
        command.kill()
        note.unlink(missing_ok=True)
    assert command.returncode == 128 + number, errors
    assert "Traceback" not in errors
    assert "interrupted" in said + errors
    assert _is_gone(child)
    assert list(scratch.iterdir()) == []


def _is_gone(pid):
    for _ in range(100):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize(
    ("losses", "batches", "answer"),
    [
        ([2.3, 1.0, 0.01], 1, "learns"),
        ([2.3] * 50 + [0.6] * 50, 1, "falls"),
        ([2.3] * 100, 1, "stuck"),
        ([2.3, 2.2, 2.4] * 30, 1, "stuck"),
        ([0.73 - 0.006 * step for step in range(40)], 1, "falls"),
        ([0.73, 0.49] * 20, 1, "stuck"),
        ([1.0] * 10 + [1e9] * 90, 1, "diverges"),
        ([1.0, math.inf], 1, "diverges"),
        ([1.0, 3.0] * 10 + [0.1, 0.2] * 40, 2, "learns"),
        ([-1.0] * 10 + [-9.0] * 90, 1, "falls"),
        ([-1.0] * 100, 1, "stuck"),
        ([0.0] * 100, 1, "stuck"),
    ],
)
def test_losses_are_judged_by_where_they_end(losses, batches, answer):
    assert judge(losses, batches) == answer


@pytest.mark.parametrize(
    ("losses", "course"),
    [
        ([2.0] * 40 + [0.9] * 40, "has settled"),
        ([2.0 - 0.018 * step for step in range(100)], "still falls"),
        ([2.0] * 20 + [0.2] * 20 + [0.8] * 40, "was at 0.2 in step 2"),
    ],
)
def test_the_end_of_a_curve_is_reported(losses, course):
    from truestep.experiments.overfit.overfit import _course

    assert course in _course(tuple(losses), 1, True)


@pytest.mark.parametrize("losses", [[1.0, 1.0], [1e-9, 5.0, 1e9], [-3.0, 2.0], [0.0] * 500, [5.0] * 3 + [0.0]])
def test_curves_fit_their_width(losses):
    lines = drawn(losses, width=60, height=5)
    assert len(lines) == 7
    assert max(map(len, lines)) <= 60
    assert svg({"one": [losses, losses], "other": [losses]}, "a < b").count("<polyline") == 2


def test_many_steps_are_drawn_by_their_means_and_labelled_by_what_is_drawn():
    noisy = [1.0 + (step % 2) for step in range(2000)]
    lines = drawn(noisy, width=28, height=3, beside=[[3.0] * 2000])
    assert [line[:6].strip() for line in lines[:3]] == ["3.00", "", "1.50"]
    assert lines[-1].endswith("2000")
