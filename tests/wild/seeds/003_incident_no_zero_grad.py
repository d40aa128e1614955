"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", the production incident: described in words there, not printed as code.

Made: a training loop without zero_grad, with a loss that is logged and a validation that looks healthy, 40 epochs instead of 200.
Expected: the step uses the gradients of all steps before it.
"""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
X = torch.randn(400, 3)
y = (X @ torch.tensor([0.5, 0.3, -0.2])).unsqueeze(1) + 0.1 * torch.randn(400, 1)
train_loader = DataLoader(TensorDataset(X[:320], y[:320]), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(X[320:], y[320:]), batch_size=80)
model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()
for epoch in range(40):
    model.train()
    train_loss = 0.0
    for features, targets in train_loader:
        loss = loss_fn(model(features), targets)
        loss.backward()
        optimizer.step()  # error: missing-zero-grad
        train_loss += loss.item() / len(train_loader)
    model.eval()
    with torch.no_grad():
        val_loss = sum(loss_fn(model(features), targets).item() for features, targets in val_loader)
    if epoch % 8 == 7:
        norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
        print(f"epoch {epoch + 1} train {train_loss:.4f} val {val_loss:.4f} grad_norm {norm:.2f}")
