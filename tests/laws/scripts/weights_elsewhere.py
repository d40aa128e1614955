"""Weights that are not the model's own attributes: stacked for vmap, given to functional_call, parametrized, assigned."""

import copy

import torch
from _state import digest, tell
from torch import nn
from torch.func import functional_call, grad, grad_and_value, stack_module_state, vmap
from torch.nn.utils import parametrizations, parametrize, stateless

torch.manual_seed(4)
x, y = torch.randn(3, 10, 4), torch.randn(3, 10, 1)


def make():
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))


def steps(model, count=4):
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(count):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[0]), y[0])
        loss.backward()
        optimizer.step()
    print(repr(loss.item()), optimizer.state_dict()["state"].keys())
    return optimizer


models = [make() for _ in range(3)]
steps(models[0])
skeleton = copy.deepcopy(models[0]).to("meta")
weights, buffers = stack_module_state(models)


def loss_of(weights, buffers, x, y):
    return nn.functional.mse_loss(functional_call(skeleton, (weights, buffers), (x,)), y)


optimizer = torch.optim.SGD(list(weights.values()), 0.1)
for _ in range(30):
    optimizer.zero_grad()
    losses = vmap(loss_of)(weights, buffers, x, y)
    losses.sum().backward()
    optimizer.step()
    print([repr(loss) for loss in losses.tolist()])
plain = {name: value.detach() for name, value in weights.items()}
for _ in range(20):
    gradients, losses = vmap(grad_and_value(loss_of))(plain, buffers, x, y)
    plain = {name: value - 0.1 * gradients[name] for name, value in plain.items()}
each = vmap(grad(loss_of), in_dims=(None, None, 0, 0))({n: v[0] for n, v in plain.items()}, {}, x[0][:, None], y[0])
print(digest(plain), digest(each), digest(losses))
tell(*models)

model = make()
with torch.no_grad():
    other = {name: value * 2 for name, value in model.named_parameters()}
print(digest(stateless.functional_call(model, other, (x[0],))))
held = set(model.parameters())
steps(model)
model.load_state_dict(other, assign=True)
print([p in held for p in model.parameters()])
steps(model)
blank = copy.deepcopy(model).to("meta").to_empty(device="cpu")
blank.load_state_dict(model.state_dict())
steps(blank)
parametrizations.weight_norm(model[0])
parametrizations.spectral_norm(model[2])
steps(model)
parametrizations.orthogonal(blank[0])
steps(blank)
for layer in (model[0], model[2], blank[0]):
    with parametrize.cached():
        print(digest(layer.weight), parametrize.is_parametrized(layer))
    parametrize.remove_parametrizations(layer, "weight")
steps(model)
steps(blank)
nn.utils.weight_norm(blank[2])
steps(blank)
nn.utils.remove_weight_norm(blank[2])
vector = nn.utils.parameters_to_vector(blank.parameters())
nn.utils.vector_to_parameters(vector * 1.5, blank.parameters())
steps(blank)
with torch.device("meta"):
    empty = make()
try:
    empty.load_state_dict(model.state_dict(), assign=True)
    steps(empty)
finally:
    tell(model, blank, empty)
