import math
import torch
from sklearn.datasets import make_moons


def net_init(n_in, hidden, n_out):
    return [torch.randn(n_in, hidden) / n_in ** 0.5, torch.zeros(hidden),
            torch.randn(hidden, hidden) / hidden ** 0.5, torch.zeros(hidden),
            torch.zeros(hidden, n_out), torch.zeros(n_out)]


def net(p, x):
    h = torch.tanh(x @ p[0] + p[1])
    h = torch.tanh(h @ p[2] + p[3])
    return h @ p[4] + p[5]


def coupling(p, x, flip):
    a, b = x[:, :1], x[:, 1:]
    if flip:
        a, b = b, a
    s, t = net(p, a).chunk(2, dim=1)
    s = torch.tanh(s)
    b = b * s.exp() + t
    return (torch.cat([b, a], 1) if flip else torch.cat([a, b], 1)), s.sum(1)


def inverse(layers, z):
    for i in reversed(range(len(layers))):
        a, b = (z[:, 1:], z[:, :1]) if i % 2 else (z[:, :1], z[:, 1:])
        s, t = net(layers[i], a).chunk(2, dim=1)
        b = (b - t) * torch.exp(-torch.tanh(s))
        z = torch.cat([b, a], 1) if i % 2 else torch.cat([a, b], 1)
    return z


def log_prob(layers, x):
    logdet = torch.zeros(len(x))
    for i, p in enumerate(layers):
        x, ld = coupling(p, x, i % 2 == 1)
        logdet = logdet + ld
    return -0.5 * x.pow(2).sum(1) - math.log(2 * math.pi) + logdet


torch.manual_seed(0)
data, _ = make_moons(2000, noise=0.06, random_state=0)
data = torch.tensor(data, dtype=torch.float32)
train, test = data[:1600], data[1600:]
mu, sd = train.mean(0), train.std(0)
train, test = (train - mu) / sd, (test - mu) / sd

layers = [net_init(1, 32, 2) for _ in range(6)]
flat = [w.requires_grad_() for layer in layers for w in layer]
opt = torch.optim.Adam(flat, lr=2e-3)
for step in range(401):
    idx = torch.randint(len(train), (200,))
    loss = -log_prob(layers, train[idx]).mean()
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(flat, 5.0)
    opt.step()
    if step % 100 == 0:
        with torch.no_grad():
            print(f'step {step} train nll {loss.item():.3f} test nll {-log_prob(layers, test).mean().item():.3f}')
with torch.no_grad():
    sample = inverse(layers, torch.randn(500, 2)) * sd + mu
    print('sample mean', [round(v, 2) for v in sample.mean(0).tolist()])
