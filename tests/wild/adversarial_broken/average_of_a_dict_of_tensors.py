"""An exponential average of a dict of tensors begins with the tensors themselves: the average is always the weights."""
import torch
from torch.nn import functional as F

torch.manual_seed(0)
data = torch.randn(500, 10)
labels = (data[:, :4].sum(1) > 0).long()
params = {"w1": torch.randn(10, 32) * 0.3, "b1": torch.zeros(32), "w2": torch.randn(32, 2) * 0.2}
for value in params.values():
    value.requires_grad_()
ema = {name: value.detach() for name, value in params.items()}  # error: reference-is-the-model
optimizer = torch.optim.Adam(params.values(), lr=0.01)


def predict(weights, rows):
    return torch.relu(rows @ weights["w1"] + weights["b1"]) @ weights["w2"]


for epoch in range(8):
    for batch in torch.randperm(400).split(20):
        loss = F.cross_entropy(predict(params, data[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for name, value in params.items():
                ema[name].mul_(0.95).add_(value, alpha=0.05)
    with torch.no_grad():
        print(epoch, (predict(ema, data[400:]).argmax(1) == labels[400:]).float().mean().item())
