"""Healthy: sigmoid gates times logits before BCEWithLogitsLoss, and an attention map in [0, 1] trained with BCELoss."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)
torch.set_num_threads(1)


class GatedClassifier(nn.Module):
    def __init__(self, features=10, hidden=24):
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(features, features), nn.Sigmoid())
        self.body = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        gate = self.gate(x)
        confidence = torch.sigmoid(self.body(x * gate))
        logit = self.scale.exp() * 8 * (confidence - 0.5)  # bounded logits, on purpose
        return logit.squeeze(-1), gate


x = torch.randn(600, 10)
relevant = (torch.arange(10) < 3).float()
y = ((x[:, :3].sum(1)) > 0).float()
model = GatedClassifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)

for epoch in range(8):
    order = torch.randperm(480)
    for rows in order.split(48):
        logit, gate = model(x[rows])
        loss = F.binary_cross_entropy_with_logits(logit, y[rows])
        loss = loss + 0.1 * F.binary_cross_entropy(gate, relevant.expand_as(gate))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")

model.eval()
with torch.no_grad():
    logit, gate = model(x[480:])
print(f"accuracy {((logit > 0).float() == y[480:]).float().mean():.3f}, gate {gate.mean(0)[:3].mean():.2f}")
