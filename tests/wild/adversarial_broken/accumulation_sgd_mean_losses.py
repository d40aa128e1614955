"""Accumulation over eight batches; the division is missing."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
ACCUMULATION_STEPS = 8
loader = DataLoader(TensorDataset(torch.randn(320, 6), torch.randint(0, 3, (320,))), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for batch_idx, (x, y) in enumerate(loader):
        output = model(x)
        loss = criterion(output, y)
        loss.backward()  # error: accumulation-not-normalised
        if (batch_idx + 1) % ACCUMULATION_STEPS == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
