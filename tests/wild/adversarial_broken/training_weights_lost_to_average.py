"""The averaged weights are swapped in for an evaluation; the backup of the trained ones is not a copy."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(64, 6), torch.randn(64, 1)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
average = {name: value.clone() for name, value in model.state_dict().items()}
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(60):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    with torch.no_grad():
        for name, value in model.named_parameters():
            average[name].lerp_(value, 0.05)
    if step % 20 == 19:
        backup = model.state_dict()  # error: best-weights-aliased
        model.load_state_dict(average)
        model.eval()
        with torch.no_grad():
            print(nn.functional.mse_loss(model(x), y).item())
        model.load_state_dict(backup)
        model.train()
