import torch
from _state import tell
from torch import nn
from torch._dynamo.utils import counters

torch.manual_seed(7)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
compiled = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for step in range(12):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(compiled(torch.randn(16, 8)), torch.randint(0, 3, (16,)))
    loss.backward()
    optimizer.step()
    print(step, repr(loss.item()))
compiled.eval()
with torch.no_grad():
    print(repr(compiled(torch.ones(2, 8)).tolist()))
print(counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()))
tell(model, optimizer)
