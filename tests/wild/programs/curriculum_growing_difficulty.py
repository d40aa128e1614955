"""A curriculum: samples sorted by difficulty, a pool that grows with the epochs, batches by random choice from the pool, fixed test set."""
import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)
rng = np.random.default_rng(0)


def make(n):
    """Two arms of a spiral; difficulty is the distance from the centre."""
    radius = rng.uniform(0.1, 1.0, n)
    label = rng.integers(0, 2, n)
    angle = 3.5 * radius + np.pi * label + 0.1 * rng.standard_normal(n)
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(label, dtype=torch.float32), radius


x, y, difficulty = make(900)
x_test, y_test, _ = make(400)
order = np.argsort(difficulty)

net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
loss_fn = nn.BCEWithLogitsLoss()


def pool_size(epoch, epochs, start=0.3):
    return int(len(order) * min(1.0, start + (1 - start) * epoch / (0.6 * epochs)))


epochs = 25
for epoch in range(epochs):
    pool = order[:pool_size(epoch, epochs)]
    net.train()
    for _ in range(12):
        pick = rng.choice(pool, 48, replace=False)
        opt.zero_grad()
        loss = loss_fn(net(x[pick]).squeeze(1), y[pick])
        loss.backward()
        opt.step()
    if epoch % 6 == 0 or epoch == epochs - 1:
        net.eval()
        with torch.no_grad():
            accuracy = ((net(x_test).squeeze(1) > 0).float() == y_test).float().mean().item()
        print(f"epoch {epoch} pool {len(pool)} loss {loss.item():.3f} test {accuracy:.3f}")
