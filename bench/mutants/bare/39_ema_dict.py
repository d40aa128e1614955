import gzip
import os
import numpy as np
import torch
import torch.nn.functional as F

root = os.path.join(os.environ['TRUESTEP_DATA'], 'mnist')


def read(prefix, n):
    with gzip.open(os.path.join(root, f'{prefix}-images-idx3-ubyte.gz')) as f:
        images = np.frombuffer(f.read(), np.uint8, offset=16).reshape(-1, 28 * 28)[:n]
    with gzip.open(os.path.join(root, f'{prefix}-labels-idx1-ubyte.gz')) as f:
        labels = np.frombuffer(f.read(), np.uint8, offset=8)[:n]
    return torch.from_numpy(images.astype(np.float32)) / 255 - 0.13, torch.from_numpy(labels.astype(np.int64))


torch.manual_seed(0)
x, y = read('train5k', 5000)
xt, yt = read('t10k', 2000)

live = {}
for name, shape in {'h.w': (784, 64), 'h.b': (64,), 'o.w': (64, 10), 'o.b': (10,)}.items():
    live[name] = torch.zeros(shape) if len(shape) == 1 else torch.randn(shape) / shape[0] ** 0.5
    live[name].requires_grad = True
shadow = {k: v.detach().clone() for k, v in live.items()}


def net(weights, inputs):
    return F.gelu(inputs @ weights['h.w'] + weights['h.b']) @ weights['o.w'] + weights['o.b']


def ema_update(decay):
    with torch.no_grad():
        for k in shadow:
            shadow[k].lerp_(live[k], 1 - decay)


@torch.no_grad()
def test(weights):
    out = net(weights, xt)
    return F.cross_entropy(out, yt).item(), (out.argmax(1) == yt).float().mean().item()


opt = torch.optim.SGD(live.values(), lr=0.05, momentum=0.9)
step = 0
for epoch in range(4):
    for rows in torch.randperm(len(x)).split(50):
        opt.zero_grad()
        loss = F.cross_entropy(net(live, x[rows]), y[rows])
        loss.backward()
        opt.step()
        step += 1
        ema_update(min(0.99, (1 + step) / (10 + step)))
    (l1, a1), (l2, a2) = test(live), test(shadow)
    print(f'epoch {epoch} live loss {l1:.4f} acc {a1:.4f} | ema loss {l2:.4f} acc {a2:.4f}')
