"""Folds trained by a pool of one worker thread while the main thread evaluates, then a timer thread reads the weights; everything in turn."""
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

torch.manual_seed(0)
X = torch.randn(300, 5)
Y = (X[:, 0] * X[:, 1] > 0).float()


def fold(k):
    torch.manual_seed(k)
    rows = torch.arange(300) % 3 != k
    net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    x, y = X[rows], Y[rows]
    for epoch in range(8):
        for i in torch.randperm(len(x)).split(25):
            opt.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(net(x[i]).squeeze(1), y[i])
            loss.backward()
            opt.step()
    return net, loss.item()


with ThreadPoolExecutor(max_workers=1) as pool:
    for k in range(3):
        net, loss = pool.submit(fold, k).result()
        net.eval()
        with torch.no_grad():
            held = torch.arange(300) % 3 == k
            print(k, f"{loss:.4f}", f"{((net(X[held]).squeeze(1) > 0) == Y[held].bool()).float().mean():.3f}")
print("main thread", round(fold(7)[1], 4))
norms = []
watcher = threading.Thread(target=lambda: norms.extend(p.norm().item() for p in net.parameters()))
watcher.start()
watcher.join()
print([round(n, 3) for n in norms])
