"""Healthy: a fit of all samples of a table in one call, with the error of each group and of a random part of them."""
import torch
from torch import nn

torch.manual_seed(2)
torch.set_num_threads(1)
x = torch.randn(300, 6)
group = torch.randint(0, 3, (300,))
y = (x[:, 0] * x[:, 1] + 0.3 * group > 0).long()
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)
criterion = nn.CrossEntropyLoss()


def closure():
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    return loss


for epoch in range(40):
    loss = optimizer.step(closure)
    if epoch % 10 == 9:
        some = torch.randperm(300)[:100]
        with torch.no_grad():
            right = (model(x).argmax(1) == y).float()
        print(epoch, loss.item(), [right[group == one].mean().item() for one in range(3)], right[some].mean().item())
        print([right[begin : begin + 100].mean().item() for begin in (0, 100, 200)])
