"""Checkpoints written in another thread hold the state at the time of the request."""

import os
import subprocess
import sys
import threading

import pytest
import torch

from truestep.errors import DiskFull
from truestep.loop.checkpoint import content
from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.disk.writer_thread import Background
from truestep.loop.checkpoint.snapshot import Snapshot

EXITING = """
import sys, time
from pathlib import Path
import torch
from truestep.loop.checkpoint import content
from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.snapshot import Snapshot

write = content.write_tensors
def slow(*arguments):
    time.sleep(0.5)
    if sys.argv[2] == "fails":
        raise OSError(28, "No space left on device")
    write(*arguments)
content.write_tensors = slow
checkpoints = Checkpoints(Path(sys.argv[1]), asynchronous=True)
checkpoints.save(1, epoch=0, models={"model": {"weight": torch.ones(3)}})
print(len(list(Path(sys.argv[1]).glob("step-*"))))
"""


@pytest.fixture
def gate(monkeypatch):
    """Writing waits until the gate is opened."""
    opened = threading.Event()
    write = content.write_tensors

    def waiting(*arguments):
        assert opened.wait(30)
        write(*arguments)

    monkeypatch.setattr(content, "write_tensors", waiting)
    yield opened
    opened.set()


def test_training_goes_on_and_the_checkpoint_holds_what_was_there(tmp_path, gate):
    checkpoints = Checkpoints(tmp_path, asynchronous=True)
    weight, moment, counts = torch.zeros(3), torch.zeros(3), {"seen": [1]}
    path = checkpoints.save(
        1, epoch=0, models={"model": {"weight": weight}}, state={"moment": moment, "counts": counts}
    )
    weight += 1
    moment += 1
    counts["seen"].append(2)
    assert not path.exists()
    gate.set()
    checkpoints.wait()
    found = checkpoints.newest()
    assert found.model("model")["weight"].tolist() == [0, 0, 0]
    assert found.state()["moment"].tolist() == [0, 0, 0]
    assert found.state()["counts"] == {"seen": [1]}


def test_one_save_is_under_way_at_a_time(tmp_path, gate):
    checkpoints = Checkpoints(tmp_path, asynchronous=True)
    first = checkpoints.save(1, epoch=0, models={"model": {"weight": torch.ones(1)}})
    threading.Timer(0.2, gate.set).start()
    checkpoints.save(2, epoch=0, models={"model": {"weight": torch.ones(1)}})
    assert first.exists()
    checkpoints.wait()
    assert checkpoints.newest().step == 2


@pytest.mark.parametrize("where", ["wait", "save", "newest"])
def test_a_failure_is_raised_where_the_training_sees_it_once(tmp_path, monkeypatch, where):
    checkpoints = Checkpoints(tmp_path, asynchronous=True)
    models = {"model": {"weight": torch.ones(1)}}
    checkpoints.save(1, epoch=0, models=models)
    checkpoints.wait()

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(content, "write_tensors", full)
        checkpoints.save(2, epoch=0, models=models)
        with pytest.raises(DiskFull):
            {"wait": checkpoints.wait, "newest": checkpoints.newest}.get(
                where, lambda: checkpoints.save(3, epoch=0, models=models)
            )()
    checkpoints.wait()
    assert checkpoints.newest().step == 1
    checkpoints.save(4, epoch=0, models=models)
    assert checkpoints.newest().step == 4


def test_the_process_ends_after_the_checkpoint_is_written(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", EXITING, str(tmp_path), "works"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0"
    assert Checkpoints(tmp_path).newest().step == 1


def test_a_failure_without_a_waiting_caller_is_reported_at_exit(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", EXITING, str(tmp_path), "fails"], capture_output=True, text=True, check=False
    )
    assert "DiskFull: the checkpoint does not fit" in done.stderr
    assert Checkpoints(tmp_path).newest() is None


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # python 3.12 names all threads
def test_a_forked_child_does_not_wait_for_its_parents_checkpoint(tmp_path, gate):
    checkpoints = Checkpoints(tmp_path, asynchronous=True)
    checkpoints.save(1, epoch=0, models={"model": {"weight": torch.ones(1)}})
    child = os.fork()
    if child == 0:
        checkpoints.wait()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    gate.set()
    assert checkpoints.newest().step == 1


def test_a_job_begins_after_the_one_before(tmp_path):
    done = []
    background = Background("test")
    for number in range(5):
        background.start(lambda number=number: done.append(number))
    background.wait()
    background.wait()
    assert done == [0, 1, 2, 3, 4]


def test_copies_from_every_gpu_are_waited_for(monkeypatch):
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    snapshot = Snapshot(copies=True)
    snapshot._on_the_way = {torch.device("cuda", 0), torch.device("cuda", 1)}
    snapshot.finish()
    snapshot.finish()
    assert sorted(device.index for device in waited) == [0, 1]
