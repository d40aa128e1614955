"""Healthy: torch.compile(model, backend="aot_eager"), training and evaluation, checkpoint saved from the original module."""
import os
import tempfile

import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 32)
        self.drop = nn.Dropout(0.1)
        self.fc2 = nn.Linear(32, 3)

    def forward(self, x):
        return self.fc2(self.drop(torch.relu(self.fc1(x))))


model = MLP()
compiled = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loss_fn = nn.CrossEntropyLoss()
w = torch.randn(8, 3)

compiled.train()
for step in range(60):
    x = torch.randn(64, 8)
    y = (x @ w).argmax(1)
    optimizer.zero_grad()
    loss = loss_fn(compiled(x), y)
    loss.backward()
    optimizer.step()

compiled.eval()
x = torch.randn(512, 8)
with torch.no_grad():
    acc = (compiled(x).argmax(1) == (x @ w).argmax(1)).float().mean().item()

with tempfile.TemporaryDirectory() as tmp:
    path = os.path.join(tmp, "model.pt")
    torch.save(model.state_dict(), path)
    fresh = MLP().eval()
    fresh.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    with torch.no_grad():
        same = torch.allclose(fresh(x), compiled(x), atol=1e-6)
print(f"loss {loss.item():.4f} acc {acc:.4f} reloaded equal: {same}")
