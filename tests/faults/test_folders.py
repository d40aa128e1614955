"""Folders that cannot be written, that another run is using, and clocks that go back."""

import datetime
import os
import shutil
import subprocess
import sys
import time

import pytest
import torch

from truestep.errors import FolderInUse, UnwritableFolder
from truestep.loop.checkpoint import content
from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.disk.lock import FolderLock
from truestep.loop.checkpoint.listing import find

RUN = """
import sys
from pathlib import Path
from truestep.errors import FolderInUse
from truestep.loop.checkpoint.disk.lock import FolderLock

try:
    FolderLock(Path(sys.argv[1]))
except FolderInUse as error:
    print(error)
"""
MODELS = {"model": {"weight": torch.ones(3)}}


@pytest.fixture
def read_only(tmp_path):
    """A way to make a folder read-only, also for root."""
    made = []

    def make(folder):
        if os.geteuid() == 0:
            if (
                shutil.which("chattr") is None
                or subprocess.run(["chattr", "+i", folder], capture_output=True).returncode
            ):
                pytest.skip("root writes everywhere, and this file system knows no immutable folders")
        else:
            folder.chmod(0o555)
        made.append(folder)

    yield make
    for folder in made:
        if os.geteuid() == 0:
            subprocess.run(["chattr", "-i", folder], check=True)
        else:
            folder.chmod(0o755)


def test_a_read_only_folder_is_an_error_at_once(tmp_path, read_only):
    (tmp_path / "run").mkdir()
    read_only(tmp_path / "run")
    for make in (FolderLock, Checkpoints, lambda path: Checkpoints(path / "checkpoints")):
        with pytest.raises(UnwritableFolder, match="cannot write into") as caught:
            make(tmp_path / "run")
        assert "make this one writable" in caught.value.remedy


def test_a_folder_that_becomes_read_only_is_an_error_at_the_next_save(tmp_path, read_only):
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    checkpoints.save(1, epoch=0, models=MODELS)
    read_only(tmp_path / "checkpoints")
    with pytest.raises(UnwritableFolder, match="cannot write into"):
        checkpoints.save(2, epoch=0, models=MODELS)
    assert checkpoints.newest().step == 1


def test_a_read_only_run_can_be_read(tmp_path, read_only):
    Checkpoints(tmp_path / "checkpoints").save(1, epoch=0, models=MODELS)
    read_only(tmp_path / "checkpoints")
    assert find(tmp_path).step == 1


@pytest.mark.program
def test_a_second_run_in_a_folder_names_the_one_that_has_it(tmp_path):
    with FolderLock(tmp_path):
        done = subprocess.run([sys.executable, "-c", RUN, str(tmp_path)], capture_output=True, text=True, check=True)
        assert f"in use by another run: process {os.getpid()} on {os.uname().nodename}" in done.stdout
    done = subprocess.run([sys.executable, "-c", RUN, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    with pytest.raises(FolderInUse), FolderLock(tmp_path), FolderLock(tmp_path):
        pass


def test_a_clock_that_goes_back_changes_nothing(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path, keep_last=2)
    hours = iter(range(100, 0, -1))

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.datetime(2026, 1, 1, tzinfo=tz) + datetime.timedelta(hours=next(hours))

    monkeypatch.setattr(content, "datetime", Clock)
    monkeypatch.setattr(time, "time", lambda: float(next(hours)))
    for step in (1, 2, 3):
        path = checkpoints.save(step, epoch=0, models=MODELS, metric=float(step))
        for entry in (path, *path.iterdir()):
            os.utime(entry, (1e9 - step, 1e9 - step))
    times = [find(tmp_path / f"step-00000{step}").manifest.time for step in (1, 2, 3)]
    assert times == sorted(times, reverse=True)
    assert checkpoints.newest().step == find(tmp_path).step == 3
    assert sorted(path.name for path in tmp_path.glob("step-*")) == ["step-000001", "step-000002", "step-000003"]
