"""Healthy: endless loaders: a cycle() generator and a try/next/StopIteration loader restarted by hand (semi-supervised)."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
torch.set_num_threads(1)


def cycle(dl):
    while True:
        for data in dl:
            yield data


def blobs(n):
    y = torch.randint(0, 3, (n,))
    return torch.tensor([[1.2, 0.0], [-0.6, 1.0], [-0.6, -1.0]])[y] + 0.4 * torch.randn(n, 2), y


labeled = TensorDataset(*blobs(60))
unlabeled = TensorDataset(blobs(900)[0])
test_x, test_y = blobs(500)

labeled_loader = DataLoader(labeled, batch_size=20, shuffle=True, drop_last=True)
unlabeled_loader = DataLoader(unlabeled, batch_size=60, shuffle=True, drop_last=True)

net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)

labeled_iter = cycle(labeled_loader)
unlabeled_iter = iter(unlabeled_loader)

for it in range(80):
    xl, yl = next(labeled_iter)
    try:
        (xu,) = next(unlabeled_iter)
    except StopIteration:
        unlabeled_iter = iter(unlabeled_loader)
        (xu,) = next(unlabeled_iter)

    sup = F.cross_entropy(net(xl), yl)
    # consistency: predictions of two noisy copies should agree
    log_p1 = F.log_softmax(net(xu + 0.1 * torch.randn_like(xu)), dim=1)
    log_p2 = F.log_softmax(net(xu + 0.1 * torch.randn_like(xu)), dim=1)
    cons = F.kl_div(log_p1, log_p2.detach(), reduction="batchmean", log_target=True)
    loss = sup + 0.5 * cons
    opt.zero_grad()
    loss.backward()
    opt.step()

with torch.no_grad():
    acc = (net(test_x).argmax(1) == test_y).float().mean().item()
print(f"sup {sup.item():.4f} cons {cons.item():.5f} test acc {acc:.4f}")
