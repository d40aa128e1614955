"""Files and data that several ranks share: found where every rank runs the line, quiet where one is chosen."""

import pytest

from truestep.lint import lint

TEXT = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def train(rank, folder):
    dist.init_process_group("nccl", rank=rank, world_size=2)
    data = TensorDataset(torch.randn(100, 4), torch.randint(3, (100,)))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model = DistributedDataParallel(nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        torch.save(model.module.state_dict(), f"{folder}/last.pt")
    dist.destroy_process_group()


mp.spawn(train, args=("runs",), nprocs=2)
"""
SAVE = '        torch.save(model.module.state_dict(), f"{folder}/last.pt")\n'


def found(text):
    return {one.rule for one in lint(text)}


def test_both_failures_are_found_with_high_confidence():
    one, other = lint(TEXT)
    assert (one.rule, one.primary.site.line) == ("ranks-see-same-data", 13)
    assert (other.rule, other.primary.site.line) == ("saved-by-every-rank", 21)
    assert {one.confidence.value, other.confidence.value} == {"high"}


@pytest.mark.parametrize(
    "save",
    [
        '        if rank == 0:\n            torch.save(model.state_dict(), "last.pt")\n',
        '        if is_main_process():\n            torch.save(model.state_dict(), "last.pt")\n',
        '        if rank:\n            continue\n        torch.save(model.state_dict(), "last.pt")\n',
        '        torch.save(model.state_dict(), f"{folder}/{rank}.pt")\n',
        '        path = f"{folder}/rank-{rank}.pt"\n        torch.save(model.state_dict(), path)\n',
        "        keep(model)\n",
    ],
    ids=["rank", "main", "left", "own-file", "own-path", "elsewhere"],
)
def test_save_of_one_rank_is_quiet(save):
    assert "saved-by-every-rank" not in found(TEXT.replace(SAVE, save))


def test_function_that_saves_is_judged_by_its_callers():
    function = "def keep(model):\n    torch.save(model.state_dict(), 'last.pt')\n\n\ndef train("
    text = TEXT.replace("def train(", function).replace(SAVE, "        keep(model)\n")
    assert found(text) == {"ranks-see-same-data", "saved-by-every-rank"}
    guarded = text.replace("        keep(model)\n", "        if rank == 0:\n            keep(model)\n")
    assert found(guarded) == {"ranks-see-same-data"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("shuffle=True)", "sampler=DistributedSampler(data))"),
        ("torch.randn(100, 4)", "torch.randn(100, 4)[rank::2]"),
        ("data = TensorDataset(", "torch.manual_seed(rank)\n    data = TensorDataset("),
        ("data = TensorDataset(", "data = part_of("),
        ("model = DistributedDataParallel(nn.Linear(4, 3))", "model = nn.Linear(4, 3)"),
        ("world_size=2", "world_size=1"),
    ],
    ids=["sampler", "slice", "seed", "unknown", "not-wrapped", "one-rank"],
)
def test_divided_data_are_quiet(old, new):
    assert "ranks-see-same-data" not in found(TEXT.replace(old, new))
