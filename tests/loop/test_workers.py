"""Workers of a loader: they die, end on request, and do not outlive their parent."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset

from truestep import Run
from truestep.errors import WorkerDied
from truestep.loop.loading.loader import Loader


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Deadly(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_an_error_that_teaches():
    loader = Loader(Deadly(), batch_size=4, num_workers=1, name="fit")
    with pytest.raises(WorkerDied, match="a worker of loader 'fit' was lost: DataLoader worker") as caught:
        list(loader)
    assert "num_workers=0" in caught.value.remedy


class Sleepy(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        time.sleep(1)


@pytest.mark.program
def test_a_worker_that_does_not_answer_in_time_is_an_error():
    with pytest.raises(WorkerDied, match=r"timed out after 0\.2 seconds"):
        list(Loader(Sleepy(), batch_size=1, num_workers=1, timeout=0.2))


class Terminated(Dataset):
    def __init__(self, stays_s):
        self.stays_s = stays_s

    def __len__(self):
        return 2

    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(self.stays_s)
        return index


@pytest.fixture
def handled():
    """The main process handles SIGTERM, and its workers inherit that."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.skipif(not hasattr(signal, "sigwaitinfo"), reason="the sender of a signal is unknown here")
def test_only_the_main_process_ends_a_worker(handled):
    (batch,) = Loader(Terminated(0), batch_size=2, num_workers=1).epoch(0)
    assert batch.tolist() == [0, 1]


@pytest.mark.program
def test_a_handler_of_the_main_process_does_not_keep_a_worker_alive(handled, monkeypatch):
    monkeypatch.setattr("torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 0.2)  # s that torch waits for its end
    others = set(multiprocessing.active_children())
    with pytest.raises(WorkerDied):
        list(Loader(Terminated(600), batch_size=2, num_workers=1, timeout=0.5))
    for worker in set(multiprocessing.active_children()) - others:
        worker.join(60)
        assert worker.exitcode == 0


INTERRUPTED = """
import os, signal, time
from torch.utils.data import Dataset
from truestep.loop.loading.loader import Loader

class Slow(Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        time.sleep(0.01)
        return os.getpid()

try:
    for count, batch in enumerate(Loader(Slow(), batch_size=2, num_workers=2).epoch(0)):
        print(batch[0].item(), flush=True)
        if count == 3:
            os.killpg(0, signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.program
def test_ctrl_c_goes_to_the_main_process_alone_and_leaves_no_worker():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, start_new_session=True, timeout=600
    )
    *pids, last = done.stdout.split()
    assert (done.returncode, done.stderr, last) == (0, "", "interrupted")
    assert len(set(pids)) == 2
    assert not [pid for pid in pids if alive(int(pid))]


OBEYED_LATER = INTERRUPTED.replace(
    "        if count == 3:", "        signal.signal(signal.SIGINT, lambda *_: None)\n        if count == 3:"
).replace("1000", "20")


def test_a_program_that_handles_ctrl_c_keeps_its_workers():
    done = subprocess.run(
        [sys.executable, "-c", OBEYED_LATER], capture_output=True, text=True, start_new_session=True, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.split()) == 10


class Counted(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index


@pytest.fixture
def workers():
    """The workers that were started since the test began."""
    others = set(multiprocessing.active_children())
    return lambda: [child for child in multiprocessing.active_children() if child not in others]


@pytest.mark.parametrize("batches", [1, 2], ids=["left", "ended"])
def test_a_loader_without_a_reference_ends_its_workers(batches, workers):
    """At once, and not when Python looks for cycles: there torch's iterator cannot tell its workers any more."""
    gc.disable()
    try:
        loader = Loader(Counted(), batch_size=4, num_workers=2)
        epoch = loader.epoch(0)
        for _ in range(batches):
            next(epoch)
        assert len(workers()) == 2
        del loader, epoch
        assert not workers()
    finally:
        gc.enable()


def test_the_workers_of_a_run_end_with_it(workers):
    run = Run(device="cpu", max_epochs=1)
    model = run.model(nn.Linear(1, 1))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    loader = run.loader(Counted(), batch_size=4, num_workers=1)
    with run:
        for _ in run.epochs():
            for x in run.train(loader, model):
                run.step(model(x[:, None].float()).mean())
        assert len(workers()) == 1
    assert not workers()
    assert sorted(torch.cat(list(loader.epoch(1))).tolist()) == list(range(8)), "a loader can be read again"
    loader.close()


STUCK = """
import os, time
from torch.utils.data import Dataset
from truestep.loop.loading.loader import Loader

class Stuck(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        os.write(1, f"{os.getpid()}\\n".encode())  # at once: lines of two workers must not mix
        time.sleep(600)

list(Loader(Stuck(), batch_size=1, num_workers=2).epoch(0))
"""


@pytest.mark.program
@pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="workers wait for nothing but the next request")
def test_no_worker_outlives_a_killed_program_even_in_the_middle_of_a_sample():
    program = subprocess.Popen([sys.executable, "-c", STUCK], stdout=subprocess.PIPE, text=True)
    assert len({int(program.stdout.readline()) for _ in range(2)}) == 2
    program.kill()
    program.wait()
    with program.stdout as held_by_the_workers:
        assert held_by_the_workers.read() == "", "and it ends: a test that hangs here has found a worker"
