"""Windows of four batches counted over the whole training: with seven batches an epoch, they cross its end."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(56, 6)
loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
micro_step = 0
optimizer.zero_grad()
for epoch in range(10):
    for inputs, labels in loader:
        (criterion(model(inputs), labels) / 4).backward()
        micro_step += 1
        if micro_step % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
