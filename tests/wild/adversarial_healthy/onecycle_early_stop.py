"""OneCycle per batch over the planned epochs; the target accuracy is reached early and the run ends."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(400, 2)
y = (X[:, 0] + X[:, 1] > 0).long()
loader = DataLoader(TensorDataset(X, y), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
EPOCHS = 40
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, epochs=EPOCHS, steps_per_epoch=len(loader))


def run():
    for epoch in range(EPOCHS):
        hits = 0
        for xb, yb in loader:
            out = model(xb)
            loss = nn.functional.cross_entropy(out, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            hits += (out.argmax(1) == yb).sum().item()
        if hits / len(X) > 0.95:
            print("good enough after epoch", epoch)
            return


run()
