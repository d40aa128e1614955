"""A new LayerNorm in every call of an attention pool."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Pool(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.query = nn.Parameter(torch.randn(d))
        self.value = nn.Linear(d, d)
        self.out = nn.Linear(d, 2)

    def forward(self, x):
        norm = nn.LayerNorm(x.size(-1))
        x = norm(x)  # error: layer-created-in-forward
        weights = torch.softmax(x @ self.query / x.size(-1) ** 0.5, dim=1)
        return self.out((weights.unsqueeze(-1) * self.value(x)).sum(1))


model = Pool(8)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(torch.randn(96, 5, 8), torch.randint(0, 2, (96,))), batch_size=12, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
