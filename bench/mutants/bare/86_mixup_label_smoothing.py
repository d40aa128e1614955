import gzip
import os
import numpy as np
import torch

torch.manual_seed(0)
np_load = lambda f, off: np.frombuffer(gzip.open(os.path.join(os.environ['TRUESTEP_DATA'], 'mnist', f)).read(), np.uint8, offset=off)
x = torch.from_numpy(np_load('train5k-images-idx3-ubyte.gz', 16).reshape(-1, 784).astype(np.float32) / 255)
y = torch.from_numpy(np_load('train5k-labels-idx1-ubyte.gz', 8).astype(np.int64))
x_train, y_train, x_valid, y_valid = x[:4000], y[:4000], x[4000:], y[4000:]
soft = torch.full((4000, 10), 0.1 / 10)
soft[torch.arange(4000), y_train] += 0.9

layers = [[torch.randn(a, b) * (2 / a) ** 0.5, torch.zeros(b)] for a, b in ((784, 96), (96, 64), (64, 10))]
weights = [t.requires_grad_() for l in layers for t in l]


def f(v):
    for i, (w, b) in enumerate(layers):
        v = torch.addmm(b, v, w)
        v = torch.relu(v) if i < 2 else v
    return v


def soft_cross_entropy(logits, target):
    return -(target * logits.log_softmax(1)).sum(1).mean()


beta = torch.distributions.Beta(0.4, 0.4)
total_steps, warmup = 5 * 40, 20
opt = torch.optim.SGD(weights, lr=0.08, momentum=0.9, nesterov=True)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) / warmup, max(0.0, (total_steps - s) / (total_steps - warmup))))
for epoch in range(5):
    order = torch.randperm(4000)
    for i in range(40):
        rows = order[i * 100:(i + 1) * 100]
        partner = rows[torch.randperm(100)]
        lam = beta.sample().item()
        mixed_x = lam * x_train[rows] + (1 - lam) * x_train[partner]
        mixed_y = lam * soft[rows] + (1 - lam) * soft[partner]
        loss = soft_cross_entropy(f(mixed_x), mixed_y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
    with torch.no_grad():
        out = f(x_valid)
        nll = torch.nn.functional.cross_entropy(out, y_valid).item()
        acc = (out.argmax(1) == y_valid).float().mean().item()
    print(f'epoch {epoch} mixed loss {loss.item():.3f} valid nll {nll:.3f} valid acc {acc:.3f}')
