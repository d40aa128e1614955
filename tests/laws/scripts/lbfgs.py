import torch
from _state import tell
from torch import nn

torch.manual_seed(2)
x = torch.linspace(-2, 2, 64)[:, None]
y = x.sin() + 0.1 * torch.randn_like(x)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
criterion = nn.MSELoss()
for line_search in (None, "strong_wolfe"):
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=6, line_search_fn=line_search)
    calls = 0

    def closure():
        global calls
        calls += 1
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        return loss

    for step in range(6):
        print(step, calls, repr(optimizer.step(closure).item()))
    tell(model, optimizer)
