import copy
import io
import pickle

import torch
from _state import digest, tell
from torch import nn
from torch.func import functional_call, grad, jacrev, vmap
from torch.fx import symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx

torch.manual_seed(21)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))
weights = {name: p.detach() for name, p in model.named_parameters()}


def loss_of(weights, x, y):
    return nn.functional.cross_entropy(functional_call(model, weights, (x[None],)), y[None])


each = vmap(grad(loss_of), in_dims=(None, 0, 0))(weights, x, y)
print(digest(each), digest(jacrev(model)(x[0])))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = model

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.net(x), y) + nn.functional.mse_loss(self.net(x)[:, 0], y.float())


scripted, traced = torch.jit.script(Head()), torch.jit.trace(model, x)
print(scripted.code, traced.code, digest([scripted(x, y), traced(x)]))
print(symbolic_trace(model).code, make_fx(lambda x: model(x))(x).code)
exported = torch.export.export(model, (x,))
print(exported.graph_module.code, digest(exported.module()(x)))
buffer = io.BytesIO()
torch.save({"model": model.state_dict(), "whole": len(pickle.dumps(copy.deepcopy(Head())))}, buffer)
buffer.seek(0)
print(digest(torch.load(buffer)))
tell(model)
