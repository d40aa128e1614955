"""Functions of one step that are passed on as arguments, with the state in a dictionary."""

from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

State = dict[str, object]


def train_step(state: State, batch: tuple[Tensor, Tensor]) -> Tensor:
    model, optimizer = state["model"], state["optimizer"]
    model.train()
    x, y = batch
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


@torch.no_grad()
def eval_step(state: State, batch: tuple[Tensor, Tensor]) -> Tensor:
    model = state["model"]
    model.eval()
    x, y = batch
    return (model(x).argmax(-1) == y).float().mean()


def run(step: Callable[[State, tuple[Tensor, Tensor]], Tensor], state: State, batches: Iterable) -> float:
    values = [step(state, batch) for batch in batches]
    return torch.stack(values).mean().item()


def main(train_loader, val_loader):
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Dropout(), nn.Linear(128, 10))
    state = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)}
    for _ in range(10):
        run(train_step, state, train_loader)
        print(run(eval_step, state, val_loader))
