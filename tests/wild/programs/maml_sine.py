"""Healthy: MAML on sinusoids: inner updates with create_graph on functional weights, one outer step per batch of tasks."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SineModel(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.fc1 = nn.Linear(1, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, 1)

    def forward(self, x, params=None):
        if params is None:
            params = dict(self.named_parameters())
        x = torch.tanh(F.linear(x, params["fc1.weight"], params["fc1.bias"]))
        x = torch.tanh(F.linear(x, params["fc2.weight"], params["fc2.bias"]))
        return F.linear(x, params["fc3.weight"], params["fc3.bias"])


class SineTask:
    def __init__(self, gen):
        self.gen = gen
        self.amp = 0.5 + 1.5 * torch.rand(1, generator=gen).item()
        self.phase = math.pi * torch.rand(1, generator=gen).item()

    def sample(self, k):
        x = torch.rand(k, 1, generator=self.gen) * 4 - 2
        return x, self.amp * torch.sin(2 * x + self.phase)


def adapt(model, x, y, inner_lr, steps, second_order):
    fast = dict(model.named_parameters())
    for _ in range(steps):
        loss = F.mse_loss(model(x, fast), y)
        grads = torch.autograd.grad(loss, list(fast.values()), create_graph=second_order)
        fast = {name: w - inner_lr * g for (name, w), g in zip(fast.items(), grads)}
    return fast


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    gen = torch.Generator().manual_seed(0)
    model = SineModel()
    meta_opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for it in range(60):
        meta_opt.zero_grad()
        meta_loss = 0.0
        for _ in range(4):
            task = SineTask(gen)
            fast = adapt(model, *task.sample(10), inner_lr=0.05, steps=2, second_order=True)
            x_q, y_q = task.sample(10)
            meta_loss = meta_loss + F.mse_loss(model(x_q, fast), y_q)
        meta_loss = meta_loss / 4
        meta_loss.backward()
        meta_opt.step()
        if it % 20 == 0:
            print(f"iter {it}: meta loss {meta_loss.item():.3f}")

    before = after = 0.0
    for _ in range(10):
        task = SineTask(gen)
        x_s, y_s = task.sample(10)
        x_q, y_q = task.sample(50)
        fast = adapt(model, x_s, y_s, inner_lr=0.05, steps=2, second_order=False)
        with torch.no_grad():
            before += F.mse_loss(model(x_q), y_q).item() / 10
            after += F.mse_loss(model(x_q, fast), y_q).item() / 10
    print(f"new tasks: mse {before:.3f} before, {after:.3f} after two inner steps")


if __name__ == "__main__":
    main()
