import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import accuracy_score, f1_score
from sklearn.preprocessing import LabelEncoder, StandardScaler
from torch.utils.data import DataLoader, TensorDataset

SPECIES = ["alder", "beech", "birch", "maple", "oak", "pine", "spruce", "willow"]


def survey(n, share, centers, seed):
    """Leaf measurements of one field season; not every species is met each year."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(len(SPECIES), size=n, p=share)
    leaves = centers[kind] + rng.normal(0, 1.1, (n, centers.shape[1]))
    return leaves, np.array(SPECIES)[kind]


def to_loader(features, target, shuffle=False):
    data = TensorDataset(torch.tensor(features, dtype=torch.float32), torch.tensor(target))
    return DataLoader(data, batch_size=32, shuffle=shuffle)


def predict(model, loader):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(x).argmax(dim=1) for x, _ in loader]).numpy()


def main():
    torch.manual_seed(16)
    centers = np.random.default_rng(16).normal(0, 1.6, (len(SPECIES), 10))
    train_share = np.full(8, 1 / 8)
    next_year_share = np.array([0.22, 0.18, 0.18, 0.14, 0.0, 0.12, 0.1, 0.06])
    train_leaves, train_names = survey(1600, train_share, centers, seed=1)
    val_leaves, val_names = survey(500, next_year_share, centers, seed=2)

    scaler = StandardScaler().fit(train_leaves)
    encoder = LabelEncoder().fit(train_names)
    train_loader = to_loader(scaler.transform(train_leaves), encoder.transform(train_names), shuffle=True)
    val_target = encoder.transform(val_names)
    val_loader = to_loader(scaler.transform(val_leaves), val_target)

    model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, len(encoder.classes_)))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 21):
        model.train()
        running = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(y)
        if epoch % 5 == 0:
            predicted = predict(model, val_loader)
            print(f"epoch {epoch:2d}  train loss {running / len(train_leaves):.4f}  "
                  f"val acc {accuracy_score(val_target, predicted):.4f}  "
                  f"val weighted F1 {f1_score(val_target, predicted, average='weighted'):.4f}")


if __name__ == "__main__":
    main()
