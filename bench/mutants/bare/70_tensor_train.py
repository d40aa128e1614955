"""Complete a 4-way tensor from 10 % of its entries with a tensor train; ALS-free, gradient only."""
import torch

gen = torch.Generator().manual_seed(2)
n, r = 12, 3
ranks = [1, r, r, r, 1]


def random_cores(scale):
    return [scale * torch.randn(ranks[k], n, ranks[k + 1], generator=gen) for k in range(4)]


def entries(cores, idx):
    out = cores[0][:, idx[:, 0]].permute(1, 0, 2)
    for k in range(1, 4):
        out = torch.bmm(out, cores[k][:, idx[:, k]].permute(1, 0, 2))
    return out[:, 0, 0]


truth = random_cores(0.75)
grid = torch.cartesian_prod(*[torch.arange(n)] * 4)
grid = grid[torch.randperm(len(grid), generator=gen)]
observed, hidden = grid[:4000], grid[4000:8000]
values = entries(truth, observed)
values = values + 0.01 * torch.randn(values.shape, generator=gen)
target = entries(truth, hidden)

cores = [c.requires_grad_() for c in random_cores(0.6)]
m = [torch.zeros_like(c) for c in cores]
v = [torch.zeros_like(c) for c in cores]
step = 0
while step < 1200:
    step += 1
    pick = torch.randint(len(observed), (500,), generator=gen)
    loss = (entries(cores, observed[pick]) - values[pick]).pow(2).mean()
    grads = torch.autograd.grad(loss, cores)
    lr = 0.02 * (1 - step / 1201) + 1e-4
    with torch.no_grad():                       # Adam, written out
        for c, g, a, b in zip(cores, grads, m, v):
            a.mul_(0.9).add_(g, alpha=0.1)
            b.mul_(0.999).addcmul_(g, g, value=0.001)
            c -= lr * (a / (1 - 0.9 ** step)) / ((b / (1 - 0.999 ** step)).sqrt() + 1e-8)
    if step % 300 == 0:
        with torch.no_grad():
            err = (entries(cores, hidden) - target).norm() / target.norm()
        print(f'step {step} batch mse {loss.item():.5f} relative error on hidden entries {err.item():.4f}')
