"""Tags of documents, with a factor for each tag; one tag is hardly ever set."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
torch.set_num_threads(1)
documents = torch.randn(1500, 10)
limits = torch.tensor([0.1, 0.8, 1.1, -0.6, 2.6])
tags = (documents @ torch.randn(10, 5) / 3 + 0.3 * torch.randn(1500, 5) > limits).float()
often = tags.sum(0)
factors = often / (len(tags) - often)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
criterion = nn.BCEWithLogitsLoss(pos_weight=factors)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(6):
    for document, tag in DataLoader(TensorDataset(documents, tags), batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(document), tag)  # error: class-weights-inverted
        loss.backward()
        optimizer.step()
