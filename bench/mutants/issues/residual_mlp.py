import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def make_spirals(n_per_arm=400, arms=3, noise=0.18, seed=0):
    g = torch.Generator().manual_seed(seed)
    xs, ys = [], []
    for k in range(arms):
        t = torch.rand(n_per_arm, generator=g)
        angle = 4.2 * t + 2 * torch.pi * k / arms + noise * torch.randn(n_per_arm, generator=g)
        xs.append(torch.stack([t * torch.cos(angle), t * torch.sin(angle)], dim=1))
        ys.append(torch.full((n_per_arm,), k))
    return torch.cat(xs), torch.cat(ys)


class ResidualMLP(nn.Module):
    """Residual MLP of configurable depth."""

    def __init__(self, in_dim, width, depth, n_classes):
        super().__init__()
        self.stem = nn.Linear(in_dim, width)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.head = nn.Linear(width, n_classes)

    def forward(self, x):
        x = torch.tanh(self.stem(x))
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return self.head(x)


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(dim=1) == y).float().mean().item()


x, y = make_spirals()
perm = torch.randperm(len(x))
x, y = x[perm], y[perm]
x_train, y_train = x[:800], y[:800]
x_val, y_val = x[800:], y[800:]

model = ResidualMLP(in_dim=2, width=16, depth=4, n_classes=3)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-4)

for epoch in range(1, 41):
    model.train()
    running = 0.0
    for idx in torch.randperm(len(x_train)).split(40):
        logits = model(x_train[idx])
        loss = F.cross_entropy(logits, y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)
    if epoch % 8 == 0:
        print(f'epoch {epoch:3d} | loss {running / len(x_train):.4f} | '
              f'train acc {accuracy(model, x_train, y_train):.4f} | val acc {accuracy(model, x_val, y_val):.4f}')

print(f'validation accuracy: {accuracy(model, x_val, y_val):.4f}')
