import torch
from _state import tell
from torch import nn
from torch._dynamo.utils import counters

torch.manual_seed(8)
model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


@torch.compile(fullgraph=True, backend="aot_eager")
def loss_of(x, y):
    with torch.no_grad():
        x = (x - x.mean(0)) / x.std(0)
    return criterion(model(x), y)


@torch.compile(backend="eager")
def whole_step(x, y):
    optimizer.zero_grad()
    loss = loss_of(x, y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


for step in range(12):
    print(step, repr(whole_step(torch.randn(16, 8), torch.randint(0, 3, (16,))).item()))
print(counters["stats"]["unique_graphs"])
tell(model, optimizer)
