"""Cross entropy with soft targets, mixup, label smoothing, temperature; softmax in attention."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class AttentionPool(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.value, self.out = nn.Linear(8, 1), nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        weights = F.softmax(self.score(x), dim=1)
        return self.out((weights * self.value(x)).sum(1))


model, teacher = AttentionPool(), AttentionPool().eval()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(torch.randn(96, 5, 8), torch.randint(0, 4, (96,))), batch_size=16, shuffle=True)
T = 2.0
for epoch in range(3):
    for x, y in loader:
        lam = float(torch.distributions.Beta(0.4, 0.4).sample())
        perm = torch.randperm(len(x))
        mixed = lam * x + (1 - lam) * x[perm]
        onehot = F.one_hot(y, 4).float()
        logits = model(mixed)
        with torch.no_grad():
            soft = F.softmax(teacher(mixed) / T, dim=-1)
        loss = (
            F.cross_entropy(logits, lam * onehot + (1 - lam) * onehot[perm], label_smoothing=0.1)
            + F.cross_entropy(logits / T, soft) * T * T
            + F.nll_loss(torch.log(F.softmax(logits, dim=1) + 1e-9), y)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
