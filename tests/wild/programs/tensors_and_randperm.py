"""Healthy: notebook export: the dataset is two tensors indexed by randperm, one validation tensor evaluated whole, float loss list."""
# %% [markdown]
# ## Two spirals, from scratch

# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)

# %%
N = 600
t = torch.rand(N) * 2.5 + 0.2
label = torch.arange(N) % 3
angle = 2.0 * t + label * 2 * torch.pi / 3 + 0.15 * torch.randn(N)
X = torch.stack([t * angle.cos(), t * angle.sin()], dim=1)
X = (X - X.mean(0)) / X.std(0)
perm = torch.randperm(N)
X, label = X[perm], label[perm]
X_train, y_train = X[:450], label[:450]
X_val, y_val = X[450:], label[450:]
X_train.shape, X_val.shape

# %%
model = nn.Sequential(
    nn.Linear(2, 64), nn.ReLU(), nn.Dropout(0.05),
    nn.Linear(64, 64), nn.ReLU(),
    nn.Linear(64, 3),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

# %%
batch_size = 50
train_losses, val_losses, val_accs = [], [], []
for epoch in range(15):
    model.train()
    order = torch.randperm(len(X_train))
    epoch_loss = 0
    for i in range(0, len(X_train), batch_size):
        idx = order[i:i + batch_size]
        logits = model(X_train[idx])
        loss = F.cross_entropy(logits, y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(idx)
    train_losses.append(epoch_loss / len(X_train))

    model.eval()
    with torch.no_grad():
        val_logits = model(X_val)
        val_losses.append(F.cross_entropy(val_logits, y_val).item())
        val_accs.append((val_logits.argmax(dim=1) == y_val).float().mean().item())

# %%
for e in range(0, 15, 5):
    print(f"epoch {e:2d}  train {train_losses[e]:.3f}  val {val_losses[e]:.3f}  acc {val_accs[e]:.3f}")
print(f"final val acc {val_accs[-1]:.3f}")

# %%
# decision at a few points
model.eval()
with torch.no_grad():
    grid = torch.cartesian_prod(torch.linspace(-1.5, 1.5, 4), torch.linspace(-1.5, 1.5, 4))
    print(model(grid).argmax(1).reshape(4, 4).tolist())
