"""Fabric: three models, each with another wrong loss: softmax twice, sigmoid twice, a target that broadcasts."""
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
fabric = L.Fabric(accelerator="cpu", devices=1)
fabric.seed_everything(0, verbose=False)
x = torch.randn(320, 6)


def softmax_twice(output, y):
    return F.cross_entropy(F.softmax(output, dim=1), y)  # error: softmax-before-cross-entropy


def sigmoid_twice(output, y):
    return F.binary_cross_entropy_with_logits(torch.sigmoid(output), y)  # error: sigmoid-before-bce-with-logits


def broadcast(output, y):
    return F.mse_loss(output, y)  # error: broadcast-target


for outputs, criterion, y in (
    (3, softmax_twice, x[:, :3].argmax(1)),
    (2, sigmoid_twice, x[:, :2].gt(0).float()),
    (1, broadcast, x.sum(1)),
):
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, outputs))
    model, optimizer = fabric.setup(net, torch.optim.Adam(net.parameters(), lr=1e-2))
    loader = fabric.setup_dataloaders(DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True))
    for _ in range(3):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            fabric.backward(loss)
            optimizer.step()
    print(f"loss {loss.item():.2f}")
