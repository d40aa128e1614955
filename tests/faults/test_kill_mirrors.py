"""A process that dies before any one of the operations on a remote storage leaves a whole checkpoint there."""

import os
import shutil
import uuid
from collections import Counter

import pytest
import torch
from fsspec.implementations.local import LocalFileSystem
from mirrors import mirrored, names, names_on_disk, objects, opened, save
from object_store import ObjectFileSystem, served
from torch import nn
from torch.utils.data import TensorDataset

from truestep import Run

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # python 3.12 names all threads
DIED = 77


@pytest.fixture(scope="module")
def server():
    with served() as url:
        yield url


class Count:
    """Ends the process before operation `number`, and tells its name to the parent."""

    def __init__(self, number, pipe):
        self.left, self.pipe = number, pipe

    def __call__(self, name):
        self.left -= 1
        if self.left < 0:
            os.write(self.pipe, name.encode())
            os._exit(DIED)


def count_requests(count):
    ObjectFileSystem.before = staticmethod(lambda method, key: count(method if "?" not in key else "LIST"))


def count_calls(count):
    """Count operations of a file system, on which a file is also seen while it is being written."""

    def counted(name, call):
        def counting(*arguments, **options):
            count(name)
            return call(*arguments, **options)

        return counting

    def half(source, target):
        with open(source, "rb") as read, open(target, "wb") as written:
            content = read.read()
            count("create")
            written.write(content[: len(content) // 2])
            written.flush()
            count("write half")
            written.write(content[len(content) // 2 :])

    shutil.copyfile = half
    for name in ("cat_file", "find", "rm_file", "get_file"):
        setattr(LocalFileSystem, name, counted(name, getattr(LocalFileSystem, name)))
    os.unlink = counted("unlink", os.unlink)


def dying_before(number, counting, action):
    """Run an action in a child that dies before operation `number`; return that operation's name, "" at the end."""
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
        counting(Count(number, writing))
        action()
        os._exit(0)
    finally:
        os._exit(1)


@pytest.mark.program
@pytest.mark.parametrize("kind", ["objects", pytest.param("file", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("step", "metric", "keep_last"),
    [
        pytest.param(4, None, 1, id="the only one goes"),
        pytest.param(3, None, 1, id="the only one is replaced", marks=pytest.mark.slow),
        pytest.param(4, 9.0, 2, id="a new one, and an old one goes", marks=pytest.mark.slow),
        pytest.param(4, -9.0, 2, id="a new best one, and two old ones go", marks=pytest.mark.slow),
        pytest.param(3, 9.0, 2, id="the newest is replaced", marks=pytest.mark.slow),
    ],
)
def test_a_death_before_any_operation_leaves_a_whole_checkpoint(tmp_path, server, kind, step, metric, keep_last):
    died = Counter()
    for number in range(1000):
        folder = tmp_path / f"{number}"
        url = f"file://{tmp_path}/mirror-{number}" if kind == "file" else f"{server}/bucket/{uuid.uuid4().hex}"
        with mirrored(folder, url, keep_last=keep_last) as checkpoints:
            for earlier in (1, 2, 3):
                save(checkpoints, earlier, "old", metric=None if metric is None else earlier)

        def action(folder=folder, url=url):
            checkpoints, mirror = opened(folder, url, "auto", keep_last=keep_last)
            mirror.wait()
            save(checkpoints, step, "new", metric=metric)
            mirror.close()

        name = dying_before(number, count_requests if kind == "objects" else count_calls, action)
        with mirrored(folder / "elsewhere", url, "auto", keep_last=keep_last) as again:
            newest = again.newest()
            assert newest.manifest.order in ((1, 3), (2, 4))
            is_new = newest.manifest.save == 4
            assert newest.state() == {"is": "new" if is_new else "old"}
            assert metric is None or again.best().step == (step if is_new and metric < 0 else 1)
        assert {path.split("/")[1] for path in objects(url) if "/" in path} == set(names(url)), "remains"
        with mirrored(folder, url, "auto", keep_last=keep_last) as here:
            assert here.newest().manifest.save in (3, 4)
        here.prune()  # as the next save does, if the process died before it had removed old ones from the disk
        assert names(url) == names_on_disk(here)
        if not name:
            break
        died[name] += 1
    assert is_new
    assert died.total() > 20
    assert set(died) >= ({"LIST", "GET", "PUT", "DELETE"} if kind == "objects" else {"create", "write half", "unlink"})


def train(out, mirror=None):
    """Train, and return the weights and the log."""
    torch.set_num_threads(1)
    x = torch.randn(24, 6, generator=torch.Generator().manual_seed(5))
    settings = {"seed": 3, "max_epochs": 2, "device": "cpu", "watch": False, "progress": False, "keep_last": 1}
    with Run(out=out, mirror=mirror, resume="auto", save_every_n_steps=3, **settings) as run:
        loader = run.loader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4, shuffle=True)
        model = run.model(nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.Linear(8, 1)))
        run.optimizer(torch.optim.AdamW(model.parameters(), lr=1e-2))
        for epoch in run.epochs():
            for inputs, targets in run.train(loader, model):
                loss = (model(inputs) - targets).square().mean()
                run.step(loss)
                run.log({"loss": loss})
            run.save(-epoch)
    return {name: value.tolist() for name, value in model.state_dict().items()}, (out / "metrics.jsonl").read_text()


@pytest.mark.program
@pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_a_training_that_lost_its_disk_goes_on_from_the_mirror_to_the_same_weights(tmp_path, server, every):
    whole = train(tmp_path / "whole")
    resumed = Counter()
    for number in range(0, 1000, every):
        folder, url = tmp_path / f"{number}", f"{server}/bucket/{uuid.uuid4().hex}"
        name = dying_before(number, count_requests, lambda folder=folder, url=url: train(folder, url))
        found = names(url)
        shutil.rmtree(folder, ignore_errors=True)
        assert train(folder, url) == whole
        resumed[found[0].split("-")[1] if found else "none"] += 1
        if not name:
            break
    assert len(resumed) > 2, "checkpoints of several steps were resumed"
