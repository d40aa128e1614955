"""A compiled model is put into eval mode by the validation and stays there."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
model = torch.compile(net, backend="eager")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
train = DataLoader(TensorDataset(torch.randn(96, 5), torch.randint(0, 2, (96,))), batch_size=12, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(48, 5), torch.randint(0, 2, (48,))), batch_size=12)
for epoch in range(3):
    for x, y in train:
        logits = model(x)  # error: train-mode-not-restored
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(x).argmax(1) == y).float().mean().item() for x, y in val) / len(val))
