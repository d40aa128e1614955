"""A disk that is full, or fills while a checkpoint is written, costs that checkpoint and nothing else."""

import errno
import json
import os
import subprocess
import sys

import pytest
import torch

from truestep import Run
from truestep.errors import DiskFull
from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.disk import files
from truestep.loop.log.line_file import LineFile

LIMITED = """
import resource, sys
from pathlib import Path
import torch
from truestep.errors import DiskFull
from truestep.loop.checkpoint.checkpoints import Checkpoints

checkpoints = Checkpoints(Path(sys.argv[1]))
checkpoints.save(1, epoch=0, models={"model": {"weight": torch.ones(1000)}}, state={"moments": torch.ones(1000)})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
big = torch.ones(100_000)
for models, state in (({"weight": big}, {}), ({"weight": torch.ones(1)}, {"moments": big})):
    try:
        checkpoints.save(2, epoch=0, models={"model": models}, state=state)
    except DiskFull as error:
        print(error.slug, error.expected)
checkpoints.save(3, epoch=0, models={"model": {"weight": torch.ones(10)}})
print(checkpoints.newest().step)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 16 MiB; for root only."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("cannot mount a small file system here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_file_that_cannot_grow_is_a_full_disk(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["disk-full", "disk-full", "3"]
    assert names(tmp_path) == ["last", "step-000001", "step-000003"]
    Checkpoints(tmp_path).newest().verify()


def save(checkpoints, step, size, **state):
    checkpoints.save(step, epoch=0, models={"model": {"weight": torch.ones(size)}}, state=state)


def test_too_little_space_is_said_before_anything_is_written(small_disk):
    checkpoints = Checkpoints(small_disk / "checkpoints")
    save(checkpoints, 1, 1_000_000)
    with pytest.raises(DiskFull) as caught:
        save(checkpoints, 2, 3_000_000)
    assert caught.value.expected.startswith("needed 16.4 MB, free 12.")
    assert names(small_disk / "checkpoints") == ["last", "step-000001"]
    assert checkpoints.newest().step == 1


@pytest.mark.parametrize("where", ["model", "state"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_disk_that_fills_on_the_way_leaves_the_checkpoints_before(small_disk, monkeypatch, where, asynchronous):
    checkpoints = Checkpoints(small_disk / "checkpoints", asynchronous=asynchronous)
    save(checkpoints, 1, 1_000_000)
    checkpoints.wait()
    monkeypatch.setattr(files, "require_space", lambda *_: None)  # as if another program filled it
    large, small = torch.ones(5_000_000), 10
    with pytest.raises(DiskFull, match="does not fit"):
        if where == "model":
            save(checkpoints, 2, large.numel())
        else:
            save(checkpoints, 2, small, moments=large)
        checkpoints.wait()
    assert names(small_disk / "checkpoints") == ["last", "step-000001"]
    save(checkpoints, 3, 1_000)
    assert checkpoints.newest().step == 3


class TestTheLog:
    """A disk that is full under the log costs no training, and as few lines as possible."""

    def train(self, out, during, **settings):
        settings = {"max_epochs": 4, "log_every_n_steps": 1} | settings
        run = Run(out=out, device="cpu", watch=False, progress=False, resume="auto", **settings)
        with run:
            model = run.model(torch.nn.Linear(2, 1))
            run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
            loader = run.loader(torch.utils.data.TensorDataset(torch.ones(8, 2)), batch_size=2)
            for _ in run.epochs():
                for (x,) in run.train(loader, model):
                    during(run)
                    run.step(model(x).mean())
                    run.log({"filler": "z" * 3000, "n": run.global_step})
        return run

    def steps(self, out):
        return [json.loads(line)["step"] for line in (out / "metrics.jsonl").read_text().splitlines()]

    def test_training_goes_on_and_what_is_lost_is_said(self, small_disk, capsys):
        def fill(run):
            if run.global_step == 4:
                free = os.statvfs(small_disk).f_bavail * 4096
                (small_disk / "junk").write_bytes(b"x" * free)

        run = self.train(small_disk / "run", fill)
        assert run.global_step == 16
        said = capsys.readouterr().err.splitlines()
        told = [line for line in said if "cannot be written" in line]
        assert len(told) == 2, "the log, and the alert that says so"
        assert "metrics.jsonl cannot be written (No space left on device); the training goes on" in told[1]
        assert [alert.kind for alert in run.alerts] == ["not-written"]
        written = self.steps(small_disk / "run")
        assert written == list(range(1, len(written) + 1)), "whole lines"
        assert f"{16 - len(written)} lines of" in said[-1]
        assert f"steps {len(written) + 1} to 16 could not be written" in said[-1]

    def test_lines_that_waited_are_written_when_there_is_room(self, small_disk):
        def fill(run):
            junk = small_disk / "junk"
            if run.global_step == 4:
                junk.write_bytes(b"x" * (os.statvfs(small_disk).f_bavail * 4096))
            elif run.global_step == 9:
                junk.unlink(missing_ok=True)

        run = self.train(small_disk / "run", fill)
        assert self.steps(small_disk / "run") == list(range(1, 17))
        assert len(run.alerts) == 1

    def test_a_resumed_run_writes_the_lines_that_waited(self, tmp_path, monkeypatch):
        write = LineFile._write

        class Killed(BaseException):
            pass

        def full(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

        def during(run):
            if run.global_step == 3:
                monkeypatch.setattr(LineFile, "_write", full)
            if run.global_step == 7:
                raise Killed

        with pytest.raises(Killed):
            self.train(tmp_path, during, save_every_n_steps=5)
        assert self.steps(tmp_path) == [1, 2, 3]
        monkeypatch.setattr(LineFile, "_write", write)
        self.train(tmp_path, lambda run: None, save_every_n_steps=5)
        assert self.steps(tmp_path) == list(range(1, 17))

    def test_only_so_many_lines_wait(self, tmp_path, monkeypatch):
        monkeypatch.setattr("truestep.loop.log.line_file._MOST_WAITING", 3)
        told = []
        lines = LineFile(tmp_path / "no folder" / "a.jsonl", failed=told.append)
        for number in range(5):
            lines.add([str(number)])
        assert (lines.waiting, lines.lost, len(told)) == (["2", "3", "4"], 2, 1)
