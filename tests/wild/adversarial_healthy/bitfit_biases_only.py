"""BitFit: only the biases are optimised; the weights were not frozen in name."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 2))
biases = [p for n, p in model.named_parameters() if n.endswith("bias")]
optimizer = torch.optim.Adam(biases, lr=1e-2)
loader = DataLoader(TensorDataset(torch.randn(120, 6), torch.randint(0, 2, (120,))), batch_size=12, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        model.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
