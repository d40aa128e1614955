"""A head on frozen random features; a batch of the same size from a look at the shapes is still in a variable."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
digits = load_digits()
X, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
body, head = nn.Sequential(nn.Linear(64, 64), nn.ReLU()), nn.Linear(64, 10)
body.requires_grad_(False)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
x = X[:64]
print("shape of the outputs", tuple(head(body(x)).shape))
for step in range(150):
    i = torch.randint(0, 1400, (64,))
    loss = F.cross_entropy(head(body(X[i])), y[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(f"accuracy {(head(body(X[1400:])).argmax(1) == y[1400:]).float().mean():.3f}")
