# %% Digits with offline augmentation: five jittered versions of each training image
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
torch.manual_seed(0)


# %%
def jitter(images, copies):
    """Original images followed by `copies` brightness/noise/shift variants of each."""
    stacks = [images]
    for _ in range(copies):
        gain = rng.uniform(0.7, 1.2, (len(images), 1, 1))
        noisy = images * gain + rng.normal(0, 0.08, images.shape)
        stacks.append(np.roll(noisy, rng.integers(-1, 2), axis=2))
    return np.concatenate(stacks)


def tensor_set(images, labels):
    x = torch.tensor(images.reshape(len(images), 64), dtype=torch.float32)
    return TensorDataset(x, torch.tensor(labels))


# %% a small labelled pool of 250 images
digits = load_digits()
pool, _, pool_y, _ = train_test_split(
    digits.images / 16.0, digits.target, train_size=250, random_state=0, stratify=digits.target
)

COPIES = 5
train_x, val_x, train_y, val_y = train_test_split(
    pool, pool_y, test_size=0.25, random_state=0, stratify=pool_y
)
train_x = jitter(train_x, COPIES)
train_y = np.tile(train_y, COPIES + 1)
print(f"{len(train_x)} training images, {len(val_x)} validation images")

train_loader = DataLoader(tensor_set(train_x, train_y), batch_size=32, shuffle=True)
val_loader = DataLoader(tensor_set(val_x, val_y), batch_size=256)

# %%
net = nn.Sequential(
    nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2),
    nn.Linear(128, 64), nn.ReLU(),
    nn.Linear(64, 10),
)
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-3)
criterion = nn.CrossEntropyLoss()

# %%
for epoch in range(15):
    net.train()
    epoch_loss = 0.0
    for xb, yb in train_loader:
        opt.zero_grad()
        loss = criterion(net(xb), yb)
        loss.backward()
        opt.step()
        epoch_loss += loss.item() * len(yb)

    net.eval()
    predictions, truth = [], []
    with torch.no_grad():
        for xb, yb in val_loader:
            predictions.append(net(xb).argmax(1))
            truth.append(yb)
    acc = accuracy_score(torch.cat(truth), torch.cat(predictions))
    print(f"epoch {epoch:2d}  train loss {epoch_loss / len(train_x):.4f}  val acc {acc:.4f}")
