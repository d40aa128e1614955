"""Task heads in a dict."""
import torch
from torch import nn

torch.manual_seed(0)


class MultiHead(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, 24), nn.GELU())
        self.heads = {name: nn.Linear(24, size) for name, size in tasks.items()}

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}  # error: layers-in-plain-container


tasks = {"colour": 3, "shape": 4}
model = MultiHead(tasks)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for step in range(40):
    x = torch.randn(24, 12)
    targets = {"colour": torch.randint(0, 3, (24,)), "shape": torch.randint(0, 4, (24,))}
    out = model(x)
    loss = sum(criterion(out[t], targets[t]) for t in tasks)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
