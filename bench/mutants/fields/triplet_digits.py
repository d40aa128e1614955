"""Metric learning with cosine triplets, scored by nearest neighbours."""

import random

import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from torch import nn
from torch.utils.data import DataLoader, Dataset


class TripletDigits(Dataset):
    """Gives (anchor, positive, negative)."""

    def __init__(self, x, y, seed=0):
        self.x, self.y = x, y
        self.rng = random.Random(seed)
        self.by_class = {c: [i for i, label in enumerate(y.tolist()) if label == c] for c in set(y.tolist())}

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        label = int(self.y[i])
        pos = self.rng.choice(self.by_class[label])
        other = self.rng.choice([c for c in self.by_class if c != label])
        neg = self.rng.choice(self.by_class[other])
        return self.x[i], self.x[pos], self.x[neg]


class CosineTripletLoss(nn.Module):
    """Hinge on the difference of two cosine similarities."""

    def __init__(self, margin=0.4):
        super().__init__()
        self.margin = margin

    def forward(self, anchor, positive, negative):
        sim_pos = nn.functional.cosine_similarity(anchor, positive)
        sim_neg = nn.functional.cosine_similarity(anchor, negative)
        return torch.relu(sim_neg - sim_pos + self.margin).mean()


torch.manual_seed(2)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16.0
y = torch.tensor(digits.target)
perm = torch.randperm(len(x), generator=torch.Generator().manual_seed(2))
tr, te = perm[:1200], perm[1200:]

net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
criterion = CosineTripletLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
loader = DataLoader(TripletDigits(x[tr], y[tr]), batch_size=64, shuffle=True)

for epoch in range(12):
    net.train()
    total, seen = 0.0, 0
    for a, p, n in loader:
        optimizer.zero_grad()
        loss = criterion(net(a), net(p), net(n))
        loss.backward()
        optimizer.step()
        total += loss.item() * len(a)
        seen += len(a)
    if epoch % 4 == 3:
        print(f"[{epoch + 1:02d}] triplet loss {total / seen:.4f}")

net.eval()
with torch.no_grad():
    e_train = nn.functional.normalize(net(x[tr])).numpy()
    e_test = nn.functional.normalize(net(x[te])).numpy()
knn = KNeighborsClassifier(5).fit(e_train, y[tr].numpy())
print(f"5-nn accuracy of the embedding: {knn.score(e_test, y[te].numpy()):.4f}")
