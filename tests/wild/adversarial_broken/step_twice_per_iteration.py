"""A second optimizer.step() left behind by a merge."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(128, 7), torch.randint(0, 3, (128,))), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
running = 0.0
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        running += loss.item()
        optimizer.step()  # error: step-without-backward
    print(epoch, running)
