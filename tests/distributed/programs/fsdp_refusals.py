"""Loops that cannot train a divided model, on two ranks; prints the error of each as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

from truestep import Run
from truestep.errors import TrueStepError

torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.blocks = nn.Linear(4, 4), nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    def forward(self, x: torch.Tensor, count: int = 2) -> torch.Tensor:
        outputs = [self.first(x)]
        for block in self.blocks:
            outputs.append(block(outputs[-1]))
        return outputs[count].sum()

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x)


def optimizer_before_the_model(run: Run) -> None:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    run.model(net)
    run.optimizer(optimizer)


def lbfgs(run: Run) -> None:
    run.optimizer(torch.optim.LBFGS(run.model(Net()).parameters()))


def adafactor(run: Run) -> None:
    run.optimizer(torch.optim.Adafactor(run.model(Net()).parameters()))


class Normed(torch.optim.SGD):
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for p in group["params"]:
                p.data.norm().square_()
        return super().step(closure)


def optimizer_that_torch_cannot_step(run: Run) -> None:
    net = run.model(Net())
    run.optimizer(Normed(net.parameters(), lr=0.1))
    for _ in run.steps(1):
        try:
            run.step(net(torch.ones(2, 4)))
        except RuntimeError as error:
            raise TrueStepError("\n".join(error.__notes__)) from error


def sparse(run: Run) -> None:
    run.model(nn.Sequential(nn.Embedding(4, 2, sparse=True)))


def scalar(run: Run) -> None:
    net = Net()
    net.scale = nn.Parameter(torch.tensor(1.0))
    run.model(net)


def lazy(run: Run) -> None:
    run.model(nn.Sequential(nn.LazyLinear(2)))


def sharded_before(run: Run) -> None:
    run.model(fully_shard(Net()))


def wrong_block(run: Run) -> None:
    run.model(Net(), shard=nn.Conv2d)


def another_method(run: Run) -> None:
    run.model(Net()).encode(torch.ones(2, 4))


def a_part(run: Run) -> None:
    run.model(Net()).first(torch.ones(2, 4))


def average_of_a_part(run: Run) -> None:
    run.ema(run.model(Net()).first)


def a_block_that_one_rank_leaves_out(run: Run) -> None:
    net = run.model(Net())
    run.optimizer(torch.optim.SGD(net.parameters(), lr=0.1))
    for _ in run.steps(1):
        run.step(net(torch.ones(2, 4), 2 - run.rank))


def a_registered_method(run: Run) -> None:
    net = run.model(Net())
    register_fsdp_forward_method(net, "encode")
    net.encode(torch.ones(2, 4))


if __name__ == "__main__":
    cases: list[Callable[[Run], None]] = [
        optimizer_before_the_model, lbfgs, adafactor, optimizer_that_torch_cannot_step, sparse, scalar, lazy, sharded_before, wrong_block, another_method, a_part,
        average_of_a_part, a_block_that_one_rank_leaves_out, a_registered_method,
    ]  # fmt: skip
    distributed: Any = torch.distributed
    distributed.init_process_group("gloo")
    said = {}
    for case in cases:
        with Run(device="cpu", watch=False, progress=False, strategy="fsdp") as run:
            try:
                case(run)
                said[case.__name__] = ""
            except TrueStepError as error:
                said[case.__name__] = str(error)
            run.barrier()
    if distributed.get_rank() == 0:
        sys.stdout.write(json.dumps(said) + "\n")
    distributed.destroy_process_group()
