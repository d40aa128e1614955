"""Fabric: the validation runs in train mode, with dropout on."""
import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
fabric = L.Fabric(accelerator="cpu", devices=1)
fabric.seed_everything(0, verbose=False)
x = torch.randn(384, 6)
y = x[:, :3].argmax(1)
train = DataLoader(TensorDataset(x[:288], y[:288]), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(x[288:], y[288:]), batch_size=32)
train, valid = fabric.setup_dataloaders(train, valid)
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))
model, optimizer = fabric.setup(net, torch.optim.AdamW(net.parameters(), lr=1e-2))
for _ in range(3):
    for inputs, labels in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        fabric.backward(loss)
        optimizer.step()
    correct = 0
    with torch.no_grad():
        for inputs, labels in valid:
            correct += int((model(inputs).argmax(1) == labels).sum())  # error: eval-mode-missing
print(f"accuracy {correct / 96:.2f}")
