"""Fabric: blocks in a plain list, and a head that no optimizer holds."""
import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Linear(6, 16), nn.Linear(16, 3)
        self.blocks = [nn.Linear(16, 16), nn.Linear(16, 16)]

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x).relu()  # error: layers-in-plain-container
        return self.head(x)


class Registered(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.middle, self.head = nn.Linear(6, 16), nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.middle(self.body(x).relu()).relu())


fabric = L.Fabric(accelerator="cpu", devices=1)
fabric.seed_everything(0, verbose=False)
x = torch.randn(320, 6)
loader = fabric.setup_dataloaders(DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=32, shuffle=True))
listed, registered = Listed(), Registered()
first = torch.optim.SGD(listed.parameters(), lr=0.1)
second = torch.optim.SGD([*registered.body.parameters(), *registered.head.parameters()], lr=0.1)  # error: parameters-not-optimized
for net, optimizer in ((listed, first), (registered, second)):
    model, optimizer = fabric.setup(net, optimizer)
    for _ in range(4):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            fabric.backward(loss)
            optimizer.step()
    print(f"loss {loss.item():.2f}")
