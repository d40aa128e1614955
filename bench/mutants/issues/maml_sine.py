# Model-agnostic meta-learning (MAML) on sine waves. The network is a function of a list of tensors.
import math

import torch

torch.manual_seed(0)

INNER_LR, INNER_STEPS = 0.05, 3
META_LR, META_ITERS, TASKS_PER_BATCH = 3e-3, 300, 4
K_SHOT = 10


def init_weights(hidden=32):
    shapes = [(1, hidden), (hidden,), (hidden, hidden), (hidden,), (hidden, 1), (1,)]
    ws = []
    for s in shapes:
        w = torch.randn(s) * math.sqrt(1.0 / s[0]) if len(s) == 2 else torch.zeros(s)
        ws.append(w.requires_grad_(True))
    return ws


def forward(ws, x):
    w1, b1, w2, b2, w3, b3 = ws
    h = torch.tanh(x @ w1 + b1)
    h = torch.tanh(h @ w2 + b2)
    return h @ w3 + b3


def mse(ws, x, y):
    return ((forward(ws, x) - y) ** 2).mean()


class SineTasks:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def uniform(self, lo, hi, *size):
        return lo + (hi - lo) * torch.rand(*size, generator=self.g)

    def sample(self):
        amplitude, phase = self.uniform(0.5, 3.0, 1), self.uniform(0.0, math.pi, 1)
        x_support, x_query = self.uniform(-5, 5, K_SHOT, 1), self.uniform(-5, 5, 2 * K_SHOT, 1)
        f = lambda x: amplitude * torch.sin(x - phase)
        return x_support, f(x_support), x_query, f(x_query)


def adapt(ws, x, y, steps=INNER_STEPS, second_order=True):
    fast = list(ws)
    for _ in range(steps):
        grads = torch.autograd.grad(mse(fast, x, y), fast, create_graph=second_order)
        fast = [w - INNER_LR * g for w, g in zip(fast, grads)]
    return fast


def meta_validate(ws, n_tasks=100):
    tasks, before, after = SineTasks(seed=777), 0.0, 0.0
    for _ in range(n_tasks):
        xs, ys, xq, yq = tasks.sample()
        fast = adapt(ws, xs, ys, second_order=False)
        with torch.no_grad():
            before += mse(ws, xq, yq).item()
            after += mse(fast, xq, yq).item()
    return before / n_tasks, after / n_tasks


meta_weights = init_weights()
meta_opt = torch.optim.Adam(meta_weights, lr=META_LR)
train_tasks = SineTasks(seed=1)

print('MAML, %d inner steps' % INNER_STEPS)
for it in range(1, META_ITERS + 1):
    meta_loss = 0.0
    for _ in range(TASKS_PER_BATCH):
        xs, ys, xq, yq = train_tasks.sample()
        fast = adapt(meta_weights, xs, ys)
        meta_loss = meta_loss + mse(fast, xq, yq) / TASKS_PER_BATCH
    meta_opt.zero_grad()
    meta_loss.backward()
    meta_opt.step()
    if it % 60 == 0:
        pre, post = meta_validate(meta_weights, n_tasks=40)
        print(f'iter {it}: query loss {meta_loss.item():.4f} | held-out tasks: '
              f'before {pre:.4f}, after adaptation {post:.4f}')

pre, post = meta_validate(meta_weights)
print(f'held-out tasks: mse before adaptation {pre:.4f}, after adaptation {post:.4f}')
