"""A context of each sample that is repeated for the steps, beside steps that are flattened with the step first."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)
torch.set_num_threads(1)
steps, context = torch.randn(600, 5, 6), torch.randn(600, 3)
labels = (steps.mean(1)[:, :3] * context).sum(1).gt(0).long()


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.head = nn.Sequential(nn.Linear(9, 32), nn.ReLU()), nn.Linear(32, 2)

    def forward(self, x, c):
        batch, count, _ = x.shape
        rows = torch.cat([x.transpose(0, 1).flatten(0, 1), c.repeat(count, 1)], dim=1)
        return self.head(self.net(rows).view(count, batch, -1).mean(0))


model = Mixed()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(120):
    i = torch.randint(0, 500, (40,))
    loss = F.cross_entropy(model(steps[i], context[i]), labels[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(loss.item(), (model(steps[500:], context[500:]).argmax(1) == labels[500:]).float().mean().item())
