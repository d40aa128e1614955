"""Healthy: multi-task training with one backward per task on a shared trunk and one step; alternating auxiliary head."""
import torch
from torch import nn

torch.manual_seed(3)
torch.set_num_threads(1)


class MultiTaskNet(nn.Module):
    def __init__(self, in_dim=12, hidden=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(in_dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.heads = nn.ModuleDict({
            "age": nn.Linear(hidden, 1),
            "group": nn.Linear(hidden, 5),
            "rotation": nn.Linear(hidden, 2),
        })

    def forward(self, x, task):
        return self.heads[task](self.trunk(x))


def sample(n):
    x = torch.randn(n, 12)
    age = x[:, :3].sum(1, keepdim=True) / 3 ** 0.5
    group = torch.bucketize(x[:, 3] + 0.2 * x[:, 4], torch.tensor([-0.9, -0.3, 0.3, 0.9]))
    rotation = (x[:, 5] > x[:, 6]).long()
    return x, {"age": age, "group": group, "rotation": rotation}


criteria = {"age": nn.SmoothL1Loss(), "group": nn.CrossEntropyLoss(), "rotation": nn.CrossEntropyLoss()}
weights = {"age": 1.0, "group": 0.5, "rotation": 0.3}

train_x, train_y = sample(1024)
test_x, test_y = sample(512)
model = MultiTaskNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

it = 0
for epoch in range(6):
    for idx in torch.randperm(1024).split(64):
        # the auxiliary task takes part in every other iteration only
        tasks = ["age", "group"] + (["rotation"] if it % 2 else [])
        optimizer.zero_grad()
        for task in tasks:
            loss = weights[task] * criteria[task](model(train_x[idx], task), train_y[task][idx])
            loss.backward()
        optimizer.step()
        it += 1

model.eval()
with torch.no_grad():
    mae = (model(test_x, "age") - test_y["age"]).abs().mean()
    acc = (model(test_x, "group").argmax(1) == test_y["group"]).float().mean()
    rot = (model(test_x, "rotation").argmax(1) == test_y["rotation"]).float().mean()
print(f"age MAE {mae:.3f}  group acc {acc:.3f}  rotation acc {rot:.3f}")
