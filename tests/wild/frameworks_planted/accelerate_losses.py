"""Accelerate: softmax before cross entropy, then sigmoid before binary cross entropy with logits, under accumulate()."""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
x = torch.randn(256, 8)


class Net(nn.Module):
    def __init__(self, last):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        self.last = last

    def forward(self, inputs):
        return self.last(self.layers(inputs))


def train(model, criterion, labels):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = DataLoader(TensorDataset(x, labels), batch_size=16, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for _ in range(3):
        for inputs, targets in loader:
            with accelerator.accumulate(model):
                loss = criterion(model(inputs), targets)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
    print(f"loss {loss.item():.2f}")


def classes(output, targets):
    return nn.functional.cross_entropy(output, targets)  # error: softmax-before-cross-entropy


def tags(output, targets):
    return nn.functional.binary_cross_entropy_with_logits(output, targets)  # error: sigmoid-before-bce-with-logits


train(Net(nn.Softmax(dim=-1)), classes, x[:, :3].argmax(1))
train(Net(nn.Sigmoid()), tags, x[:, :3].gt(0).float())
