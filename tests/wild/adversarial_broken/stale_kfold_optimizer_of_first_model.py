"""Cross-validation: a new model per fold, one optimizer for all of them."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(120, 4), torch.randn(120, 1))


def new_model():
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))


model = new_model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)  # error: optimizer-holds-stale-parameters
for fold in range(3):
    if fold:
        model = new_model()
    held = set(range(fold * 40, fold * 40 + 40))
    train = DataLoader(Subset(data, [i for i in range(120) if i not in held]), batch_size=10, shuffle=True)
    for epoch in range(3):
        for x, y in train:
            optimizer.zero_grad()
            model.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    print(fold, loss.item())
