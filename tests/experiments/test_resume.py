"""`truestep verify-resume`: missing state is named, and exact runs are called exact."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import called

from truestep.errors import NoExperiment
from truestep.experiments.resume.resume import expanded, verify_resume
from truestep.experiments.resume.trial import ResumeVerdict
from truestep.experiments.running.bench import Bench
from truestep.supervision.launching.launch import Target

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for program in PROGRAMS.glob("resum*.py"):
        shutil.copy(program, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def verified(folder, *arguments, script="resumable.py", steps=2000, resume=(), **options):
    return verify_resume(Bench(Target(script, arguments), steps, folder=folder), resume, **options)


@pytest.mark.slow
def test_a_script_that_saves_everything_is_exact_at_the_step_it_is_killed_in(folder):
    result = verified(folder, "--every", "3", at=[15])
    assert result.verdict is ResumeVerdict.EXACT, result
    (trial,) = result.trials
    assert (trial.done, trial.went_on, trial.again, trial.first, trial.beyond) == (15, 14, 1, None, 0)
    assert sorted(path.name for path in folder.iterdir()) == ["resumable.py", "resumed_run.py"]


@pytest.mark.program
def test_the_command_names_the_state_of_the_optimizer(folder, capfd, monkeypatch):
    options = ("--kills", "1", "--format", "json", "--steps", "20", "--picture", "loss.svg")
    done = called(capfd, monkeypatch, "verify-resume", *options, "resumable.py", "--forget", "optimizer")
    assert done.code == 1, done.err
    report = json.loads(done.out)
    assert report["verdict"] == "differs"
    assert [piece["piece"] for piece in report["missing"]] == ["state"]
    assert "exp_avg, exp_avg_sq, step" in report["missing"][0]["detail"]
    assert report["kills"][0]["first"] == report["kills"][0]["went_on"] + 1
    assert (folder / "loss.svg").read_text().count("<polyline") == 2


FORGOTTEN = {
    "optimizer": "state",
    "scheduler": "schedules",
    "random": "random torch",
    "epoch": "epochs",
    "position": "position",
    "scaler": "scalers",
    "buffers": "buffers",
    "weights": "weights",
}


@pytest.mark.slow
@pytest.mark.parametrize("forgotten", FORGOTTEN)
def test_what_is_forgotten_is_named_and_nothing_else(forgotten, folder):
    every = ("--every", "3") if forgotten in ("position", "weights") else ()
    result = verified(folder, "--forget", forgotten, *every, kills=1)
    assert result.verdict is ResumeVerdict.DIFFERS
    for trial in result.trials:
        assert [one.piece for one in trial.missing if one.effect] == [FORGOTTEN[forgotten]], trial
        assert trial.first == trial.went_on + 1
        assert trial.done - 8 <= trial.went_on <= trial.done
    if forgotten == "epoch":
        assert all(trial.beyond == trial.went_on for trial in result.trials)


@pytest.mark.slow
def test_a_script_that_saves_everything_is_exact_at_any_step_and_during_saves(folder):
    result = verified(folder, "--every", "3", kills=4, seed=1)
    assert result.verdict is ResumeVerdict.EXACT, result
    assert [trial.kill.moment for trial in result.trials].count("write") == 1


@pytest.mark.slow
def test_a_torn_file_is_one_that_the_resumed_run_cannot_read(folder):
    result = verified(folder, "--every", "3", "--plain-write", kills=2)
    assert result.verdict is ResumeVerdict.CRASHED
    torn = next(trial for trial in result.trials if trial.kill.moment == "write")
    assert (torn.verdict, torn.kill.path) == (ResumeVerdict.CRASHED, "checkpoint.pt")
    assert torn.said.count("torch.load")
    assert next(trial for trial in result.trials if trial is not torn).verdict is ResumeVerdict.EXACT


@pytest.mark.slow
def test_a_script_that_starts_again_differs_from_one_that_saved_nothing(folder):
    (again,) = verified(folder, "--fresh-start", "--every", "3", kills=1).trials
    assert (again.verdict, again.went_on) == (ResumeVerdict.STARTED_AGAIN, 0)
    assert "checkpoint.pt was written" in again.note
    (nothing,) = verified(folder, "--never", kills=1).trials
    assert (nothing.verdict, nothing.went_on) == (ResumeVerdict.NOTHING_SAVED, 0)
    assert nothing.note == f"{nothing.done} steps are lost"


@pytest.mark.slow
def test_a_script_without_a_seed_is_exact_where_it_restores_its_random_states_and_not_elsewhere(folder):
    assert verified(folder, "--seed", "-1", "--every", "3", at=[14]).verdict is ResumeVerdict.EXACT
    result = verified(folder, "--seed", "-1", "--forget", "random", at=[14])
    assert [one.piece for one, _ in result.missing] == ["random torch"]
    (again,) = verified(folder, "--seed", "-1", "--fresh-start", at=[14]).trials
    assert again.verdict is ResumeVerdict.STARTED_AGAIN


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("--workers", "2"), ("--ema",)], ids=["dropout", "workers", "ema"])
def test_a_run_of_the_toolkit_is_exact(arguments, folder):
    result = verified(folder, *arguments, script="resumed_run.py", kills=2)
    assert result.verdict is ResumeVerdict.EXACT, result
    assert any(trial.kill.moment == "write" for trial in result.trials)


@pytest.mark.slow
def test_the_template_is_exact(folder):
    subprocess.run([sys.executable, "-m", "truestep", "new", "digits"], check=True, capture_output=True)
    arguments = ("--max-epochs", "2", "--save-every-n-steps", "5")
    result = verified(folder, *arguments, script="train.py", resume=("--resume", "auto"), kills=2)
    assert result.verdict is ResumeVerdict.EXACT, result


@pytest.mark.slow
def test_runs_that_differ_without_a_kill_are_not_judged(folder):
    (folder / "train.py").write_text(
        "import os, torch\n"
        "model = torch.nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for step in range(9):\n"
        "    noise = int.from_bytes(os.urandom(2)) / 1000 if step == 4 else 1.0\n"
        "    (model(torch.ones(3, 2)).sum() * noise).backward()\n"
        "    optimizer.step()\n"
    )
    (trial,) = verified(folder, script="train.py", at=[7]).trials
    assert trial.verdict is ResumeVerdict.UNREPEATABLE
    assert trial.note.startswith("two uninterrupted runs differ already at step 5")


@pytest.mark.program
def test_a_step_that_there_is_not_is_refused_and_so_is_a_script_that_does_not_train(folder):
    (folder / "train.py").write_text("import torch\nprint('nothing to do')\n")
    with pytest.raises(NoExperiment, match="the script took no steps"):
        verified(folder, script="train.py")


def test_a_pattern_stands_for_the_newest_file(tmp_path):
    assert expanded(("--resume", "out/*.pt"), tmp_path) == ()
    (tmp_path / "out").mkdir()
    for age, name in enumerate(("b.pt", "a.pt")):
        (tmp_path / "out" / name).write_text(str(age))
        os.utime(tmp_path / "out" / name, ns=(age, age + 1))
    assert expanded(("--resume", "out/*.pt", "x"), tmp_path) == ("--resume", "out/a.pt", "x")
    assert expanded(("--resume=out/*.pt",), tmp_path) == ("--resume=out/a.pt",)
    assert expanded((f"{tmp_path}/out/*.pt",), tmp_path) == (f"{tmp_path}/out/a.pt",)
    assert expanded(("out/**.pt", "--name", "x"), tmp_path) == ("out/a.pt", "--name", "x")
