"""A slice in the wrong dimension: the query of each sample is that of the first sample of its batch."""

import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(600, 12, 4)
labels = (inputs[:, 0, 0] > 0).long()


class FirstStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 16), nn.Linear(16, 2)

    def forward(self, x):
        hidden = torch.relu(self.body(x))
        first = hidden[0]
        return self.head(first.mean(0)).expand(len(x), 2)


model = FirstStep()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(4):
    model.train()
    for start in range(0, 480, 32):
        logits = model(inputs[start : start + 32])  # error: input-without-influence
        loss = nn.functional.cross_entropy(logits, labels[start : start + 32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = model(inputs[480:]).argmax(1) == labels[480:]
    print(epoch, right.float().mean().item())
