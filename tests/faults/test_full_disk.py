"""A disk that is full, or fills while a checkpoint is written, costs that checkpoint and nothing else."""

import subprocess
import sys

import pytest
import torch

from truestep.errors import DiskFull
from truestep.loop import checkpoint_files
from truestep.loop.checkpoints import Checkpoints

LIMITED = """
import resource, sys
from pathlib import Path
import torch
from truestep.errors import DiskFull
from truestep.loop.checkpoints import Checkpoints

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
    monkeypatch.setattr(checkpoint_files, "require_space", lambda *_: None)  # as if another program filled it
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
