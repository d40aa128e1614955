"""MADE: masked linear layers with masks in buffers, binarised digits, bits sampled one by one; validation picks the best state."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class MaskedLinear(nn.Linear):
    def __init__(self, fan_in, fan_out, mask):
        super().__init__(fan_in, fan_out)
        self.register_buffer("mask", torch.tensor(mask, dtype=torch.float32))

    def forward(self, x):
        return F.linear(x, self.weight * self.mask, self.bias)


class MADE(nn.Module):
    def __init__(self, dim, hidden, rng):
        super().__init__()
        order_in = np.arange(dim)
        order_hidden = rng.integers(0, dim - 1, size=hidden)
        self.l1 = MaskedLinear(dim, hidden, order_hidden[:, None] >= order_in[None])
        self.l2 = MaskedLinear(hidden, dim, order_in[:, None] > order_hidden[None])

    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


def nll(model, x):
    return F.binary_cross_entropy_with_logits(model(x), x, reduction="sum") / len(x)


@torch.no_grad()
def generate(model, n, dim):
    x = torch.zeros(n, dim)
    for i in range(dim):
        x[:, i] = torch.bernoulli(torch.sigmoid(model(x)[:, i]))
    return x


rng = np.random.default_rng(0)
torch.manual_seed(0)
pixels = (load_digits().data > 8).astype("float32")
rng.shuffle(pixels)
train, valid, test = (torch.from_numpy(p) for p in np.split(pixels, [1200, 1500]))
model = MADE(64, 100, rng)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-5)
best, best_state, patience = float("inf"), None, 0
for epoch in range(40):
    model.train()
    for index in np.array_split(rng.permutation(len(train)), 12):
        optimizer.zero_grad()
        loss = nll(model, train[index])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        score = nll(model, valid).item()
    if score < best:
        best, best_state, patience = score, copy.deepcopy(model.state_dict()), 0
    else:
        patience += 1
        if patience == 3:
            break
model.load_state_dict(best_state)
with torch.no_grad():
    print(f"epochs {epoch + 1} validation {best:.3f} nats, test {nll(model, test).item():.3f}")
print("ink in samples", generate(model, 50, 64).mean().item(), "in data", train.mean().item())
