"""ReduceLROnPlateau on the mean training loss of the epoch; and one on accuracy with mode="max"."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(100, 4), torch.randint(0, 2, (100,))), batch_size=10, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
by_loss = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
by_accuracy = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode="max", patience=2)
for epoch in range(6):
    total = hits = 0
    for x, y in loader:
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(x)
        hits += (out.argmax(1) == y).sum().item()
    by_loss.step(total / 100)
    by_accuracy.step(hits / 100)
    print(epoch, total / 100, opt.param_groups[0]["lr"])
