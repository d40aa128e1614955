import torch
from _state import tell
from torch import nn
from torch.optim import lr_scheduler as schedules

torch.manual_seed(0)
kinds = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, 1e-2, amsgrad=True),
    "fused": lambda p: torch.optim.Adam(p, torch.tensor(1e-2), fused=True),
    "adamw": lambda p: torch.optim.AdamW(p, 1e-2, foreach=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-2, centered=True, momentum=0.5),
    "adagrad": lambda p: torch.optim.Adagrad(p, 1e-2),
    "adadelta": lambda p: torch.optim.Adadelta(p),
    "nadam": lambda p: torch.optim.NAdam(p, 1e-2),
    "radam": lambda p: torch.optim.RAdam(p, 1e-2),
    "adamax": lambda p: torch.optim.Adamax(p, 1e-2),
    "asgd": lambda p: torch.optim.ASGD(p, 1e-2),
    "rprop": lambda p: torch.optim.Rprop(p, 1e-2),
}
plans = [
    lambda o: schedules.StepLR(o, 2),
    lambda o: schedules.OneCycleLR(o, 0.1, total_steps=12, cycle_momentum=False),
    lambda o: schedules.SequentialLR(
        o, [schedules.LinearLR(o, 0.1, total_iters=3), schedules.CosineAnnealingLR(o, 9)], milestones=[3]
    ),
    lambda o: schedules.ChainedScheduler([schedules.ConstantLR(o, 0.5, 2), schedules.ExponentialLR(o, 0.9)]),
    lambda o: schedules.CosineAnnealingWarmRestarts(o, 3),
    lambda o: schedules.LambdaLR(o, lambda step: 1 / (1 + step)),
]
for number, (name, build) in enumerate(kinds.items()):
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3))
    groups = [{"params": model[0].parameters(), "lr": 0.01}, {"params": model[1:].parameters()}]
    optimizer = build(groups)
    schedule = plans[number % len(plans)](optimizer)
    plateau = schedules.ReduceLROnPlateau(optimizer, patience=1) if number % 3 == 0 else None
    for step in range(12):
        if number % 2:
            optimizer.zero_grad(set_to_none=bool(step % 2))
        else:
            model.zero_grad()
        loss = nn.functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(0, 3, (8,)), label_smoothing=0.1)
        loss.backward()
        if step % 3 == 0:
            print(repr(nn.utils.clip_grad_norm_(model.parameters(), 0.5).item()))
        elif step % 3 == 1:
            nn.utils.clip_grad_value_(model.parameters(), 0.01)
        optimizer.step()
        schedule.step()
        if plateau is not None:
            plateau.step(loss.item())
        print(name, repr(loss.item()), [repr(float(group["lr"])) for group in optimizer.param_groups])
    tell(model, optimizer, schedule)
