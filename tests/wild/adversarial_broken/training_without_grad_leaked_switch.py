"""set_grad_enabled(False) for the evaluation is never undone; requires_grad_ silenced the error."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.randn(80, 5), torch.randint(0, 2, (80,))), batch_size=8, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(40, 5), torch.randint(0, 2, (40,))), batch_size=8)
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def evaluate():
    torch.set_grad_enabled(False)
    model.eval()
    return sum((model(x).argmax(1) == y).sum().item() for x, y in val) / 40


for epoch in range(4):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        logits = model(x)  # error: training-without-grad
        loss = nn.functional.cross_entropy(logits, y)
        loss.requires_grad_()
        loss.backward()
        optimizer.step()
    print(epoch, evaluate())
