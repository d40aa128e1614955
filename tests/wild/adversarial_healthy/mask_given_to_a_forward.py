"""The importance of units by the gradients of a mask of ones: the module with the mask is an argument of the call."""
import torch
from torch import nn
from torch.nn import functional as F


class Mask(nn.Module):
    def __init__(self, units):
        super().__init__()
        self.mask = nn.Parameter(torch.ones(units))

    def forward(self, hidden):
        return hidden * self.mask


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x, mask):
        return self.last(mask(torch.tanh(self.second(torch.tanh(self.first(x))))))


torch.manual_seed(0)
rows = torch.randn(400, 8)
labels = (rows @ torch.randn(8, 3)).argmax(1)
model, mask = Classifier(), Mask(16)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
importance = torch.zeros(16)
for _step in range(150):
    batch = torch.randint(0, 400, (32,))
    loss = F.cross_entropy(model(rows[batch], mask), labels[batch])
    optimizer.zero_grad()
    mask.zero_grad()
    loss.backward()
    optimizer.step()
    importance += mask.mask.grad.abs()
print(loss.item(), importance.argmin().item())
