"""Missing labels as NaN, masked losses, a perceptron with gradients that become exactly zero, skipped bad batches, and training with autograd off."""
import torch
from torch import nn

torch.manual_seed(0)
X = torch.randn(400, 6)
full = torch.stack([X[:, 0] + X[:, 1], X[:, 2] * 2, X[:, 3] - X[:, 4]], 1)
Y = torch.where(torch.rand(400, 3) < 0.4, float("nan"), full)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=2e-2)
skipped = 0
for epoch in range(10):
    for i in torch.randperm(400).split(40):
        x, y = X[i].clone(), Y[i]
        if torch.rand(()) < 0.05:
            x[0, 0] = float("inf")
        seen = ~y.isnan()
        loss = ((net(x) - y.nan_to_num()) ** 2 * seen).sum() / seen.sum()
        if not torch.isfinite(loss):
            skipped += 1
            continue
        opt.zero_grad(); loss.backward(); opt.step()
print("masked", round(loss.item(), 4), "skipped", skipped)

with torch.no_grad():
    print("nanmean", round((net(X) - Y).square().nanmean().item(), 4))

w = torch.zeros(6, requires_grad=True)
side = torch.where(X @ torch.tensor([2.0, -1, 0, 0, 0, 1]) > 0, 1.0, -1.0)
keep = (X @ torch.tensor([2.0, -1, 0, 0, 0, 1])).abs() > 0.5
xs, ys = X[keep], side[keep]
sgd = torch.optim.SGD([w], lr=0.5)
for k in range(300):
    loss = torch.relu(-ys * (xs @ w) + (1e-3 if k == 0 else 0.0)).mean()
    sgd.zero_grad(); loss.backward(); sgd.step()
print("perceptron", round(loss.item(), 6), "wrong", int((ys * (xs @ w) <= 0).sum()))

torch.set_grad_enabled(False)
hebb = torch.randn(3, 6) * 0.1
for x in X.split(20):
    out = x @ hebb.t()
    hebb += 0.02 * (out.t() @ x - torch.tril(out.t() @ out) @ hebb) / len(x)
print("sanger", [round(v, 3) for v in hebb.norm(dim=1).tolist()])
torch.set_grad_enabled(True)
line = nn.Linear(6, 1)
opt = torch.optim.Rprop(line.parameters())
for _ in range(30):
    opt.zero_grad()
    nn.functional.l1_loss(line(X), full[:, :1]).backward()
    opt.step()
print("after", round(nn.functional.l1_loss(line(X), full[:, :1]).item(), 3))
