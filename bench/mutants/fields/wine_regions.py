"""Name the region of a wine from its chemistry; the labels are text and one region is missing in the test year."""

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.preprocessing import LabelEncoder, StandardScaler


class WineClassifier(nn.Module):
    """Two-layer perceptron with batch normalisation."""

    def __init__(self, n_features, n_classes):
        super().__init__()
        self.fc1 = nn.Linear(n_features, 24)
        self.bn = nn.BatchNorm1d(24)
        self.fc2 = nn.Linear(24, n_classes)

    def forward(self, x):
        return self.fc2(torch.relu(self.bn(self.fc1(x))))


def load_years(seed):
    wine = load_wine()
    names = np.array(["barolo", "grignolino", "barbera"])[wine.target]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(names))
    x, names = wine.data[order], names[order]
    first, second = slice(0, 110), slice(110, None)
    keep = names[second] != "barbera"  # no barbera was bottled in the second year
    return x[first], names[first], x[second][keep], names[second][keep]


def main():
    torch.manual_seed(5)
    x_train, names_train, x_test, names_test = load_years(5)

    encoder = LabelEncoder()
    y_train = torch.tensor(encoder.fit_transform(names_train))
    y_test = torch.tensor(encoder.transform(names_test))
    scaler = StandardScaler()
    x_train = torch.tensor(scaler.fit_transform(x_train), dtype=torch.float32)
    x_test = torch.tensor(scaler.transform(x_test), dtype=torch.float32)

    model = WineClassifier(x_train.shape[1], len(np.unique(names_train)))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(1, 21):
        model.train()
        batch_losses = []
        for idx in torch.randperm(len(x_train)).split(22):
            optimizer.zero_grad()
            loss = criterion(model(x_train[idx]), y_train[idx])
            loss.backward()
            optimizer.step()
            batch_losses.append(loss.item())
        if epoch % 5 == 0:
            model.eval()
            with torch.no_grad():
                out = model(x_test)
                test_loss = criterion(out, y_test).item()
                test_acc = (out.argmax(dim=1) == y_test).float().mean().item()
            print(
                f"Epoch {epoch:3d}: train loss = {np.mean(batch_losses):.4f}, test loss = {test_loss:.4f}, test "
                f"accuracy = {test_acc:.4f}"
            )


if __name__ == "__main__":
    main()
