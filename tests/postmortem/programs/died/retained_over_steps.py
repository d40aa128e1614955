# says: `optimizer.step()` changed weights that this backward pass still needs
# says: call `model(x)` again after `optimizer.step()`
import torch
from torch import nn


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 20), nn.Tanh(), nn.Linear(20, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(32, 10), torch.randn(32, 1)
    loss = ((model(x) - y) ** 2).mean()  # related
    for epoch in range(10):
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # died: modified-in-place
        optimizer.step()  # related


main()
