"""Customer churn: logistic model with an embedding of the tariff, measured by the area under the ROC curve."""

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(64)


class Customers(Dataset):
    """Synthetic customers: months, spending, calls, tariff."""

    def __init__(self, n, seed=64):
        rng = np.random.default_rng(seed)
        tariff = rng.integers(0, 8, n)
        numbers = rng.normal(size=(n, 4))
        risk = numbers @ np.array([0.9, -0.7, 0.5, 0.0]) + np.linspace(-1.0, 1.0, 8)[tariff] - 2.0
        churn = rng.random(n) < 1 / (1 + np.exp(-risk))
        self.numbers = torch.tensor(numbers, dtype=torch.float32)
        self.tariff = torch.from_numpy(tariff)
        self.churn = torch.tensor(churn, dtype=torch.float32)

    def __len__(self):
        return len(self.churn)

    def __getitem__(self, i):
        return self.numbers[i], self.tariff[i], self.churn[i]


class ChurnModel(nn.Module):
    """Tariff embedding next to the numbers."""

    def __init__(self):
        super().__init__()
        self.tariff = nn.Embedding(8, 4)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, numbers, tariff):
        return self.mlp(torch.cat([numbers, self.tariff(tariff)], dim=1)).squeeze(1)


def predict(model, loader):
    model.eval()
    probs, truth = [], []
    with torch.no_grad():
        for numbers, tariff, churn in loader:
            probs.append(torch.sigmoid(model(numbers, tariff)))
            truth.append(churn)
    return torch.cat(probs).numpy(), torch.cat(truth).numpy()


train_set, val_set = random_split(Customers(2400), [1800, 600], generator=torch.Generator().manual_seed(64))
train_loader = DataLoader(train_set, batch_size=60, shuffle=True)
val_loader = DataLoader(val_set, batch_size=200)
model = ChurnModel()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
loss_fn = nn.BCEWithLogitsLoss()

for epoch in range(6):
    model.train()
    losses = []
    for numbers, tariff, churn in train_loader:
        loss = loss_fn(model(numbers, tariff), churn)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    probs, truth = predict(model, val_loader)
    auc = roc_auc_score(truth, probs)
    print(f"epoch {epoch} loss {np.mean(losses):.4f} val AUC {auc:.4f}")
print("mean predicted risk", round(float(probs.mean()), 4), "observed", round(float(truth.mean()), 4))
