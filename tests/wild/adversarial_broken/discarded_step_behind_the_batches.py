"""Broken: in a function with a DataLoader, step() lost its indentation, and only the last batch of an epoch counts."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


def fit(model, loader, optimizer, epochs):
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for inputs, labels in loader:
            optimizer.zero_grad()  # error: backward-passes-discarded
            loss = criterion(model(inputs), labels)
            loss.backward()
            running += loss.item()
        optimizer.step()
        print(f"epoch {epoch}: {running / len(loader):.3f}")


x = torch.randn(320, 10)
y = (x[:, :5].sum(1) > 0).long()
network = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
batches = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
fit(network, batches, torch.optim.Adam(network.parameters(), lr=0.01), epochs=8)
