"""Exceptions at every seam, shown with the traceback that the program itself prints and the one at the end."""

import traceback

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(13)


class Broken(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise LookupError(f"sample {index}")


model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.1)


def freed():
    loss = model(torch.ones(1, 4)).exp().sum()
    loss.backward()
    loss.backward()


def closure():
    raise ArithmeticError("closure")


def hooked():
    handle = model.register_forward_hook(lambda *_: 1 / 0)
    try:
        model(torch.ones(1, 4))
    finally:
        handle.remove()


CASES = [
    lambda: nn.functional.cross_entropy(torch.randn(3, 4), torch.tensor([0, 1])),
    lambda: nn.functional.mse_loss(torch.randn(3, 4), torch.randn(5)),
    lambda: nn.CrossEntropyLoss()(torch.randn(3, 4), torch.tensor([0, 1, 9])),
    lambda: nn.functional.cross_entropy("a", "b"),
    lambda: torch.zeros(2).backward(),
    lambda: torch.zeros(2, requires_grad=True).backward(),
    lambda: torch.autograd.grad(torch.zeros(()), model.weight),
    freed,
    lambda: optimizer.step(closure),
    lambda: torch.optim.SGD([], 0.1),
    lambda: torch.optim.SGD(model.parameters(), -1),
    lambda: torch.optim.lr_scheduler.StepLR(None, 3),
    lambda: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer).step(),
    lambda: optimizer.add_param_group({"params": list(model.parameters())}),
    lambda: nn.utils.clip_grad_norm_(model.parameters(), "a"),
    lambda: nn.utils.clip_grad_norm_([torch.zeros(1)], 1.0, error_if_nonfinite=True, norm_type="x"),
    lambda: model.load_state_dict({"weight": torch.zeros(1)}),
    lambda: torch.load("no such file"),
    lambda: list(DataLoader(Broken(), 2)),
    lambda: torch.amp.GradScaler("cpu").step(optimizer),
    lambda: torch.amp.GradScaler("cpu").unscale_(optimizer),
    lambda: model.train("yes"),
    lambda: model(torch.ones(1, 5)),
    hooked,
]
for number, case in enumerate(CASES):
    try:
        result = case()
        print(number, "fine", type(result).__name__)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [(frame.name, frame.lineno, frame.line) for frame in frames if frame.filename == __file__]
        print(number, type(error).__name__, str(error).splitlines()[:1], own)
    optimizer.zero_grad()


def deep():
    try:
        model(torch.ones(1, 5))
    except RuntimeError as error:
        raise ValueError("in a chain") from error


deep()
