"""Limits of time, checkpoints by the clock, and SIGUSR1: obeyed between two steps, and resumed exactly."""

import contextlib
import os
import signal

import pytest
import torch
from torch import nn

from truestep import Run
from truestep.errors import BadSettings
from truestep.loop.checkpoint.listing import find
from truestep.loop.log.logs import Logs
from truestep.loop.settings.limits import seconds

DATA = torch.randn(12, 2, generator=torch.Generator().manual_seed(0))

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no SIGUSR1 here")


@pytest.fixture(autouse=True)
def files_stay_in_memory(monkeypatch):
    """Do not wait for the disk: no machine is stopped here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(autouse=True)
def default_handlers():
    before = signal.signal(signal.SIGUSR1, signal.SIG_DFL), signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGUSR1, before[0])
    signal.signal(signal.SIGTERM, before[1])


def train(out, signals=None, **settings):
    """Train for 2 epochs of 6 steps; send signals in the bodies of some steps; return the weights and the log."""
    settings = {"max_epochs": 2, "resume": "auto", "keep_last": 50} | settings
    run = Run(out=out, seed=2, device="cpu", watch=False, progress=False, **settings)
    model = run.model(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)))
    run.optimizer(torch.optim.Adam(model.parameters(), lr=0.1))
    loader = run.loader(torch.utils.data.TensorDataset(DATA), batch_size=2, shuffle=True)
    with run:
        for _ in run.epochs():
            for (x,) in run.train(loader, model):
                for number in (signals or {}).get(run.global_step + 1, ()):
                    os.kill(os.getpid(), number)
                run.step(model(x).square().mean())
                run.log({"sum": x.sum()})
    return [value.tolist() for value in model.parameters()], (out / "metrics.jsonl").read_text()


def saved(out):
    return sorted(int(path.name.removeprefix("step-")) for path in (out / "checkpoints").glob("step-*"))


@pytest.mark.program
def test_a_run_whose_time_is_over_saves_ends_and_goes_on(tmp_path, capsys):
    whole = train(tmp_path / "whole")
    for step in range(1, 13):
        with pytest.raises(SystemExit) as ended:
            train(tmp_path / "run", max_time=1e-9)
        assert ended.value.code == 0
        assert find(tmp_path / "run").step == step
        assert f"saved at step {step};" in capsys.readouterr().err
    assert train(tmp_path / "run") == whole


ENDINGS = {
    "at the end": ({}, None, "finished"),
    "max_time": ({"max_time": 1e-9}, SystemExit, "finished"),
    "a signal": ({"signals": {4: [signal.SIGTERM]}}, SystemExit, "interrupted"),
    "an error": ({"signals": {4: [None]}}, TypeError, "crashed"),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_a_log_is_closed_with_how_the_run_ended(case, tmp_path, monkeypatch):
    settings, error, ending = ENDINGS[case]
    heard = []
    monkeypatch.setattr(Logs, "close", lambda self, how: heard.append(how))
    with pytest.raises(error) if error else contextlib.nullcontext():
        train(tmp_path, **settings)
    assert heard[0] == ending


def test_a_run_that_has_time_is_not_ended(tmp_path):
    train(tmp_path, max_time="01:00:00")
    assert saved(tmp_path) == []


def test_checkpoints_by_the_clock_come_between_two_steps(tmp_path):
    train(tmp_path / "often", save_every_n_minutes=1e-9)
    assert saved(tmp_path / "often") == list(range(1, 13))
    train(tmp_path / "seldom", save_every_n_minutes=1000)
    assert saved(tmp_path / "seldom") == []


@pytest.mark.parametrize(
    ("duration", "expected"), [(90, 90), ("90", 90), ("1:30", 90), ("00:12:00:00", 43200), ("1:00:00:00", 86400)]
)
def test_a_duration_is_a_number_or_a_text(duration, expected):
    assert seconds(duration, "max_time") == expected


@pytest.mark.parametrize("duration", [0, -1, "", "1h", "1:-30", "1:2:3:4:5", True, float("inf")])
def test_what_is_no_duration_is_refused(duration, tmp_path):
    with pytest.raises(BadSettings, match="max_time"):
        Run(out=tmp_path, max_time=duration, device="cpu")


@pytest.mark.parametrize("setting", [{"max_time": 1}, {"save_every_n_minutes": 1}])
def test_a_run_that_saves_by_the_clock_has_a_folder(setting):
    with pytest.raises(BadSettings, match="no folder"):
        Run(device="cpu", **setting)


def test_a_step_of_another_kind_after_a_warning_is_refused():
    with pytest.raises(BadSettings, match="on_sigusr1"):
        Run(device="cpu", on_sigusr1="stop")


def test_a_warning_saves_and_ends_with_its_code(tmp_path, capfd):
    whole = train(tmp_path / "whole")
    with pytest.raises(SystemExit) as ended:
        train(tmp_path / "run", {4: [signal.SIGUSR1, signal.SIGUSR1]})
    assert ended.value.code == 128 + signal.SIGUSR1
    assert "SIGUSR1: finishing the step and saving; then the program ends" in capfd.readouterr().err
    assert saved(tmp_path / "run") == [4]
    assert train(tmp_path / "run") == whole


def test_a_signal_after_a_warning_does_not_end_the_program_before_it_saved(tmp_path):
    with pytest.raises(SystemExit) as ended:
        train(tmp_path, {4: [signal.SIGUSR1, signal.SIGTERM]})
    assert ended.value.code == 128 + signal.SIGTERM
    assert saved(tmp_path) == [4]


def test_a_warning_may_save_and_go_on(tmp_path):
    whole = train(tmp_path / "whole")
    assert train(tmp_path / "run", {4: [signal.SIGUSR1], 9: [signal.SIGUSR1]}, on_sigusr1="save") == whole
    assert saved(tmp_path / "run") == [4, 9]


@pytest.mark.parametrize(
    ("job", "asked"),
    [
        ({"SLURM_JOB_ID": "17"}, "requeue 17\n"),
        ({"SLURM_JOB_ID": "19", "SLURM_ARRAY_JOB_ID": "18", "SLURM_ARRAY_TASK_ID": "3"}, "requeue 18_3\n"),
        ({}, None),
    ],
    ids=["job", "array", "no-job"],
)
def test_a_job_is_queued_again_after_it_saved(job, asked, tmp_path, monkeypatch, capfd):
    program = tmp_path / "bin" / "scontrol"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nls {tmp_path}/run/checkpoints > {tmp_path}/there\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for name in ("SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in job.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        train(tmp_path / "run", {4: [signal.SIGUSR1]}, on_sigusr1="requeue")
    assert ended.value.code == 128 + signal.SIGUSR1
    if asked is None:
        assert "SLURM_JOB_ID is not set" in capfd.readouterr().err
        assert not (tmp_path / "asked").exists()
    else:
        assert (tmp_path / "asked").read_text() == asked
        assert "step-000004" in (tmp_path / "there").read_text()
