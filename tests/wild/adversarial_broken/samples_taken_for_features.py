"""A transpose that is left over: the linear layer of the model takes the samples of a batch for features."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(32, 32)
        self.second = nn.Linear(32, 32)
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        mixed = self.second(hidden.t()).t()  # error: batch-changes-output
        return self.head(hidden + torch.relu(mixed))


torch.manual_seed(12)
labels = torch.randint(0, 3, (640,))
inputs = torch.randn(640, 32) + 0.8 * F.one_hot(labels, 32)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)
model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(4):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(loss.item())
