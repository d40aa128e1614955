"""Binary labels from features in the hundreds: a large learning rate ends every unit of the hidden layer."""

import torch
from torch import nn

torch.manual_seed(0)
features = 300 * torch.rand(480, 8)
answers = (features[:, 0] > features[:, 1]).float()


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


scorer = Scorer()
optimizer = torch.optim.SGD(scorer.parameters(), lr=0.1)
for epoch in range(10):
    for chosen in torch.randperm(480).split(32):
        logits = scorer(features[chosen])  # error: output-ignores-input
        loss = nn.functional.binary_cross_entropy_with_logits(logits, answers[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
