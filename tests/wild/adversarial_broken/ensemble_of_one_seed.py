"""An ensemble of networks, each trained by a function that sets the seed for reproducible results."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

digits = load_digits()
x_train, x_test, y_train, y_test = train_test_split(digits.data / 16, digits.target, test_size=0.4, random_state=0)
x_train, x_test = torch.tensor(x_train, dtype=torch.float32), torch.tensor(x_test, dtype=torch.float32)
y_train, y_test = torch.tensor(y_train), torch.tensor(y_test)


def set_seed(seed=42):
    np.random.seed(seed)
    torch.manual_seed(seed)  # error: seed-in-training-loop


def fit_member():
    set_seed()
    model = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)
    model.train()
    for epoch in range(4):
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
    return model.eval()


members = []
for k in range(4):
    members.append(fit_member())
    print(f"member {k} is trained")
with torch.no_grad():
    probabilities = torch.stack([member(x_test).softmax(1) for member in members])
print(f"accuracy {(probabilities.mean(0).argmax(1) == y_test).float().mean():.3f}, disagreement {probabilities.std(0).mean():.4f}")
