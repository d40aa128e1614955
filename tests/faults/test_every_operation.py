"""A process that dies before any one of the operations of a save on the disk loses nothing that was finished."""

import os
import shutil
from collections import Counter

import pytest
import torch

from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.disk.files import DurableFile

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # python 3.12 names all threads
OPERATIONS = ["fsync", "rename", "replace", "unlink", "rmdir", "mkdir", "symlink"]
DIED = 77


def save(checkpoints, step, content):
    checkpoints.save(step, epoch=0, models={"model": {"weight": torch.ones(3)}}, state={"is": content}, metric=-step)


def dying_before(number, folder, step):
    """Save in a child that dies before operation `number`; return that operation's name, "" if it came to the end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with os.fdopen(reading) as pipe:
            name = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == (DIED if name else 0)
        return name
    try:
        checkpoints = Checkpoints(folder, keep_last=2)
        left = number

        def counted(name, call):
            def counting(*arguments, **options):
                nonlocal left
                left -= 1
                if left < 0:
                    os.write(writing, name.encode())
                    os._exit(DIED)
                return call(*arguments, **options)

            return counting

        for name in OPERATIONS:
            setattr(os, name, counted(name, getattr(os, name)))
        DurableFile.write = counted("write", DurableFile.write)
        save(checkpoints, step, "new")
        os._exit(0)
    finally:
        os._exit(1)


@pytest.mark.program
@pytest.mark.parametrize(
    ("step", "kept"),
    [
        pytest.param(4, {"step-000003"}, id="a new one, and old ones go"),
        pytest.param(3, {"step-000003"}, id="the newest is replaced", marks=pytest.mark.slow),
        pytest.param(1, {"step-000001", "step-000003"}, id="an old one is replaced", marks=pytest.mark.slow),
    ],
)
def test_a_death_before_any_operation_loses_nothing(tmp_path, step, kept):
    died = Counter()
    checkpoints = Checkpoints(tmp_path / "before", keep_last=3)
    for earlier in (1, 2, 3):
        save(checkpoints, earlier, "old")
    for number in range(1000):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "before", folder, symlinks=True)
        name = dying_before(number, folder, step)
        for path in folder.glob("step-*"):
            Checkpoint(path).verify()
        again = Checkpoints(folder, keep_last=2)
        steps = {path.name for path in folder.glob("step-*")}
        assert {path.name.partition("-")[0] for path in folder.iterdir()} <= {"step", "last", "best"}
        newest = again.newest()
        assert newest.manifest.save in (3, 4)
        assert newest.state() == {"is": "new" if newest.manifest.save == 4 else "old"}
        assert steps >= kept
        if not name:
            break
        died[name] += 1
    assert newest.manifest.save == 4
    assert newest.step == step
    assert died.total() > 20
    assert set(died) >= {"write", "fsync", "rename", "replace", "unlink", "rmdir", "symlink"}
