"""Full-batch MLP on tensors with dropout; the held-out part is scored in train mode."""
import torch
from torch import nn

torch.manual_seed(0)
X = torch.randn(120, 6)
y = X[:, :1] * 2 + 0.1 * torch.randn(120, 1)
X_train, y_train, X_test, y_test = X[:90], y[:90], X[90:], y[90:]
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(20):
    pred = model(X_train)
    loss = loss_fn(pred, y_train)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 4 == 3:
        with torch.no_grad():
            test_loss = loss_fn(model(X_test), y_test)  # error: eval-mode-missing
        print(epoch, loss.item(), test_loss.item())
