"""Warnings keep their file and line: torch takes them from the stack."""

import warnings

import torch
from torch import nn
from torch.optim import lr_scheduler as schedules

warnings.simplefilter("always")


def shown(*, category=Warning):
    return warnings.catch_warnings(record=True, action="always", category=category)


model = nn.Linear(4, 2)
weight = model.weight
CASES = {
    "duplicate parameters": lambda: torch.optim.SGD([{"params": [weight, weight]}], 0.1),
    "duplicate group": lambda: torch.optim.SGD([model.bias], 0.1).add_param_group({"params": [weight, weight]}),
    "schedule first": lambda: schedules.StepLR(torch.optim.SGD([weight], 0.1), 3).step(),
    "epoch argument": lambda: schedules.StepLR(torch.optim.SGD([weight], 0.1), 3).step(2),
    "restarts epoch": lambda: schedules.CosineAnnealingWarmRestarts(torch.optim.SGD([weight], 0.1), 3).step(2),
    "plateau epoch": lambda: schedules.ReduceLROnPlateau(torch.optim.SGD([weight], 0.1)).step(1.0, epoch=2),
    "plateau verbose": lambda: schedules.ReduceLROnPlateau(torch.optim.SGD([weight], 0.1)).get_last_lr(),
    "get_lr": lambda: schedules.StepLR(torch.optim.SGD([weight], 0.1), 3).get_lr(),
    "sequential": lambda: schedules.SequentialLR(
        o := torch.optim.SGD([weight], 0.1), [schedules.ConstantLR(o), schedules.StepLR(o, 2)], milestones=[2]
    ).step(2),
    "one cycle": lambda: schedules.OneCycleLR(torch.optim.SGD([weight], 0.1), 0.1, total_steps=3).step(),
    "broadcast": lambda: nn.functional.mse_loss(torch.zeros(3, 1), torch.zeros(3)),
    "broadcast module": lambda: nn.SmoothL1Loss()(torch.zeros(3, 1), torch.zeros(3)),
    "reduce": lambda: nn.functional.nll_loss(torch.zeros(2, 3), torch.tensor([0, 1]), size_average=False),
    "loss module": lambda: nn.CrossEntropyLoss(reduce=False),
    "create graph": lambda: (model(torch.ones(1, 4)) ** 2).sum().backward(create_graph=True),
    "empty clip": lambda: nn.utils.clip_grad_norm_((p for p in []), 1.0),
    "old clip": lambda: nn.utils.clip_grad_norm(model.parameters(), 1.0),
    "scaler": lambda: torch.cuda.amp.GradScaler(),
    "backward hook": lambda: nn.Sequential(nn.Flatten()).register_full_backward_hook(print),
    "non leaf grad": lambda: (weight * 2).grad,
    "softmax": lambda: nn.functional.softmax(torch.zeros(2, 2)),
    "softmax module": lambda: nn.Softmax()(torch.zeros(2, 2)),
    "log softmax in a model": lambda: nn.Sequential(model, nn.LogSoftmax())(torch.zeros(2, 4)),
    "workers": lambda: torch.utils.data.DataLoader([1], num_workers=64),
    "iterable": lambda: list(torch.utils.data.DataLoader(Short())),
    "checkpoint": lambda: torch.utils.checkpoint.checkpoint(model, torch.ones(1, 4)),
}


class Short(torch.utils.data.IterableDataset):
    def __len__(self):
        return 1

    def __iter__(self):
        return iter([torch.ones(1)] * 3)


import torch.utils.checkpoint  # noqa: E402

for name, case in CASES.items():
    with shown() as caught:
        try:
            case()
        except Exception as error:
            print(name, "raised", type(error).__name__)
    for one in caught:
        print(name, one.category.__name__, one.filename.rpartition("/torch/")[2], one.lineno, str(one.message)[:40])
schedules.StepLR(torch.optim.SGD([weight], 0.1), 3).step()
