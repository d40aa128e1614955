import gzip
import os
import numpy as np
import torch
import torch.nn.functional as F

torch.manual_seed(1)
base = os.environ['TRUESTEP_DATA'] + '/mnist/'


def idx(name, off):
    return np.frombuffer(gzip.open(base + name).read(), dtype=np.uint8, offset=off)


train_x = torch.from_numpy(idx('train5k-images-idx3-ubyte.gz', 16).reshape(-1, 784).astype('float32') / 255)[:4000]
train_y = torch.from_numpy(idx('train5k-labels-idx1-ubyte.gz', 8).astype('int64'))[:4000]
test_x = torch.from_numpy(idx('t10k-images-idx3-ubyte.gz', 16).reshape(-1, 784).astype('float32') / 255)[:1000]
test_y = torch.from_numpy(idx('t10k-labels-idx1-ubyte.gz', 8).astype('int64'))[:1000]

p = dict(w1=torch.randn(784, 100) * 0.05, b1=torch.zeros(100), w2=torch.randn(100, 10) * 0.1, b2=torch.zeros(10))
for v in p.values():
    v.requires_grad_()


def f(x):
    return torch.relu(x @ p['w1'] + p['b1']) @ p['w2'] + p['b2']


def attack(x, y, eps=0.1, steps=3):
    delta = torch.zeros_like(x, requires_grad=True)
    for _ in range(steps):
        loss = F.cross_entropy(f((x + delta).clamp(0, 1)), y)
        grad, = torch.autograd.grad(loss, delta)
        delta = (delta + 0.05 * grad.sign()).clamp(-eps, eps).detach().requires_grad_()
    return (x + delta).clamp(0, 1).detach()


def report(epoch):
    adv = attack(test_x, test_y)
    with torch.no_grad():
        clean = (f(test_x).argmax(1) == test_y).float().mean().item()
        robust = (f(adv).argmax(1) == test_y).float().mean().item()
    print(f'epoch {epoch}: clean {clean:.3f} robust {robust:.3f}')


opt = torch.optim.SGD(p.values(), lr=0.1, momentum=0.9)
for epoch in range(5):
    perm = torch.randperm(len(train_x))
    for i in range(0, len(train_x), 100):
        x, y = train_x[perm[i:i + 100]], train_y[perm[i:i + 100]]
        x_adv = attack(x, y)
        loss = 0.5 * F.cross_entropy(f(x), y) + 0.5 * F.cross_entropy(f(x_adv), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    report(epoch)
