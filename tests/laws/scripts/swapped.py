"""Tensors that exchange contents: conversions of models, loads and swaps by hand, between steps and within them."""

import weakref

import torch
from _state import digest, tell
from torch import nn
from torch.nn.utils import parametrize
from torch.utils import swap_tensors

torch.manual_seed(3)
torch.__future__.set_swap_module_params_on_conversion(True)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
teacher = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
first, numbers = model.state_dict(), [id(p) for p in model.parameters()]
kept = {name: value.clone() for name, value in first.items()}


def step(again=True, clear=True):
    if clear:
        optimizer.zero_grad()
    x = torch.randn(6, 4, dtype=model[0].weight.dtype)
    out = model(x)
    loss = nn.functional.mse_loss(out, teacher.to(x.dtype)(x).detach())
    print(repr(loss.item()))
    loss.backward()
    del out, loss
    if again:
        optimizer.step()


for convert in (model.double, model.float, lambda: model.to(torch.float64), lambda: model.to("cpu", torch.float32)):
    step()
    convert()
    step(again=False)
    convert()
    optimizer.step()
    step(clear=False)
for round_ in range(120):
    step()
    if round_ in (90, 95):
        model.double()
        model.float()
model.half().float()
optimizer.zero_grad()
model.load_state_dict(kept)
step()
model.load_state_dict(dict(teacher.state_dict()), assign=True)
step()
optimizer.zero_grad()
for mine, theirs in zip(model.parameters(), teacher.parameters(), strict=True):
    swap_tensors(mine, theirs)
print(digest([p for p in teacher.parameters()]), [id(p) for p in model.parameters()] == numbers)
step()
parametrize.register_parametrization(model[0], "weight", nn.Softsign(), unsafe=True)
step()
parametrize.remove_parametrizations(model[0], "weight")
print(digest(first), digest(kept))
own = weakref.ref(model[0].weight)
for refused in (lambda: swap_tensors(own(), nn.Parameter(torch.ones(8, 4))), model.double):
    try:
        refused()
    except RuntimeError as error:
        print(error, "from", error.__cause__)
del own
model.float()
outputs = model[0](torch.ones(2, 4, dtype=model[0].weight.dtype))
model[0].double()
try:
    outputs.sum().backward()
except RuntimeError as error:
    print(error)
tell(model, teacher, optimizer)
torch.utils.swap_tensors(teacher[0].weight, torch.ones(2).requires_grad_())
print(type(teacher[0].weight))
model.to_empty(device="meta")
teacher.to(torch.float32).to("meta")
print([str(p.device) for p in (*model.parameters(), *teacher.parameters())])
nn.Linear(2, 2).to_empty(device="cpu").double()
