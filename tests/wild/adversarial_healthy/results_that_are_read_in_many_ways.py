"""Results are compared, read and summed: in training, between two networks, of samples by dropout, of other step sizes."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(160, 5), torch.randint(0, 3, (160,))
make = lambda: nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 3))
first, second = make(), make()
opt = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=5e-3)
right = seen = 0
for step in range(60):
    rows = torch.randint(0, 160, (20,))
    with torch.no_grad():
        agree = first(x[rows]).argmax(1) == second(x[rows]).argmax(1)
    out, other = first(x[rows]), second(x[rows])
    losses = F.cross_entropy(out, y[rows], reduction="none") + F.cross_entropy(other, y[rows], reduction="none")
    loss = losses[agree].mean() if agree.any() else losses.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    right += (out.argmax(1) == y[rows]).sum().item()
    seen += len(rows)
print("accuracy in training", right / seen)
with torch.no_grad():
    samples = torch.stack([first(x).softmax(1) for _ in range(10)])
    print("accuracy of samples", (samples.mean(0).argmax(1) == y).float().mean().item())
first.eval(), second.eval()
with torch.no_grad():
    print("agree", (first(x).argmax(1) == second(x).argmax(1)).float().mean().item())
window = 0.0
for number, rows in enumerate(torch.randperm(160).split(20)):
    first.train(), second.train()
    window = window + F.cross_entropy(first(x[rows]), y[rows]) + F.cross_entropy(second(x[rows]), y[rows])
    if number % 4 == 3:
        opt.zero_grad()
        (window / 8).backward()
        opt.step()
        window = 0.0
