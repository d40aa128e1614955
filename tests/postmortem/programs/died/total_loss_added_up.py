# says: `total_loss` keeps the graphs of earlier iterations
# says: `total_loss += loss.item()`
import torch
from torch import nn


def train(model, batches):
    opt = torch.optim.Adam(model.parameters())
    total_loss = 0
    for x, y in batches:
        loss = nn.functional.cross_entropy(model(x), y)
        total_loss += loss  # related
        opt.zero_grad()
        total_loss.backward()  # died: graph-freed
        opt.step()
    return total_loss


train(nn.Linear(4, 3), [(torch.randn(8, 4), torch.randint(0, 3, (8,))) for _ in range(4)])
