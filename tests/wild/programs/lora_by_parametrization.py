"""Healthy: LoRA: a base trained first, then frozen; low-rank deltas by parametrization (one factor zero), switched off and on, merged."""
from functools import partial

import torch
import torch.nn as nn
import torch.nn.utils.parametrize as parametrize
from sklearn.datasets import load_digits

torch.manual_seed(0)
torch.set_num_threads(1)


class LoRAParametrization(nn.Module):
    def __init__(self, fan_in, fan_out, rank=4, alpha=8):
        super().__init__()
        self.lora_A = nn.Parameter(torch.empty(rank, fan_in))
        self.lora_B = nn.Parameter(torch.zeros(fan_out, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=5**0.5)
        self.scaling, self.enabled = alpha / rank, True

    def forward(self, W):
        return W + self.scaling * self.lora_B @ self.lora_A if self.enabled else W


def apply_to_lora(fn):
    return lambda layer: fn(layer) if isinstance(layer, LoRAParametrization) else None


def add_lora(layer, rank):
    if isinstance(layer, nn.Linear):
        parametrize.register_parametrization(layer, "weight", LoRAParametrization(layer.in_features, layer.out_features, rank))


def get_lora_params(model):
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            yield parameter


def fit(model, parameters, x, y, epochs, lr):
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.0)
    model.train()
    for _ in range(epochs):
        for index in torch.randperm(len(x)).split(50):
            loss = nn.functional.cross_entropy(model(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return round((model(x).argmax(1) == y).float().mean().item(), 3)


digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
rotated = x.view(-1, 8, 8).transpose(1, 2).flatten(1)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
fit(model, model.parameters(), x[:1000], y[:1000], 6, 3e-3)
print("base:", accuracy(model, x[1400:], y[1400:]), "on transposed digits", accuracy(model, rotated[1400:], y[1400:]))

model.requires_grad_(False)
model.apply(partial(add_lora, rank=4))
fit(model, list(get_lora_params(model)), rotated[:600], y[:600], 8, 1e-2)
print("with the delta:", accuracy(model, rotated[1400:], y[1400:]))
model.apply(apply_to_lora(lambda layer: setattr(layer, "enabled", False)))
print("delta off:", accuracy(model, x[1400:], y[1400:]))
model.apply(apply_to_lora(lambda layer: setattr(layer, "enabled", True)))
for module in model:
    if parametrize.is_parametrized(module):
        parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)
print("merged:", accuracy(model, rotated[1400:], y[1400:]), "parameters", sum(p.numel() for p in model.parameters()))
