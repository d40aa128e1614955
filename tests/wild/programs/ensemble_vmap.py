"""Healthy: an ensemble trained at once: stack_module_state, vmap over models, one optimizer over the stacked parameters."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch.func import functional_call, stack_module_state, vmap

torch.manual_seed(0)
torch.set_num_threads(1)

wine = load_wine()
x = torch.tensor(StandardScaler().fit_transform(wine.data), dtype=torch.float32)
y = torch.tensor(wine.target)
order = torch.randperm(len(x))
x_train, y_train, x_test, y_test = x[order[:120]], y[order[:120]], x[order[120:]], y[order[120:]]

models = [nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 3)) for _ in range(6)]
params, buffers = stack_module_state(models)
base_model = copy.deepcopy(models[0]).to("meta")


def fmodel(params, buffers, x):
    return functional_call(base_model, (params, buffers), (x,))


optimizer = torch.optim.Adam(params.values(), lr=1e-2)
for epoch in range(60):
    # every member has its own bootstrap sample
    index = torch.randint(0, len(x_train), (6, 64))
    logits = vmap(fmodel)(params, buffers, x_train[index])
    loss = F.cross_entropy(logits.flatten(0, 1), y_train[index].flatten(), reduction="none").view(6, 64).mean(1)
    optimizer.zero_grad()
    loss.sum().backward()
    optimizer.step()
print("losses of the members", [round(v, 3) for v in loss.tolist()])

with torch.no_grad():
    probabilities = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, x_test).softmax(-1)
single = (probabilities.argmax(-1) == y_test).float().mean(1)
print(f"accuracy: members {single.mean():.3f}, ensemble {(probabilities.mean(0).argmax(-1) == y_test).float().mean():.3f}")
