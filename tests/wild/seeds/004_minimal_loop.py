"""From "PyTorch Debugging, Lab & Modern Performance", exercise Minimal Training Loop (fragment 0.4.24).

Repaired: nothing. Expected: nothing.
"""
import torch; from torch import nn
X = torch.randn(100, 5); y = X @ torch.randn(5, 1) + 0.1 * torch.randn(100, 1)
model = nn.Linear(5, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
loss_fn = nn.MSELoss()
for epoch in range(100):
  opt.zero_grad()
  pred = model(X)
  loss = loss_fn(pred, y)
  loss.backward()
  opt.step()
  if epoch % 10 == 0: print(f"epoch {epoch} loss {loss.item():.4f}")
