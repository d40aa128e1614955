"""Several failures at once: the run is the same with a report."""

import torch
from _state import tell
from torch import nn

torch.manual_seed(18)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
left_out = nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
losses, total = [], 0.0
for step in range(60):
    x, y = torch.randn(8, 6), torch.randint(0, 3, (8,))
    loss = nn.functional.cross_entropy(left_out(model.forward(x)).softmax(1), y)
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    schedule.step()
    losses.append(loss)
    total += loss
    print(step, repr(loss.item()))
for _ in range(30):
    total += nn.functional.mse_loss(model(x)[:, :1], torch.zeros(8))
tell(model, left_out, optimizer)
