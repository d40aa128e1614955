"""A batch is cut into four micro-batches; the mean losses are added up."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(256, 6), torch.randint(0, 2, (256,))), batch_size=32, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        for xm, ym in zip(x.chunk(4), y.chunk(4)):
            loss = nn.functional.cross_entropy(model(xm), ym)
            loss.backward()  # error: accumulation-not-normalised
        optimizer.step()
    print(epoch, loss.item())
