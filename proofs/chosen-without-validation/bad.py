"""Keep the weights of the best epoch and test them: how far is the accuracy from that on many other samples?"""

import copy
import sys

import torch
from torch import nn
from torch.nn import functional as F

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

x = torch.randn(8400, 30)
y = (x[:, 0] + 2 * torch.randn(8400) > 0).long()
train, valid, test, fresh = torch.arange(8400).split([200, 100, 100, 8000])
model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)


@torch.no_grad()
def measure(rows: torch.Tensor) -> float:
    return (model(x[rows]).argmax(1) == y[rows]).float().mean().item()


best_accuracy = 0.0
for _epoch in range(150):
    for rows in train[torch.randperm(200)].split(10):
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows] ^ (torch.rand(10) < 0.3)).backward()
        optimizer.step()
    accuracy = measure(test)
    if accuracy > best_accuracy:  # error: chosen-without-validation
        best_accuracy = accuracy
        best_state = copy.deepcopy(model.state_dict())
model.load_state_dict(best_state)
print(f"result: {measure(test) - measure(fresh):.4f}")
